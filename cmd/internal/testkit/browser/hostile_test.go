package browser

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// attacks run a script, or fetch something from elsewhere, wherever they are taken for HTML.
var attacks = []string{
	`"><script>alert(1)</script>`,
	`<img src=x onerror=alert(2)>`,
	`</title></textarea></pre><svg onload=alert(3)>`,
	`' onmouseover='alert(4)' autofocus onfocus='alert(5)`,
	`<img src=https://evil.example/pixel.gif>`,
	`<style>*{background:url(https://evil.example/x.png)}</style>`,
	`<a href="javascript:alert(6)">win</a>`,
	`{{alert(7)}}</script><script src=https://evil.example/script.js></script>`,
}

// hostileMail is mail whose every part is an attack.
func hostileMail() (all []string) {
	for i, a := range attacks {
		all = append(all, fmt.Sprintf("Message-ID: <%d%s@sender.example>\nFrom: %q <a%d@sender.example>\nTo: %s\nSubject: %s\nX-%d: %s\n"+
			"MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n"+
			"--b\nContent-Type: text/plain\n\nprize %s javascript:alert(8) http://evil.example/%s\n"+
			"--b\nContent-Type: text/html\n\n<p>%s</p>\n"+
			"--b\nContent-Type: application/pdf; name=%q\nContent-Disposition: attachment; filename=%q\n\nx\n--b--\n",
			i, a, a, i, a, a, i, a, a, url.PathEscape(a), a, a, a))
	}
	return all
}

// hostileEvents writes labels whose source and identity are attacks.
func hostileEvents(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for i := range 400 {
		a := attacks[i%len(attacks)]
		event := map[string]string{"id": fmt.Sprint(i, a), "source": a, "label": "ham", "text": fmt.Sprintf("lunch on friday %d %s", i, a)}
		if i%2 == 1 {
			event["label"], event["text"] = "spam", fmt.Sprintf("win a prize %d %s", i, a)
		}
		if i > 250 && i%len(attacks) < 2 { // and these are wrong
			event["label"] = map[string]string{"ham": "spam", "spam": "ham"}[event["label"]]
		}
		line, err := json.Marshal(event)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	file := filepath.Join(t.TempDir(), "events.jsonl")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// harmless fails the test where text became part of a page's structure. Dialogs and requests
// that leave the console are noted by the tab.
func (b *tab) harmless() {
	b.t.Helper()
	found := evaluate[[]string](b, `[...document.querySelectorAll("*")].filter((e) =>
			e.localName === "script" && !/^\/static\/[0-9a-f]+\/console\.js$/.test(e.getAttribute("src") ?? "") ||
			["img", "iframe", "object", "embed", "style", "base"].includes(e.localName) ||
			[...e.attributes].some((a) => a.name.startsWith("on") || /^\s*javascript:/i.test(a.value)))
		.map((e) => e.outerHTML.slice(0, 200))`)
	for _, f := range found {
		b.t.Errorf("%s: text became %s", b.at(), f)
	}
}

// Whatever a message or a source says, it stays text: on every page, in what the page
// replaces while it is open, and in what is asked about a message.
func TestHostileText(t *testing.T) {
	browser := startChromium(t)
	r := startUp(t, "--format", "jsonl", hostileEvents(t))
	r.score(hostileMail()...)
	b := newTab(t, browser, r.origin)
	b.look(1200, "light")
	r.enter(b)
	visit := func(string) {
		b.harmless()
		if evaluate[bool](b, `!!document.querySelector("[data-live]")`) {
			b.await("the page follows", `document.getElementById("live").textContent.startsWith("This page follows")`)
			b.harmless()
		}
		b.fits()
	}
	b.allow(409) // nothing to go back to
	pages := b.walk(visit)
	t.Logf("%d pages", len(pages))
	b.look(400, "dark")
	for _, path := range []string{"/", "/sources", "/history"} {
		b.open(path)
		b.fits()
	}
	b.look(1200, "light")
	for i, m := range hostileMail() {
		b.open("/why")
		if i%2 == 0 {
			b.do(chromedp.SetValue(chromedp.CSS("#paste"), m))
		} else {
			b.drop(m, attacks[i]+".eml")
		}
		b.press("Explain")
		b.has("The answer")
		visit("/why")
	}
	for _, a := range attacks {
		for _, path := range []string{"/history?door=", "/history?id=", "/why?id=", "/sources/one?source=", "/incidents/", "/model?partition=", "/login?next=", "/nowhere/"} {
			b.allow(400)
			b.allow(404)
			b.open(path + url.QueryEscape(a))
			b.harmless()
		}
	}
}
