package milter

import (
	"bytes"
	"errors"
	"net"
	"net/smtp"
	"net/textproto"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/cmd/internal/testkit/debian"
)

// openForPrograms opens a door whose probability is that of the recipient's tenant: ham,
// hold or spam @example.com.
func openForPrograms(t *testing.T) *testDoor {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tenants.yaml")
	if err := os.WriteFile(file, []byte("recipients: {ham@example.com: ham, hold@example.com: hold, spam@example.com: spam}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tenants, err := gateway.OpenTenants(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return open(t, gateway.Config{Tenants: tenants, Marks: gateway.Marks{Tag: "[SPAM] ", SpamFields: true}},
		Config{QuarantineAt: .95, RejectAt: .99}, map[string]float64{"ham": .01, "hold": .96, "spam": .999})
}

// TestMiltertest runs a script of miltertest, which comes with opendkim.
func TestMiltertest(t *testing.T) {
	script, err := filepath.Abs("testdata/door.lua")
	if err != nil {
		t.Fatal(err)
	}
	cmd := debian.Command(t, "miltertest", "miltertest", "-s", script)
	addr := openForPrograms(t).listen(t, "127.0.0.1:0")
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Args = append(cmd.Args, "-D", "socket=inet:"+port+"@127.0.0.1", "-D", "text="+strings.TrimPrefix(rejectText, "550 5.7.1 "))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// received matches what Postfix adds: three fields of the delivery, and one Received.
var received = regexp.MustCompile(`^Return-Path: .*\nX-Original-To: .*\nDelivered-To: .*\n((?:X-.*\n)*)Received: .*\n\t.*\n\t.*\n`)

// TestPostfix sends mail through a real Postfix with the settings of deploy/mail: marked,
// held, refused, and without a door.
func TestPostfix(t *testing.T) {
	recipe, err := os.ReadFile("../../../../deploy/mail/postfix.cf")
	if err != nil {
		t.Fatal(err)
	}
	p := debian.NewPostfix(t, string(recipe))
	d := openForPrograms(t)
	d.listen(t, "unix:"+p.Folder("hamlet")+"/milter.sock")
	message := func(subject string) string {
		return "Received: from a by b\n\twith SMTP; today\nx-hamlet : ham\nDate: Mon, 2 Jan 2006 15:04:05 +0000\n" +
			"SUBJECT: " + subject + "\nX-Spam-Status: No\n\tat all\nFrom:Ann <ann@example.com>\nX-HAMLET: ham\n\tand ham\n" +
			"Message-ID: <1@example.com>\nX-Hamlet-Tag: x\n\n.\nFrom here\n\nno trailing blank \n"
	}
	const scored = "Received: from a by b\n\twith SMTP; today\nDate: Mon, 2 Jan 2006 15:04:05 +0000\n" +
		"SUBJECT: news\nFrom:Ann <ann@example.com>\nMessage-ID: <1@example.com>\n\n.\nFrom here\n\nno trailing blank \n"
	send := func(to ...string) error {
		t.Helper()
		return smtp.SendMail(p.Addr, nil, "ann@example.com", to, []byte(strings.ReplaceAll(message("news"), "\n", "\r\n")))
	}
	// delivered returns the fields at the top and the message below them.
	delivered := func(n int) (fields, rest string) {
		t.Helper()
		files := p.Delivered(n)
		b, err := os.ReadFile(files[len(files)-1])
		if err != nil {
			t.Fatal(err)
		}
		m := received.FindSubmatch(b)
		if m == nil {
			t.Fatalf("delivered\n%s", b)
		}
		if err := os.Remove(files[len(files)-1]); err != nil {
			t.Fatal(err)
		}
		return string(m[1]), string(bytes.TrimPrefix(b, m[0]))
	}

	if err := send("ham@example.com"); err != nil {
		t.Fatal(err)
	}
	fields, rest := delivered(1)
	if want := "X-Hamlet: ham; p=0.0100; lo=0.0100; hi=0.0100; model=default/0123456789ab\nX-Spam-Status: No, score=5.0 required=5.0\n"; !sameButScore(fields, want) {
		t.Errorf("ham has the fields\n%s", fields)
	}
	if rest != scored || d.client.last() != scored {
		t.Errorf("delivered\n%s\nscored\n%s\nwant\n%s", rest, d.client.last(), scored)
	}

	if err := send("spam@example.com", "other@example.com"); err != nil { // the other's is unsure
		t.Fatal(err)
	}
	for range 2 {
		fields, rest = delivered(1)
	}
	if !strings.HasPrefix(fields, "X-Hamlet: spam; p=0.9990;") || !strings.Contains(fields, "\nX-Hamlet-Tag: [SPAM]\nX-Spam-Flag: YES\nX-Spam-Status: Yes, ") {
		t.Errorf("spam has the fields\n%s", fields)
	}
	if want := strings.Replace(scored, ": news", ": [SPAM] news", 1); rest != want {
		t.Errorf("delivered\n%s\nwant\n%s", rest, want)
	}

	var refusal *textproto.Error
	if err := send("spam@example.com"); !errors.As(err, &refusal) || refusal.Code != 550 || !strings.HasPrefix(refusal.Msg, "5.7.1 This message looks like spam.") {
		t.Errorf("spam is refused with %v", err)
	}
	if err := send("hold@example.com"); err != nil || p.Held() != 1 {
		t.Errorf("spam that is to be held: %v, %d are", err, p.Held())
	}

	d.client.mu.Lock()
	d.client.err = os.ErrDeadlineExceeded
	d.client.mu.Unlock()
	if err := send("spam@example.com"); err != nil {
		t.Fatal(err)
	}
	if fields, rest := delivered(1); fields != "" || rest != scored {
		t.Errorf("without an answer it has the fields\n%s\nand is\n%s", fields, rest)
	}
	d.stop()
	d.close()
	if err := send("spam@example.com"); err != nil {
		t.Fatal(err)
	}
	// Postfix itself takes the blank before a colon away.
	if _, rest := delivered(1); rest != strings.Replace(message("news"), "x-hamlet :", "x-hamlet:", 1) {
		t.Errorf("without a door it is\n%s", rest)
	}
}

// sameButScore compares fields, without the number behind score=.
func sameButScore(got, want string) bool {
	number := regexp.MustCompile(`score=[-0-9.]+`)
	return number.ReplaceAllString(got, "") == number.ReplaceAllString(want, "")
}

// TestPostfixSpelling checks that a real Postfix's client does not choose the tenant by
// how it spells the recipient: all these messages are refused.
func TestPostfixSpelling(t *testing.T) {
	d := openForPrograms(t)
	p := debian.NewPostfix(t, "smtpd_milters = inet:"+d.listen(t, "127.0.0.1:0"), "milter_default_action = accept")
	for _, recipient := range []string{
		`"spam"@example.com`, `s\pam@example.com`, "spam@example.com.", "@host:spam@example.com", "@a,@b:spam@example.com",
		"list:spam@example.com;", "spam @example.com", "spam(x)@example.com", `spam@"example.com"`, `"spam@example.com"`,
		",spam@example.com", "SPAM@Example.COM", "spam+news@example.com", "spam%example.com", "example.com!spam",
	} {
		conn, err := textproto.Dial("tcp", p.Addr)
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			line string
			code int
		}{
			{"", 220},
			{"EHLO client.example.org", 250},
			{"MAIL FROM:<ann@example.org>", 250},
			{"RCPT TO:<" + recipient + ">", 250},
			{"DATA", 354},
			{"Subject: news\r\n\r\nHello.\r\n.", 550},
		} {
			if step.line != "" {
				err = conn.PrintfLine("%s", step.line)
			}
			if err == nil {
				_, _, err = conn.ReadResponse(step.code)
			}
			if err != nil {
				t.Errorf("%s: %q: %v", recipient, step.line, err)
				break
			}
		}
		_ = conn.Close()
	}
}
