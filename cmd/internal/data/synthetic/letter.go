package synthetic

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"mime"
	"mime/quotedprintable"
	"strings"
	"time"
)

// A person writes and receives mail.
type person struct {
	name, address string
	host          string // sends their mail
	agent         string
}

const here = "example.org" // the recipients' domain

var (
	providers = []string{"mailhaus.example", "post.example", "fastbox.example", "univ.example", here, here}
	agents    = []string{"Thunderbird 128.3", "Apple Mail (2.3774)", "Outlook 16.0", "Mutt/2.2.12", "K-9 Mail", ""}
)

func makePeople(r *rand.Rand) []person {
	people := make([]person, 240)
	for i := range people {
		first, last := pick(r, firstNames), pick(r, lastNames)
		domain := pick(r, providers)
		if i < len(people)/4 {
			domain = here
		}
		people[i] = person{
			name:    first + " " + last,
			address: fmt.Sprintf("%s.%s%d@%s", strings.ToLower(first), strings.ToLower(last), r.IntN(90), domain),
			host:    "smtp." + domain, agent: pick(r, agents),
		}
	}
	return people
}

// An attachment is a part that is not text.
type attachment struct {
	name, mediaType string
	size            int
}

// An encoding is a Content-Transfer-Encoding.
type encoding uint8

const (
	eightBit encoding = iota
	quotedPrintable
	base64Encoding
)

// A letter is a message before it is encoded.
type letter struct {
	from, to    person
	subject     string
	date        time.Time
	skew        time.Duration // how far the sender's clock is off
	hops        []string      // hosts that it passed, last first, without ours
	ip          string        // address that our server saw
	authentic   string        // our server's check of the sender: "pass", "fail", "none"
	fields      []string      // further header fields
	id, reply   string        // message ids without brackets
	text, html  []byte
	encoding    encoding
	attachments []attachment
	bare        bool // lacks the optional headers of a mail program
}

func messageID(r *rand.Rand, host string) string {
	return fmt.Sprintf("%x.%x@%s", r.Uint64(), r.Uint32(), host)
}

func address(r *rand.Rand) string {
	return fmt.Sprintf("%d.%d.%d.%d", 11+r.IntN(180), r.IntN(256), r.IntN(256), 1+r.IntN(254))
}

const mailDate = "Mon, 2 Jan 2006 15:04:05 -0700"

// append appends the message with the headers of every hop.
func (l *letter) append(dst []byte, r *rand.Rand) []byte {
	b := bytes.NewBuffer(dst)
	at := l.date
	host := l.from.host
	if len(l.hops) > 0 {
		host = l.hops[0]
	}
	fmt.Fprintf(b, "Return-Path: <%s>\nReceived: from %s (%s [%s])\n\tby mx%d.%s (Postfix) with ESMTPS id %X\n\tfor "+
		"<%s>; %s\n",
		l.from.address, host, host, l.ip, 1+r.IntN(3), here, r.Uint32(), l.to.address, at.Format(mailDate))
	fmt.Fprintf(b, "Authentication-Results: mx.%s; spf=%s smtp.mailfrom=%s\n", here, l.authentic, l.from.address)
	for i := 1; i < len(l.hops); i++ {
		at = at.Add(-time.Duration(1+r.IntN(8)) * time.Second)
		fmt.Fprintf(b, "Received: from %s by %s with SMTP id %x;\n\t%s\n",
			l.hops[i], l.hops[i-1], r.Uint32(), at.Format(mailDate))
	}
	if l.id == "" {
		l.id = messageID(r, host)
	}
	fmt.Fprintf(b, "From: %s <%s>\nTo: %s\nSubject: %s\nDate: %s\nMessage-ID: <%s>\n",
		encoded(l.from.name), l.from.address,
		l.to.address, encoded(l.subject), at.Add(l.skew-time.Duration(r.IntN(20))*time.Second).Format(mailDate), l.id)
	if l.reply != "" {
		fmt.Fprintf(b, "In-Reply-To: <%s>\nReferences: <%s>\n", l.reply, l.reply)
	}
	if l.from.agent != "" && !l.bare {
		fmt.Fprintf(b, "User-Agent: %s\n", l.from.agent)
	}
	for _, f := range l.fields {
		b.WriteString(f)
		b.WriteByte('\n')
	}
	b.WriteString("MIME-Version: 1.0\n")
	l.body(b, r)
	return b.Bytes()
}

// encoded encodes a field's text by RFC 2047 if necessary.
func encoded(s string) string {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return mime.BEncoding.Encode("utf-8", s)
		}
	}
	return s
}

func (l *letter) body(b *bytes.Buffer, r *rand.Rand) {
	boundary := fmt.Sprintf("=_%x", r.Uint64())
	if len(l.attachments) > 0 {
		fmt.Fprintf(b, "Content-Type: multipart/mixed; boundary=\"%s\"\n\n--%s\n", boundary, boundary)
	}
	switch {
	case l.text != nil && l.html != nil:
		inner := boundary + "alt"
		fmt.Fprintf(b, "Content-Type: multipart/alternative; boundary=\"%s\"\n\n--%s\n", inner, inner)
		l.part(b, "text/plain", l.text)
		fmt.Fprintf(b, "\n--%s\n", inner)
		l.part(b, "text/html", l.html)
		fmt.Fprintf(b, "\n--%s--\n", inner)
	case l.html != nil:
		l.part(b, "text/html", l.html)
	default:
		l.part(b, "text/plain", l.text)
	}
	for _, a := range l.attachments {
		fmt.Fprintf(b, "\n--%s\nContent-Type: %s; name=\"%s\"\nContent-Transfer-Encoding: base64\nContent-Disposition: "+
			"attachment; filename=\"%s\"\n\n",
			boundary, a.mediaType, a.name, a.name)
		content := make([]byte, a.size)
		for i := 0; i+8 <= len(content); i += 8 {
			v := r.Uint64()
			for j := range 8 {
				content[i+j] = byte(v >> (8 * j))
			}
		}
		writeBase64(b, content)
	}
	if len(l.attachments) > 0 {
		fmt.Fprintf(b, "\n--%s--\n", boundary)
	}
}

func (l *letter) part(b *bytes.Buffer, mediaType string, content []byte) {
	fmt.Fprintf(b, "Content-Type: %s; charset=utf-8\nContent-Transfer-Encoding: ", mediaType)
	switch l.encoding {
	case quotedPrintable:
		b.WriteString("quoted-printable\n\n")
		w := quotedprintable.NewWriter(b)
		w.Write(content) // a Buffer never fails
		w.Close()
	case base64Encoding:
		b.WriteString("base64\n\n")
		writeBase64(b, content)
	default:
		b.WriteString("8bit\n\n")
		b.Write(content)
	}
	b.WriteByte('\n')
}

func writeBase64(b *bytes.Buffer, content []byte) {
	const perLine = 57 // 76 characters, RFC 2045
	for len(content) > 0 {
		n := min(perLine, len(content))
		b.Write(base64.StdEncoding.AppendEncode(b.AvailableBuffer(), content[:n]))
		b.WriteByte('\n')
		content = content[n:]
	}
}
