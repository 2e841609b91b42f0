package browser

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// texts are two messages to learn, for tests that need a model and no mail.
func texts(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "texts")
	if err := os.WriteFile(file, []byte("spam\twin a prize\nham\tlunch on friday\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// The link logs in once. Then it is of no use, in this browser or another.
func TestLogInByLink(t *testing.T) {
	browser := startChromium(t)
	r := startUp(t, "--format", "text", texts(t))
	b := newTab(t, browser, r.origin)
	b.open("/history?verdict=spam")
	if at := b.at(); !strings.Contains(at, "/login") {
		t.Fatalf("without a session the browser is at %s", at)
	}
	r.enter(b)
	b.open("/history")
	if text := b.text(); !strings.Contains(text, "Log out") {
		t.Fatalf("the history shows\n%s", text)
	}
	thief := newTab(t, browser, r.origin)
	thief.allow(410)
	thief.open(r.link)
	if text := thief.text(); !strings.Contains(text, "was used already") {
		t.Errorf("the used link shows\n%s", text)
	}
	thief.open("/history")
	if at := thief.at(); !strings.Contains(at, "/login") {
		t.Errorf("the link works twice: the thief is at %s", at)
	}
}

// A user comes in by name and password, does what the role says, and is out after a logout.
func TestLogInByPassword(t *testing.T) {
	browser := startChromium(t)
	r := withUsers(t, "--format", "text", texts(t))
	b := newTab(t, browser, r.origin)
	b.allow(401)
	r.logIn(b, "looker", "a wrong password")
	if text := b.text(); !strings.Contains(text, "Log in") || strings.Contains(text, "Log out") {
		t.Fatalf("a wrong password shows\n%s", text)
	}
	b.accessible()
	r.logIn(b, "looker", password)
	b.open("/history")
	if text := b.text(); !strings.Contains(text, "looker") {
		t.Fatalf("the looker sees\n%s", text)
	}
	b.open("/sources")
	if evaluate[bool](b, `!!document.querySelector('main form[method=post]')`) {
		t.Errorf("the looker is offered an action:\n%s", b.text())
	}
	// What a page hides, its handler refuses too.
	b.allow(403)
	b.open("/sources/withdraw?source=x")
	if text := b.text(); !strings.Contains(text, "role operate") {
		t.Errorf("the looker may withdraw:\n%s", text)
	}
	b.accessible()
	b.open("/history")
	b.click(`document.querySelector("form.who button")`)
	b.open("/history")
	if at := b.at(); !strings.Contains(at, "/login") {
		t.Errorf("after the logout the browser is at %s", at)
	}
	// A logout ends the session itself, and not only the cookie: the back button shows nothing.
	evaluate[bool](b, `(history.go(-2), true)`)
	b.await("the back button shows nothing", `document.readyState === "complete" && !document.body.innerText.includes("looker")`)
	r.logIn(b, "boss", password)
	b.open("/sources")
	if !evaluate[bool](b, `!!document.querySelector('main form[method=post]')`) {
		t.Errorf("the boss is offered no action:\n%s", b.text())
	}
}
