package spamd

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/cmd/internal/testkit/debian"
)

// recipe returns the statements of deploy/mail/exim.acl.
func recipe(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../../deploy/mail/exim.acl")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestExim lets Exim ask "spam =".
func TestExim(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	mx := debian.NewExim(t, fmt.Sprintf("127.0.0.1 %d", l.Addr().(*net.TCPAddr).Port), recipe(t))
	d := open(t, gateway.Config{})
	d.serve(t, l)

	lines := strings.ReplaceAll(spamMail, "\r\n", "\n")
	if mail, said := mx.Send(lines, "b@example.org"); mail != nil || !strings.Contains(said, "550 This message looks like spam.\r\n") {
		t.Errorf("spam: delivered %q\n%s", mail, said)
	}
	for _, test := range []struct{ name, message, score, report string }{
		{"ham", hamMail, "X-Spam-Score: -1.0 (-)\n", "X-Spam-Report: hamlet: ham.\n Probability of spam 0.0213, 90 % interval 0.0101 to 0.0452.\n"},
		{"unsure", "Subject: x\n\nperhaps\n", "X-Spam-Score: 4.9 (++++)\n", "hamlet: unsure.\n"},
		{"without an answer", lostMail, "X-Spam-Score: 0.0 (/)\n", "X-Spam-Report: hamlet: no answer, the message passes unmarked.\n"},
	} {
		delivered, said := mx.Send("X-Hamlet: ham; p=0.0000\nX-Spam-Score: -99\n"+test.message, "b@example.org")
		mail := string(delivered)
		if strings.Contains(mail, "p=0.0000") || strings.Contains(mail, "-99") {
			t.Errorf("%s: forged fields in\n%s", test.name, mail)
		}
		_, body, _ := strings.Cut(test.message, "\n\n")
		if !strings.Contains(mail, test.score) || !strings.Contains(mail, test.report) || !strings.Contains(mail, "\n\n"+body) {
			t.Errorf("%s: want %q and %q in\n%s\n%s", test.name, test.score, test.report, mail, said)
		}
	}
}

// TestEximAlone checks that mail passes without us.
func TestEximAlone(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().(*net.TCPAddr)
	_ = l.Close() // nobody listens there
	mx := debian.NewExim(t, fmt.Sprintf("127.0.0.1 %d", addr.Port), recipe(t))
	message := strings.ReplaceAll(spamMail, "\r\n", "\n")
	if mail, said := mx.Send(message, "b@example.org"); !strings.Contains(string(mail), "\n\nbuy pills\n") {
		t.Errorf("delivered:\n%s\n%s", mail, said)
	}
}
