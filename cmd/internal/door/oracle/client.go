package oracle

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"hamlet/stream"
	"hamlet/stream/mail"
)

// A Sends says how much of a message an oracle is shown.
type Sends string

const (
	SendsHeaders Sends = "headers" // the subject, the domains of From and Reply-To, and counts
	SendsText    Sends = "text"    // the beginning of the text too
	SendsMail    Sends = "mail"    // the reduced message too, with all addresses
)

// Bounds of a question and its answer, in bytes.
const (
	mostSubject = 1 << 10
	mostText    = 4 << 10
	mostAnswer  = 64 << 10
)

// A Question is what an oracle is sent, as JSON. It has no p: an oracle that knows what the model
// thinks says the same. An address in Subject and Text is "[address]".
type Question struct {
	ID            string `json:"id"` // the message's identity: a question that comes again has the same
	Subject       string `json:"subject"`
	FromDomain    string `json:"from_domain"`
	ReplyToDomain string `json:"reply_to_domain,omitempty"`
	HTML          bool   `json:"html"`
	Attachments   int    `json:"attachments"`
	Text          string `json:"text,omitempty"`
	Mail          []byte `json:"mail,omitempty"` // base64
}

// address is an address, whose local part may be quoted and whose @ may be encoded. It takes too much rather
// than too little: of "width=40px" all.
var address = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:"[^"]*"|[^\s<>"(),:;])+(?:[@＠﹫]|%(?:25)*40|=40|&#0*64;|&#[xX]0*40;)[^\s<>"(),:;]+`)
})

// query is a URL, and its query: that may say who the reader is.
var query = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(\b(?:https?|ftp)://[^\s<>"?#]*)[?#][^\s<>"]*`)
})

// QuestionOf returns the question about a reduced message.
func QuestionOf(id string, reduced []byte, sends Sends) Question {
	m := mail.Parse(reduced)
	q := Question{ID: id, Subject: excerpt(m.Subject, mostSubject), HTML: m.HTML, Attachments: m.Attachments}
	for line := range strings.Lines(string(m.Head)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch {
		case name == "from" && q.FromDomain == "":
			q.FromDomain = domain(value)
		case name == "reply-to" && q.ReplyToDomain == "":
			q.ReplyToDomain = domain(value)
		}
	}
	if sends == SendsText || sends == SendsMail {
		q.Text = excerpt(m.Text, mostText)
	}
	if sends == SendsMail {
		q.Mail = reduced
	}
	return q
}

// excerpt returns the beginning of a text without addresses and the queries of URLs.
func excerpt(text []byte, most int) string {
	if len(text) > 2*most { // the last word may be half an address
		text = text[:2*most]
		text = text[:bytes.LastIndexAny(text, " \t\n")+1]
	}
	s := query().ReplaceAllString(strings.ToValidUTF8(string(text), ""), "$1")
	for address().MatchString(s) { // again: what is left may be one, such as "b [address]"@c
		s = address().ReplaceAllLiteralString(s, "[address]")
	}
	return strings.ToValidUTF8(s[:min(len(s), most)], "")
}

// mostDomain is the longest name that DNS has, in bytes.
const mostDomain = 255

// domain returns the domain of the last address in a field, if it is the name of a host.
func domain(field string) string {
	all := address().FindAllString(field, -1)
	if len(all) == 0 {
		return ""
	}
	last := all[len(all)-1]
	name := strings.ToLower(strings.Trim(last[strings.LastIndexByte(last, '@')+1:], "'."))
	strange := func(r rune) bool {
		return r == utf8.RuneError || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-._", r)
	}
	if len(name) > mostDomain || strings.ContainsFunc(name, strange) || !strings.Contains(last, "@") {
		return ""
	}
	return name
}

// A Client asks an oracle by HTTP. It may be used concurrently.
type Client struct {
	url, token string
	http       *http.Transport // no http.Client: what is asked goes to whom the operator named, so none is redirected
}

// askTime is how long an answer may take, to its last byte: a language model on a small machine takes its time.
const askTime = 30 * time.Second

// NewClient returns a client of the endpoint at a URL, with a bearer token unless that is empty.
func NewClient(endpoint, token string) *Client {
	return &Client{url: endpoint, token: token, http: http.DefaultTransport.(*http.Transport).Clone()}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// host names the endpoint in logs: a URL may have a secret in its path.
func (c *Client) host() string {
	if u, err := url.Parse(c.url); err == nil {
		return u.Host
	}
	return "?"
}

// Ask returns the oracle's answer, Unlabelled if it says "unknown". An error has no part of the
// question, the answer or the URL.
func (c *Client) Ask(ctx context.Context, q *Question) (stream.Label, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	body, err := json.Marshal(q)
	if err != nil {
		return 0, fmt.Errorf("question for the oracle: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return 0, errors.New("ask the oracle: its URL cannot be used")
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.RoundTrip(request)
	if err != nil {
		return 0, fmt.Errorf("ask the oracle at %s: %w", c.host(), reason(err))
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, mostAnswer+1))
	switch {
	case err != nil:
		return 0, fmt.Errorf("answer of the oracle at %s: %w", c.host(), reason(err))
	case response.StatusCode != http.StatusOK:
		return 0, fmt.Errorf("the oracle at %s answers %d", c.host(), response.StatusCode)
	case len(text) > mostAnswer:
		return 0, fmt.Errorf("the oracle at %s answers more than %d bytes", c.host(), mostAnswer)
	}
	var answer struct {
		Label string `json:"label"`
	}
	if json.Unmarshal(text, &answer) == nil {
		switch answer.Label {
		case "spam":
			return stream.Spam, nil
		case "ham":
			return stream.Ham, nil
		case "unknown":
			return stream.Unlabelled, nil
		}
	}
	return 0, fmt.Errorf(`the oracle at %s answers without a "label" that is spam, ham or unknown`, c.host())
}

// reason returns why there is no answer. It has nothing that the machine wrote, which may be the question.
func reason(err error) error {
	dial, timeout := (*net.OpError)(nil), net.Error(nil)
	switch {
	case errors.Is(err, context.Canceled):
		return context.Canceled
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("it takes more than %v", askTime)
	case errors.As(err, &dial) && dial.Op == "dial":
		return dial
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return errors.New("its certificate cannot be verified")
	}
	return errors.New("it does not speak HTTP, or ends the connection")
}
