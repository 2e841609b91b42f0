package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// firstPage is how many bytes the first page may have with all that it loads.
const firstPage = 100 << 10

// mostPages bounds a walk through the console.
const mostPages = 40

var varying = regexp.MustCompile(`[0-9a-f]{8,}|[0-9]+|=[^&]*`)

// walk follows the links from the first page and returns the pages that it finds. Of pages
// that differ in numbers and values alone it returns one. Each page is checked by visit.
func (b *tab) walk(visit func(path string)) (pages []string) {
	b.t.Helper()
	seen, queue := map[string]bool{}, []string{"/"}
	for len(queue) > 0 && len(pages) < mostPages {
		path := queue[0]
		queue = queue[1:]
		shape := varying.ReplaceAllString(path, "…")
		if seen[shape] {
			continue
		}
		seen[shape] = true
		b.open(path)
		pages = append(pages, path)
		queue = append(queue, evaluate[[]string](b, `[...document.querySelectorAll("a[href]")]
			.filter((a) => a.origin === location.origin && !a.hasAttribute("download"))
			.map((a) => a.pathname + a.search)`)...)
		if visit != nil {
			visit(path)
		}
		for _, f := range b.taken() {
			b.t.Errorf("%s: %s", path, f)
		}
	}
	return pages
}

// fits fails the test where the page is wider than the window.
func (b *tab) fits() {
	b.t.Helper()
	if !evaluate[bool](b, `document.documentElement.scrollWidth <= innerWidth`) {
		wide := evaluate[[]string](b, `[...document.querySelectorAll("body *")]
			.filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.parentElement.closest(".scroll, .chart-scroll, .sr"))
			.slice(0, 5).map((e) => e.outerHTML.slice(0, 150))`)
		b.t.Errorf("%s is wider than the window:\n%s", b.at(), strings.Join(wide, "\n"))
	}
}

// picture leaves a picture of the whole page where HAMLET_SCREENSHOTS says.
func (b *tab) picture(name string, width int64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, 600)) // a window that is taller than the page is no part of it
	height := evaluate[int64](b, `Math.min(document.documentElement.scrollHeight, 8000)`)
	b.view(name, width, max(height, 600))
}

// view leaves a picture of the top of the page.
func (b *tab) view(name string, width, height int64) {
	b.t.Helper()
	dir := os.Getenv("HAMLET_SCREENSHOTS")
	if dir == "" {
		return
	}
	b.do(chromedp.EmulateViewport(width, height))
	var picture []byte
	b.call("take a picture", func(ctx context.Context) (err error) {
		picture, err = chromedp.Run(ctx, chromedp.CaptureScreenshot())
		return err
	})
	if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

var unfit = regexp.MustCompile(`[^A-Za-z0-9]+`)

// looks checks the page at both widths and in both schemes.
func (b *tab) looks(path string) {
	b.t.Helper()
	name := strings.Trim(unfit.ReplaceAllString(path, "-"), "-")
	if name == "" {
		name = "now"
	}
	name = name[:min(len(name), 60)]
	for _, width := range []int64{1600, 400} {
		for _, scheme := range []string{"light", "dark"} {
			b.look(width, scheme)
			b.fits()
			if (width == 400) == (scheme == "dark") { // each width and each scheme once
				b.accessible()
			}
			b.picture(fmt.Sprintf("%s-%d-%s", name, width, scheme), width)
		}
	}
	b.reachable()
}

// reachable fails the test where Tab does not reach a control of the page, or shows no focus.
func (b *tab) reachable() {
	b.t.Helper()
	const controls = `[...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]')]
		.filter((e) => !e.disabled && e.checkVisibility() && !(e.type === "radio" && !e.checked && document.querySelector('input[type=radio]:checked[name="' + e.name + '"]')))`
	want := evaluate[int](b, `(() => { const all = `+controls+`; all.forEach((e, i) => e.dataset.control = i);
		document.activeElement.blur(); getSelection().removeAllRanges(); scrollTo(0, 0); return all.length })()`)
	reached := map[string]bool{}
	for range want + 5 {
		b.do(chromedp.KeyEvent("\t"))
		at := evaluate[[]string](b, `(() => { const e = document.activeElement, s = getComputedStyle(e);
			return [e.dataset.control ?? "", s.outlineStyle + " " + s.outlineWidth, e.outerHTML.slice(0, 150)] })()`)
		if at[0] == "" {
			continue
		}
		if !reached[at[0]] && (strings.HasPrefix(at[1], "none") || strings.HasSuffix(at[1], " 0px")) {
			b.t.Errorf("%s: the focus is not seen on %s", b.at(), at[2])
		}
		reached[at[0]] = true
	}
	if len(reached) < want {
		missed := evaluate[[]string](b, `[...document.querySelectorAll("[data-control]")].map((e) => e.dataset.control + " " + e.outerHTML.slice(0, 150))`)
		for _, m := range missed {
			if number, text, _ := strings.Cut(m, " "); !reached[number] {
				b.t.Errorf("%s: Tab does not reach %s", b.at(), text)
			}
		}
	}
}

// Each page loads without an error, fits both widths, and hinders nobody in either scheme.
// Its controls can be reached by keyboard, and it says the same without its script.
func TestPages(t *testing.T) {
	browser := startChromium(t)
	r := badFeed(t)
	r.score(messages(12)...)
	b := newTab(t, browser, r.origin)
	b.look(400, "light")
	b.open("/login")
	b.looks("/login")
	r.enter(b)
	pages := b.walk(b.looks)
	t.Logf("%d pages: %s", len(pages), strings.Join(pages, " "))

	b.look(1600, "light")
	b.open("/")
	if n := b.weight(); n > firstPage {
		t.Errorf("the first page has %d bytes, at most %d are wanted", n, firstPage)
	} else {
		t.Logf("the first page has %d bytes", n)
	}
	menu := evaluate[[]string](b, `[...document.querySelectorAll("nav a")].map((a) => a.pathname)`)
	if len(menu) < 8 {
		t.Errorf("the menu has only %s", menu)
	}
	// A page without its script has the same headings, tables and controls.
	const parts = `[...document.querySelectorAll("h1, h2, h3, caption, thead th, label, button")].filter((e) => !e.closest("details")).map((e) => e.textContent.trim().replace(/[0-9]+/g, "0")).join("\n")`
	with := map[string]string{}
	for _, path := range menu {
		b.open(path)
		with[path] = evaluate[string](b, parts)
	}
	b.scripts(false)
	for _, path := range menu {
		b.open(path)
		if got := evaluate[string](b, parts); got != with[path] {
			t.Errorf("%s without its script has\n%s\nand with it\n%s", path, got, with[path])
		}
	}
}

// messages are n messages of which a model of SpamAssassin's mail thinks differently.
func messages(n int) (all []string) {
	bodies := []string{
		"Please find the minutes of the meeting attached. Shall we have lunch on Friday?",
		"Congratulations! You have won $1,000,000. Click http://win.example/prize now, 100% free, act now!",
		"The patch for the kernel module compiles here; see http://lists.example/patch for the thread.",
		"Lose weight fast with our herbal pills. Order now and get 50% off. Unsubscribe at http://pills.example/out",
		"Your invoice for November is ready. Log in to your account to see it.",
	}
	for i := range n {
		all = append(all, fmt.Sprintf("Message-ID: <m%d@sender.example>\nFrom: Ann %d <ann%d@sender.example>\nTo: bob@example.com\nSubject: Message %d\nDate: Mon, 23 Nov 2026 10:%02d:00 +0000\n\n%s\nThis is line %d.\n",
			i, i, i, i, i%60, bodies[i%len(bodies)], i))
	}
	return all
}
