package browser

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// step is a part of a story. What the pages may not do counts against it.
func (b *tab) step(name string, do func()) {
	whole := b.t
	ok := whole.Run(name, func(t *testing.T) {
		b.t = t
		defer func() { b.t = whole }()
		do()
		b.check()
	})
	if !ok && whole.Failed() {
		b.t = whole
	}
}

// has fails the test where the page lacks one of the texts.
func (b *tab) has(texts ...string) {
	b.t.Helper()
	shown := b.text()
	for _, want := range texts {
		if !strings.Contains(shown, want) {
			b.t.Fatalf("%s lacks %q:\n%s", b.at(), want, shown)
		}
	}
}

// drop drops a file on the page, as with a mouse.
func (b *tab) drop(content, name string) {
	b.t.Helper()
	evaluate[bool](b, fmt.Sprintf(`(() => { const data = new DataTransfer();
		data.items.add(new File([%q], %q, { type: "message/rfc822" }));
		document.querySelector(".drop").dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: data }));
		return true })()`, content, name))
}

// events returns how many events the served model has learnt.
func (r *rig) events() (n int) {
	r.t.Helper()
	var info struct{ Events int }
	if err := json.Unmarshal([]byte(r.run("", "info", "--server", r.nats, "--json")), &info); err != nil {
		r.t.Fatal(err)
	}
	return info.Events
}

// An operator sees that a feed gives wrong labels, and does something about it. A user labels
// what the model doubts, and asks why it thinks what it thinks.
func TestStory(t *testing.T) {
	browser := startChromium(t)
	r := badFeed(t)
	r.score(messages(12)...)
	b := newTab(t, browser, r.origin)
	b.look(1200, "light")
	r.enter(b)

	b.step("sees the incident", func() {
		b.open("/")
		b.await("the alarm is on the first page", `!!document.querySelector('#f-alarms a[href^="/incidents/"]')`)
		b.has("user-reports")
		b.click(`document.querySelector('#f-alarms a[href^="/incidents/"]')`)
		b.has("label-noise", "user-reports", "by nobody")
	})
	incident := evaluate[string](b, `location.pathname`)
	b.step("acknowledges it", func() {
		b.press("Acknowledge")
		b.has("by up at")
		b.accessible()
		b.open("/incidents")
		b.has("up ")
	})
	b.step("pins a version, and unpins it", func() {
		b.open("/model")
		b.click(`[...document.querySelectorAll('a[href*="do=pin"]')].at(-1)`)
		b.has("From then on")
		b.press("Pin version")
		b.has("pinned")
		b.accessible()
		b.picture("story-pinned", 1200)
		b.open("/")
		b.await("the first page says it", `document.querySelector("#f-model").innerText.includes("pinned")`)
		b.open("/model")
		b.press("Unpin")
		b.press("Unpin")
		b.has("nothing is pinned")
	})
	b.step("labels ten messages by keyboard", func() {
		before := r.events()
		b.open("/review")
		for i := range 10 {
			id := evaluate[string](b, `document.querySelector('main form input[name="id"]')?.value ?? ""`)
			if id == "" {
				b.t.Fatalf("the queue ends after %d messages:\n%s", i, b.text())
			}
			if i == 0 {
				b.accessible()
				b.fits()
				b.picture("story-review", 1200)
			}
			key := "h"
			if text := b.text(); strings.Contains(text, "prize") || strings.Contains(text, "pills") {
				key = "s"
			}
			b.follow(chromedp.KeyEvent(key))
		}
		b.await("all are learnt", `/Labelled today in the console: 10, of which 10 are learnt/.test(document.body.innerText)`)
		b.picture("story-reviewed", 1200)
		if after := r.events(); after < before+10 {
			b.t.Errorf("the model has learnt %d events, and %d before", after, before)
		}
	})
	b.step("explains a pasted message", func() {
		b.open("/why")
		b.do(chromedp.SetValue(chromedp.CSS("#paste"), messages(2)[1]))
		b.press("Explain")
		b.has("The answer", "The words that add most", "Log-odds", "prize")
		if n := evaluate[int](b, `document.querySelectorAll("pre .w").length`); n < 5 {
			b.t.Errorf("%d words of the message are coloured", n)
		}
		b.view("console", 1000, 1390) // .github/figures/console.png
		for _, width := range []int64{1200, 400} {
			for _, scheme := range []string{"light", "dark"} {
				b.look(width, scheme)
				b.fits()
				b.accessible()
				b.picture(fmt.Sprintf("story-why-%d-%s", width, scheme), width)
			}
		}
		b.look(1200, "light")
	})
	b.step("explains a dropped file", func() {
		b.open("/why")
		b.drop(messages(3)[2], "dropped.eml")
		if name := evaluate[string](b, `document.querySelector("#file").files[0]?.name ?? ""`); name != "dropped.eml" {
			b.t.Fatalf("the field has the file %q", name)
		}
		b.press("Explain")
		b.has("The answer", "kernel")
		file := filepath.Join(b.t.TempDir(), "chosen.eml")
		if err := os.WriteFile(file, []byte(messages(4)[3]), 0o600); err != nil {
			b.t.Fatal(err)
		}
		b.open("/why")
		b.do(chromedp.SetUploadFiles(chromedp.CSS("#file"), []string{file}))
		b.press("Explain")
		b.has("The answer", "pills")
	})
	b.step("reads the history", func() {
		b.open("/history")
		b.do(chromedp.SetValue(chromedp.CSS("#verdict"), "spam"))
		b.press("Search")
		if other := evaluate[int](b, `[...document.querySelectorAll("tbody .badge")].filter((e) => e.textContent !== "spam").length`); other > 0 {
			b.t.Errorf("%d of the decisions are not spam:\n%s", other, b.text())
		}
		b.open("/history?label=labelled")
		if n := evaluate[int](b, `document.querySelectorAll("main table")[0].tBodies[0].rows.length`); n < 10 {
			b.t.Errorf("%d decisions have a label:\n%s", n, b.text())
		}
		b.accessible()
	})
	b.step("withdraws the source", func() {
		b.open(incident)
		b.click(`document.querySelector('a.button[href^="/sources/withdraw"]')`)
		b.press("Make the plan")
		b.await("the plan is ready", `/ready|failed/.test(document.querySelector('[data-fragment="plans"]').innerText)`)
		b.click(`document.querySelector('[data-fragment="plans"] a')`)
		b.has("labels can be withdrawn", "Log loss before")
		b.accessible()
		b.fits()
		b.picture("story-plan", 1200)
		b.press("Withdraw ")
		b.has("withdrawals are written")
		for end := time.Now().Add(2 * patience); !strings.Contains(b.text(), "learnt and saved it"); time.Sleep(500 * time.Millisecond) {
			if time.Now().After(end) { // each takes some tenths of a second
				b.t.Fatalf("the withdrawals are not learnt:\n%s", b.text())
			}
			b.do(chromedp.Reload())
		}
		b.accessible()
		b.picture("story-withdrawn", 1200)
	})
	b.step("finds all of it in the audit", func() {
		b.open("/audit")
		b.has("acknowledge", "withdraw", "pin", "unpin", "label", "done")
		b.accessible()
		b.fits()
		b.picture("story-audit", 1200)
	})
}
