package milter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	mailtext "github.com/emersion/go-message/textproto"
	"github.com/emersion/go-milter"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/stream/mail"
)

const letter = `Received: from a by b
	with SMTP; today
From: Ann <ann@example.com>
SUBJECT:   news
X-Spam-Flag: NO

Hello.

Ann
`

// TestMarks checks every byte of the header that a message gets.
func TestMarks(t *testing.T) {
	const field = "X-Hamlet: spam; p=0.9900; lo=0.9900; hi=0.9900; model=default/0123456789ab\n"
	forged := "X-Hamlet: ham\n" + strings.Replace(letter, "From:", "x-hamlet : ham\nX-Hamlet-Tag:\nX-HAMLET: ham\n\tand ham\nFrom:", 1)
	plain := strings.Replace(letter, "\n\nHello.\n\nAnn\n", "\n", 1)
	for _, c := range []struct {
		name    string
		marks   gateway.Marks
		message string
		want    string
	}{
		{"the field", gateway.Marks{}, letter, field + plain},
		{"forged ones", gateway.Marks{}, forged, field + plain},
		{"the field of SpamAssassin", gateway.Marks{SpamFields: true}, letter,
			field + "X-Spam-Flag: YES\nX-Spam-Status: Yes, score=5.0 required=5.0\n" + strings.Replace(plain, "X-Spam-Flag: NO\n", "", 1)},
		{"a tag", gateway.Marks{Tag: "[SPAM] "}, letter,
			field + "X-Hamlet-Tag: [SPAM]\n" + strings.Replace(plain, "SUBJECT:   news", "SUBJECT: [SPAM] news", 1)},
		{"no subject", gateway.Marks{Tag: "[SPAM] "}, "From: a@example.com\n\nHello.\n",
			field + "X-Hamlet-Tag: [SPAM]\nFrom: a@example.com\nSubject: [SPAM]\n"},
		{"no body", gateway.Marks{}, "From: a@example.com\n", field + "From: a@example.com\n"},
	} {
		for version, offer := range map[uint32]struct {
			actions  milter.OptAction
			protocol milter.OptProtocol
		}{6: {allActions, allProtocol}, 2: {oldActions, oldProtocol}} {
			t.Run(fmt.Sprint(c.name, ", version ", version), func(t *testing.T) {
				d := open(t, gateway.Config{Marks: c.marks}, Config{}, map[string]float64{"default": .99})
				got := d.dialAs(t, version, offer.actions, offer.protocol).deliver(c.message, "bob@example.com")
				if got.String() != c.want || got.answer != 'a' || got.quarantined {
					t.Errorf("answered %q with the header\n%s\nwant\n%s", got.answer, got, c.want)
				}
				// Whoever reads the message again finds the one that was scored.
				_, body, _ := strings.Cut(c.message, "\n\n")
				before, after := mail.Parse([]byte(d.client.last())), mail.Parse([]byte(got.String()+"\n"+body))
				if string(before.Subject) != string(after.Subject) || mail.Identity("default", &before) != mail.Identity("default", &after) {
					t.Errorf("scored with the subject %q; read again with %q, or another identity", before.Subject, after.Subject)
				}
			})
		}
	}
}

// TestScoredBytes checks that the service sees what the mail server stores, however the
// protocol carries it.
func TestScoredBytes(t *testing.T) {
	d := open(t, gateway.Config{}, Config{}, nil)
	odd := "From:a@example.com\nSubject:\nTo:  two blanks\nX-Folded: a\n\tb\n  c\n\n\nline\r\nline\n\r\r\n.\nno end"
	for _, c := range []struct {
		version  uint32
		actions  milter.OptAction
		protocol milter.OptProtocol
	}{{6, allActions, allProtocol}, {6, allActions, allProtocol &^ milter.OptNoBodyReply}, {2, oldActions, oldProtocol}} {
		s := d.dialAs(t, c.version, c.actions, c.protocol)
		want := odd
		if c.version == 2 { // the blank is not shown, and most fields have one
			want = strings.NewReplacer("From:a", "From: a", "Subject:\n", "Subject: \n").Replace(odd)
		}
		for split := range len(odd) - strings.Index(odd, "\n\n") + 6 { // in two chunks, and the end
			s.command('M', milter.OptNoMailReply, "<>\x00")
			header, body, _ := strings.Cut(odd, "\n\n")
			s.content(header + "\n")
			body = strings.ReplaceAll(body, "\n", "\r\n")
			split = min(split, len(body))
			s.command('B', milter.OptNoBodyReply, body[:split])
			last := max(split, len(body)-3)
			s.command('B', milter.OptNoBodyReply, body[split:last])
			s.end(nil, []byte(body[last:]))
			if got := d.client.last(); got != want {
				t.Fatalf("version %d, split at %d: scored\n%q\nwant\n%q", c.version, split, got, want)
			}
		}
	}
	s := d.dial(t)
	s.deliver("X-Hamlet: ham\n" + letter)
	if got := d.client.last(); got != letter {
		t.Errorf("scored\n%q\nwant the message without the forged field\n%q", got, letter)
	}
	s.deliver("From: a@example.com\n")
	if got, want := d.client.last(), "From: a@example.com\n"; got != want {
		t.Errorf("scored %q, want %q", got, want)
	}
}

// TestActions checks what is done for which probabilities.
func TestActions(t *testing.T) {
	tenants := filepath.Join(t.TempDir(), "tenants.yaml")
	if err := os.WriteFile(tenants, []byte("recipients: {a@example.com: a, b@example.com: b, c@example.com: c, '@example.org': b}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	mapped, err := gateway.OpenTenants(tenants, nil)
	if err != nil {
		t.Fatal(err)
	}
	const never, all = 0, "a@example.com b@example.com c@example.com"
	for _, c := range []struct {
		cfg        Config
		recipients string
		p          map[string]float64
		want       string // what is done
		asked      string // tenants
		field      string // the probability in the field
	}{
		{Config{never, never}, "a@example.com", map[string]float64{"a": 1}, "deliver", "a", "1.0000"},
		{Config{.99, never}, "a@example.com", map[string]float64{"a": .99}, "reject", "a", ""},
		{Config{.99, never}, "a@example.com", map[string]float64{"a": .98}, "deliver", "a", "0.9800"},
		{Config{.01, .001}, "a@example.com", map[string]float64{"a": .5}, "deliver", "a", "0.5000"}, // unsure
		{Config{.99, .95}, "a@example.com", map[string]float64{"a": .95}, "quarantine", "a", "0.9500"},
		{Config{.99, .95}, "a@example.com", map[string]float64{"a": .94}, "deliver", "a", "0.9400"},
		{Config{.99, .95}, "a@example.com", map[string]float64{"a": .999}, "reject", "a", ""},
		{Config{never, .95}, "a@example.com", map[string]float64{"a": .999}, "quarantine", "a", "0.9990"},
		{Config{.99, .95}, all, map[string]float64{"a": 1, "b": 1, "c": 1}, "reject", "a b c", ""},
		{Config{.99, .95}, all, map[string]float64{"a": 1, "b": .96, "c": 1}, "quarantine", "a b c", "1.0000"},
		{Config{.99, .95}, all, map[string]float64{"a": 1, "b": 1, "c": .2}, "deliver", "a b c", "1.0000"},
		{Config{.99, .95}, "A@EXAMPLE.COM x@example.org y@example.org B@example.com", map[string]float64{"a": .2, "b": 1}, "deliver", "a b", "0.2000"},
		{Config{.99, .95}, "x@example.net", map[string]float64{"default": 1}, "reject", "default", ""},
		{Config{.99, .95}, "", map[string]float64{"default": 1}, "reject", "default", ""},
	} {
		d := open(t, gateway.Config{Tenants: mapped}, c.cfg, c.p)
		got := d.dial(t).deliver(letter, strings.Fields(c.recipients)...)
		did := map[bool]string{true: "quarantine", false: "deliver"}[got.quarantined]
		if got.answer == 'y' {
			did = "reject"
			if !strings.HasPrefix(got.reply, "550 5.7.1 ") || got.changes != 0 {
				t.Errorf("%+v: refused with %q and %d changes", c, got.reply, got.changes)
			}
		}
		if asked := strings.Join(d.client.asked, " "); did != c.want || asked != c.asked {
			t.Errorf("%+v: %s, asked for %s", c, did, asked)
		}
		if c.field != "" && !strings.Contains(got.String(), "; p="+c.field+";") {
			t.Errorf("%+v: the header is\n%s", c, got)
		}
	}
	d := open(t, gateway.Config{}, Config{QuarantineAt: .95}, map[string]float64{"default": 1})
	got := d.dialAs(t, 6, allActions&^milter.OptQuarantine, allProtocol).deliver(letter)
	if got.quarantined || !strings.HasPrefix(got.String(), "X-Hamlet: spam;") {
		t.Errorf("a mail server that cannot hold mail got %+v", got)
	}
}

// TestFailOpen checks that a message passes without a verdict, that forged fields go all
// the same, and that it is counted.
func TestFailOpen(t *testing.T) {
	for _, c := range []struct {
		name    string
		memory  int64
		err     error
		reason  string
		left    int // forged fields that stay
		offer   milter.OptAction
		message string
	}{
		{name: "no answer", err: errors.New("gone"), reason: "no-answer", message: letter},
		{name: "blank", reason: "refused", message: "\n\n\n"},
		{name: "too large", reason: "too-large", message: letter + strings.Repeat("0123456789abcde\n", 26<<16)},
		{name: "no memory", memory: 200 << 10, reason: "memory", message: letter + strings.Repeat("0123456789abcde\n", 25<<10)},
		{name: "a long field", reason: "broken", message: "X-Long: " + strings.Repeat("x", maxFrame) + "\n" + letter},
		{name: "no memory for a field", memory: 1, reason: "memory", message: "X-Long: " + strings.Repeat("x", 2*freeFrame) + "\n" + letter},
		{name: "a server that adds no fields", reason: "broken", message: letter, offer: allActions &^ milter.OptAddHeader},
		{name: "a server that changes no fields", reason: "broken", message: letter, offer: allActions &^ milter.OptChangeHeader, left: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := open(t, gateway.Config{Memory: c.memory}, Config{RejectAt: .9}, map[string]float64{"default": 1})
			d.client.err = c.err
			offer := allActions
			if c.offer != 0 {
				offer = c.offer
			}
			s := d.dialAs(t, 6, offer, allProtocol)
			got := s.deliver("X-Hamlet: ham\n" + c.message)
			if n := strings.Count(got.String(), "X-Hamlet: ham\n"); got.answer != 'a' || n != c.left || strings.Contains(got.String(), "p=") {
				t.Errorf("answered %q; %d forged fields stay, want %d", got.answer, n, c.left)
			}
			if n := d.metric(t, "unmarked_total", c.reason); n != 1 || d.metric(t, "unmarked_total", "") != 1 {
				t.Errorf("%v messages are counted as %s", n, c.reason)
			}
			d.client.err = nil
			if got := s.deliver("From: a@example.com\n\nHello.\n", "other@example.com"); c.offer == 0 && got.answer != 'y' {
				t.Errorf("the next message was answered with %q", got.answer)
			}
			d.stop()
			if held := d.metric(t, "held_bytes", ""); held != 0 {
				t.Errorf("%v bytes are still held", held)
			}
		})
	}
}

// TestNoEscape checks that a sender who goes beyond a bound still gets a mark, though
// nothing is refused for tenants that were not asked.
func TestNoEscape(t *testing.T) {
	tenants := &strings.Builder{}
	fmt.Fprintln(tenants, "recipients:")
	var recipients []string
	for i := range maxTenants + 1 {
		recipients = append(recipients, fmt.Sprintf("u%d@example.com", i))
		fmt.Fprintf(tenants, "  u%d@example.com: t%d\n", i, i)
	}
	file := filepath.Join(t.TempDir(), "tenants.yaml")
	if err := os.WriteFile(file, []byte(tenants.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	mapped, err := gateway.OpenTenants(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := open(t, gateway.Config{Tenants: mapped}, Config{RejectAt: .9}, map[string]float64{"default": .99, "t0": .99})
	s := d.dial(t)
	for name, c := range map[string]struct {
		message string
		to      []string
		asked   int
		left    int // forged fields that stay
		answer  byte
	}{
		"many tenants":       {letter, recipients, 1, 0, 'a'},
		"all the tenants":    {letter, recipients[:maxTenants], maxTenants, 0, 'a'}, // the others' mail is unsure
		"a long recipient":   {letter, []string{strings.Repeat("x", maxFrame) + "@example.com"}, 1, 0, 'a'},
		"many recipients":    {letter, slices.Repeat(recipients[:1], 1000), 1, 0, 'y'},
		"many forged fields": {strings.Repeat("X-Hamlet: ham\n", maxForged+2) + letter, recipients[:2], 2, 2, 'a'},
		"many forged names":  {forgedNames(maxNames/100+2) + letter, recipients[:2], 2, 2, 'a'},
	} {
		d.client.asked = nil
		got := s.deliver(c.message, c.to...)
		if got.answer != c.answer || len(d.client.asked) != c.asked {
			t.Errorf("%s: answered with %q after asking for %d tenants", name, got.answer, len(d.client.asked))
		}
		if got.answer == 'y' {
			continue
		}
		if n := strings.Count(strings.ToLower(got.String()), "x-hamlet"); n != c.left+1 || !strings.HasPrefix(got.String(), "X-Hamlet: spam;") {
			t.Errorf("%s: %d forged fields stay; the header begins %.200s", name, n-1, got)
		}
	}
}

// forgedNames returns n fields whose names are 100 bytes long and differ.
func forgedNames(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "x-hamlet-%091d: x\n", i)
	}
	return b.String()
}

// TestLibrary checks that the client of the library understands the door.
func TestLibrary(t *testing.T) {
	d := open(t, gateway.Config{}, Config{QuarantineAt: .9}, map[string]float64{"default": .99})
	client := milter.NewClientWithOptions("unix", d.addr, milter.ClientOptions{
		ActionMask: oldActions, ProtocolMask: allProtocol &^ (milter.OptNoBodyReply | milter.OptHeaderLeadingSpace),
	})
	s, err := client.Session()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 3 {
		for _, step := range []func() (*milter.Action, error){
			func() (*milter.Action, error) { return s.Conn("host", milter.FamilyInet, 25, "127.0.0.1") },
			func() (*milter.Action, error) { return s.Helo("host") },
			func() (*milter.Action, error) { return s.Mail("ann@example.com", nil) },
			func() (*milter.Action, error) { return s.Rcpt("bob@example.com", nil) },
			func() (*milter.Action, error) {
				return nil, s.Macros(milter.CodeHeader, "i", "ABC")
			},
			func() (*milter.Action, error) {
				h := mailtext.HeaderFromMap(textproto.MIMEHeader{"Subject": {"news"}})
				return s.Header(h)
			},
		} {
			if act, err := step(); err != nil || act != nil && act.Code != milter.ActContinue {
				t.Fatal(act, err)
			}
		}
		changes, act, err := s.BodyReadFrom(io.LimitReader(strings.NewReader(strings.Repeat("hello\r\n", 20_000)), 100_000))
		if err != nil || act.Code != milter.ActAccept || len(changes) != 2 {
			t.Fatal(changes, act, err)
		}
		if c := changes[0]; c.Code != milter.ActInsertHeader || c.HeaderName != "X-Hamlet" || !strings.HasPrefix(c.HeaderValue, "spam; p=0.9900;") {
			t.Errorf("first change: %+v", c)
		}
		if changes[1].Code != milter.ActQuarantine {
			t.Errorf("second change: %+v", changes[1])
		}
	}
	sent := strings.Repeat("hello\n", 100_000/7) + "hello"
	if want, err := mail.Reduce([]byte("Subject: news\n\n" + sent)); err != nil || d.client.last() != string(want) {
		t.Errorf("scored %d bytes, want %d: %.120q, want %.120q", len(d.client.last()), len(want), d.client.last(), want)
	}
}

func ExampleServer() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	g, err := gateway.New(gateway.Config{Asker: &fake{}, Deadline: 2 * time.Second, Memory: 256 << 20})
	if err != nil {
		fmt.Println(err)
		return
	}
	door := g.Door("milter")
	server := New(door, Config{QuarantineAt: .99, RejectAt: .9999})
	l, err := gateway.Listen("127.0.0.1:0", 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	cancel() // a signal ends the door
	fmt.Println(door.Serve(ctx, l, server.Handle))
	// Output: <nil>
}

// TestTCP checks that a connection by TCP, which acknowledges promptly, carries the same.
func TestTCP(t *testing.T) {
	d := open(t, gateway.Config{}, Config{}, nil)
	conn, err := net.Dial("tcp", d.listen(t, "127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s := negotiate(t, conn, 6, allActions, allProtocol)
	for range 3 {
		if got := s.deliver(letter); got.answer != 'a' || got.changes != 1 || d.client.last() != letter {
			t.Errorf("answered %q, scored\n%s", got.answer, d.client.last())
		}
	}
}
