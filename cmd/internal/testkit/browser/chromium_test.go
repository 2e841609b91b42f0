package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"hamlet/cmd/internal/testkit/debian"
)

// patience bounds each wait: these machines may be slow.
const patience = 90 * time.Second

// startChromium starts a Chromium with a profile of its own. It ends with the test. Without
// HAMLET_TEST_PROGRAMS the test is skipped; with it, a Chromium that is absent fails the test.
func startChromium(t *testing.T) context.Context {
	t.Helper()
	if os.Getenv(debian.Variable) == "" {
		t.Skipf("%s is not set: the console is not tested in a browser", debian.Variable)
	}
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v: apt-get install --no-install-recommends chromium", err)
	}
	dir := t.TempDir()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
		chromedp.Flag("headless", "new"), chromedp.DisableGPU, chromedp.UserDataDir(filepath.Join(dir, "profile")),
		chromedp.Env("HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_CACHE_HOME="+dir, "TZ=Europe/Vienna"))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium's sandbox refuses root
	}
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, stop := chromedp.NewContext(ctx)
	t.Cleanup(stop)
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	return ctx
}

// A tab is a tab with cookies of its own. It notes what no page may do; the test fails at
// its end if there was any of that.
type tab struct {
	t      *testing.T
	ctx    context.Context
	origin string // of the console: "http://127.0.0.1:port"

	mu      sync.Mutex
	allowed map[int64]bool              // statuses that the test expects
	faults  []string                    // what no page may do
	bytes   map[network.RequestID]int64 // of bodies, since open
	streams map[network.RequestID]bool  // of server-sent events
}

// newTab opens a tab at no page yet.
func newTab(t *testing.T, browser context.Context, origin string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx, origin: origin, allowed: map[int64]bool{}}
	b.do(chromedp.Navigate("about:blank"))
	if err := chromedp.Listen(ctx, b.note); err != nil {
		t.Fatal(err)
	}
	b.call("watch the network", func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
		return err
	})
	b.call("watch the log", func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, cdplog.Enable, cdp.Empty{})
		return err
	})
	b.call("without a cache", func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: true})
		return err
	})
	t.Cleanup(b.check)
	return b
}

// note is called for each event of the tab, in order.
func (b *tab) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fault := func(format string, args ...any) { b.faults = append(b.faults, fmt.Sprintf(format, args...)) }
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if o := e.ExceptionDetails.Exception; o != nil {
			text += " " + o.Description
		}
		fault("exception: %s", text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" || e.Type == "assert" {
			text := ""
			for _, a := range e.Args {
				text += " " + string(a.Value)
			}
			fault("console.%s:%s", e.Type, text)
		}
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == "error" || e.Entry.Level == "warning" {
			if e.Entry.Source == "network" {
				return // noted as a request
			}
			fault("the browser's log: %s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	case *page.EventJavascriptDialogOpening:
		fault("a dialog opens: %s", e.Message)
		go func() { // it would block the tab
			_, _ = chromedp.Call(b.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})
		}()
	case *network.EventRequestWillBeSent:
		if u := e.Request.URL; !strings.HasPrefix(u, b.origin+"/") && !strings.HasPrefix(u, "data:") && u != "about:blank" {
			fault("a request leaves the console: %s", u)
		}
		if e.Type == network.ResourceTypeEventSource {
			if b.streams == nil {
				b.streams = map[network.RequestID]bool{}
			}
			b.streams[e.RequestID] = true
		}
	case *network.EventResponseReceived:
		if s := e.Response.Status; s >= 400 && !b.allowed[s] {
			fault("%d for %s", s, e.Response.URL)
		}
	case *network.EventDataReceived:
		if b.bytes == nil {
			b.bytes = map[network.RequestID]int64{}
		}
		b.bytes[e.RequestID] += e.DataLength
	case *network.EventLoadingFailed:
		if !e.Canceled && e.ErrorText != "net::ERR_ABORTED" {
			fault("a request fails: %s %s %s", e.Type, e.ErrorText, e.BlockedReason)
		}
	}
}

// check reports what was noted since the last check.
func (b *tab) check() {
	b.t.Helper()
	for _, f := range b.taken() {
		b.t.Error(f)
	}
}

// taken returns what was noted since the last time.
func (b *tab) taken() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	faults := b.faults
	b.faults = nil
	return faults
}

// allow says that answers with this status are expected.
func (b *tab) allow(status int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allowed[status] = true
}

// call does one thing in the tab, with patience.
func (b *tab) call(what string, do func(context.Context) error) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := do(ctx); err != nil {
		b.check()
		b.t.Fatalf("%s at %s: %v", what, b.at(), err)
	}
}

// do runs actions in the tab. The first ones of a tab open it, and may not have a timeout.
func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if chromedp.FromContext(b.ctx).Target == nil {
		if err := chromedp.Do(b.ctx, actions...); err != nil {
			b.t.Fatal(err)
		}
		return
	}
	b.call("act", func(ctx context.Context) error { return chromedp.Do(ctx, actions...) })
}

// evaluate runs an expression in a tab. It goes through the debugger: the page's policy
// about scripts does not hold for it.
func evaluate[T any](b *tab, expression string) (value T) {
	b.t.Helper()
	b.call("evaluate "+expression[:min(len(expression), 120)], func(ctx context.Context) (err error) {
		value, err = chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
		return err
	})
	return value
}

// open goes to a page of the console.
func (b *tab) open(path string) {
	b.t.Helper()
	b.mu.Lock()
	b.bytes, b.streams = nil, nil
	b.mu.Unlock()
	b.do(chromedp.Navigate(b.origin + path))
}

// at returns where the tab is, for messages.
func (b *tab) at() string {
	ctx, cancel := context.WithTimeout(b.ctx, 5*time.Second)
	defer cancel()
	at, _ := chromedp.Run(ctx, chromedp.Location())
	return at
}

// follow does what leads to another page, and waits until that is loaded.
func (b *tab) follow(action chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	b.call("follow", func(ctx context.Context) error {
		_, err := chromedp.RunResponse(ctx, action)
		return err
	})
}

// press clicks the first button or link whose text starts so, and waits for the next page.
func (b *tab) press(text string) {
	b.t.Helper()
	b.click(fmt.Sprintf(`[...document.querySelectorAll("main button, main a, header button, header a")]
		.find((e) => e.checkVisibility() && e.textContent.trim().startsWith(%q))`, text))
}

// click clicks the element that an expression finds, and waits for the next page. It finds
// and clicks at once, because the page may replace the element at any time.
func (b *tab) click(expression string) {
	b.t.Helper()
	b.follow(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		found, err := chromedp.Evaluate[bool]("(() => { const at = "+expression+"; at?.click(); return !!at })()")(ctx, target)
		if err == nil && !found {
			err = fmt.Errorf("nothing to click: %s", expression)
		}
		return err
	}))
}

// weight returns the bytes of all bodies since open, without server-sent events.
func (b *tab) weight() (total int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, n := range b.bytes {
		if !b.streams[id] {
			total += n
		}
	}
	return total
}

// await polls an expression until it is true.
func (b *tab) await(what, expression string) {
	b.t.Helper()
	for end := time.Now().Add(patience); !evaluate[bool](b, expression); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			b.check()
			b.t.Fatalf("waited %v: %s; the page is %s:\n%s", patience, what, b.at(), b.text())
		}
	}
}

// text returns what the page shows.
func (b *tab) text() string {
	b.t.Helper()
	return evaluate[string](b, `document.body ? document.body.innerText : ""`)
}

// look says how the page is looked at.
func (b *tab) look(width int64, scheme string) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, 900))
	b.call("emulate a colour scheme", func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return err
	})
}

// scripts switches the pages' own scripts on or off.
func (b *tab) scripts(on bool) {
	b.t.Helper()
	b.call("switch scripts", func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !on})
		return err
	})
}
