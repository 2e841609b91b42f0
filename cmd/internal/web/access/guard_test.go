package access

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestLoginAndLogout(t *testing.T) {
	r := newRig(t, Config{Users: openUsers(t, threeUsers...)})
	b := r.browser()
	sent := b.get("/sources?since=7d")
	if sent.StatusCode != http.StatusSeeOther || sent.Header.Get("Location") != "/login?next=%2Fsources%3Fsince%3D7d" {
		t.Fatalf("without a session: %d to %s", sent.StatusCode, sent.Header.Get("Location"))
	}
	form := b.loginForm("ann", password)
	form.Set("next", "/sources?since=7d")
	in := b.send("POST", "/login", form)
	if in.StatusCode != http.StatusSeeOther || in.Header.Get("Location") != "/sources?since=7d" {
		t.Fatalf("the login: %d to %s", in.StatusCode, in.Header.Get("Location"))
	}
	for _, c := range in.Cookies() {
		if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" || c.Secure {
			t.Errorf("cookie %s on plain loopback", c)
		}
	}
	if got := body(t, b.get("/sources")); got != "ann is at /sources with look,label,operate from 127.0.0.1" {
		t.Errorf("the page says %q", got)
	}
	if s := b.get("/login").StatusCode; s != http.StatusSeeOther {
		t.Errorf("the login of who has logged in: %d", s)
	}
	stolen := *b
	stolen.cookies = map[string]string{"hamlet-session-8080": b.session()}
	token := b.token()
	if s := b.send("POST", "/logout", map[string][]string{FormField: {"x"}}).StatusCode; s != http.StatusForbidden {
		t.Errorf("a logout without the token: %d", s)
	}
	if s := b.send("POST", "/logout", map[string][]string{FormField: {token}}).StatusCode; s != http.StatusSeeOther || b.session() != "" {
		t.Errorf("the logout: %d, cookie %q", s, b.session())
	}
	if s := stolen.get("/sources").StatusCode; s != http.StatusSeeOther {
		t.Errorf("the session goes on after the logout: %d", s)
	}
	if got := body(t, b.get("/login?out=1")); !strings.Contains(got, "You have logged out") {
		t.Error("the login does not say that one has logged out")
	}
}

func TestWrongPasswords(t *testing.T) {
	r := newRig(t, Config{Users: openUsers(t, threeUsers...)})
	for _, c := range []struct{ name, password string }{
		{"ann", "wrong"}, {"nobody", password}, {"ann", ""}, {"", password}, {"cleo", password}, {"cleo", ""}, {"cleo", "-"},
		{"ann", password + strings.Repeat("x", 100)}, {"ann\x00", password}, {"<script>", password},
	} {
		b := r.browser()
		b.from = "192.0.2.1:1"
		got := b.send("POST", "/login", b.loginForm(c.name, c.password))
		if text := body(t, got); got.StatusCode != http.StatusUnauthorized || b.session() != "" || !strings.Contains(text, `role="alert"`) || strings.Contains(text, "<script>") {
			t.Errorf("%q with %q: %d, %s", c.name, c.password, got.StatusCode, text)
		}
	}
}

// Whoever logs in again has one session more, and in the same browser none. Good logins are no
// attempts that count.
func TestLoginAgain(t *testing.T) {
	r := newRig(t, Config{Users: openUsers(t, threeUsers...)})
	b := r.browser()
	form := b.loginForm("ann", password)
	cookie := b.cookies["hamlet-login-8080"]
	for i := range 2 * burst {
		b.cookies["hamlet-login-8080"] = cookie
		delete(b.cookies, "hamlet-known-8080") // as in a private window
		old := b.session()
		if s := b.send("POST", "/login", form).StatusCode; s != http.StatusSeeOther || b.session() == old {
			t.Fatalf("login %d: %d", i, s)
		}
	}
	if n := len(r.guard.sessions.open); n != 1 {
		t.Errorf("%d sessions of one browser", n)
	}
}

func TestHeadersOfEveryAnswer(t *testing.T) {
	r := newRig(t, Config{Users: openUsers(t, threeUsers...), TLS: true, Addr: ":443"})
	b := r.browser()
	b.host = "console.example"
	for _, target := range []string{"/", "/login", "/static/x.css", "/login/link/x", "/logout"} {
		h := b.get(target).Header
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options":  "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store", "Strict-Transport-Security": "max-age=2592000",
		} {
			if h.Get(name) != want {
				t.Errorf("%s: %s is %q, want %q", target, name, h.Get(name), want)
			}
		}
	}
	for _, c := range b.send("POST", "/login", b.loginForm("ann", password)).Cookies() {
		if !strings.HasPrefix(c.Name, "__Host-") || !c.Secure || c.Path != "/" || c.Domain != "" {
			t.Errorf("with TLS: cookie %s", c)
		}
	}
	plain := newRig(t, Config{Users: openUsers(t, threeUsers...)}).browser().get("/").Header
	if plain.Get("Strict-Transport-Security") != "" {
		t.Error("a server without TLS asks for TLS")
	}
}

// Sessions end when nobody uses them, and one day after the login in any case.
func TestSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Users: openUsers(t, threeUsers...)})
		idle, busy := r.loggedIn("ann"), r.loggedIn("bob")
		s := r.guard.sessions.use(busy.session(), time.Now())
		for range 23 {
			time.Sleep(time.Hour)
			if got := busy.get("/").StatusCode; got != http.StatusOK {
				t.Fatalf("a session in use: %d", got)
			}
		}
		if got := idle.get("/").StatusCode; got != http.StatusSeeOther {
			t.Errorf("a session that was idle for 23 hours: %d", got)
		}
		time.Sleep(time.Hour)
		if got := busy.get("/").StatusCode; got != http.StatusSeeOther || s.ended.Err() == nil {
			t.Errorf("a session after a day: %d", got)
		}
		r.guard.sessions.expire(time.Now())
		if n := len(r.guard.sessions.open); n != 0 {
			t.Errorf("%d sessions are kept", n)
		}
	})
}

// A change of the file counts at once, and a file with a mistake changes nothing.
func TestUsersAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := usersFile(t, threeUsers...)
		users, err := OpenUsers(path)
		if err != nil {
			t.Fatal(err)
		}
		r := newRig(t, Config{Users: users})
		ctx, cancel := context.WithCancel(t.Context())
		hangups, ended := make(chan os.Signal), make(chan struct{})
		go func() { r.guard.watch(ctx, hangups); close(ended) }()
		ann, bob := r.loggedIn("ann"), r.loggedIn("bob")
		write := func(text string) {
			t.Helper()
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			time.Sleep(6 * time.Second)
			synctest.Wait()
		}
		write("ann:nonsense\n")
		if a, b := ann.get("/").StatusCode, bob.get("/").StatusCode; a != 200 || b != 200 {
			t.Errorf("after a mistake: %d and %d", a, b)
		}
		stream := r.guard.sessions.use(bob.session(), time.Now()).ended
		write("ann:" + cheap + ":look\n")
		if got := ann.get("/").StatusCode; got != http.StatusSeeOther {
			t.Errorf("a session with a role that was taken: %d", got)
		}
		ann = r.loggedIn("ann")
		if got := body(t, ann.get("/")); !strings.Contains(got, "with look from") {
			t.Errorf("a role that was taken: %q", got)
		}
		if got := bob.get("/").StatusCode; got != http.StatusSeeOther || stream.Err() == nil {
			t.Errorf("a user who was removed: %d", got)
		}
		write("ann:" + cheap + ":operate\n")
		if got := body(t, ann.get("/")); !strings.Contains(got, "with look,operate from") {
			t.Errorf("a role that was given: %q", got)
		}
		other, err := newLine("ann", "another password", Look)
		if err != nil {
			t.Fatal(err)
		}
		write(other)
		if got := ann.get("/").StatusCode; got != http.StatusSeeOther {
			t.Errorf("a user with another password: %d", got)
		}
		// SIGHUP does not wait for the next look.
		if err := os.WriteFile(path, []byte("ann:"+cheap+":look\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		hangups <- syscall.SIGHUP
		synctest.Wait()
		r.loggedIn("ann")
		cancel()
		<-ended
	})
}

// A stream of events ends with its session, and after an hour. That of a user of the proxy, who
// has no session, ends sooner.
func TestStreamsEndWithTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Users: openUsers(t, threeUsers...)})
		streams := r.guard.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() }))
		b := r.loggedIn("ann")
		open := func() time.Duration {
			req := httptest.NewRequest("GET", "http://127.0.0.1:8080/live", nil)
			req.RemoteAddr = b.from
			req.AddCookie(&http.Cookie{Name: "hamlet-session-8080", Value: b.session()})
			began := time.Now()
			streams.ServeHTTP(httptest.NewRecorder(), req)
			return time.Since(began)
		}
		if d := open(); d != longestGet {
			t.Errorf("a stream lasted %v", d)
		}
		time.AfterFunc(time.Minute, func() { r.guard.sessions.drop(b.session()) })
		if d := open(); d != time.Minute {
			t.Errorf("a stream lasted %v, and its session a minute", d)
		}
		r = newRig(t, Config{Users: openUsers(t, threeUsers...), Hosts: []string{"127.0.0.1"}, Proxy: &Proxy{From: prefixes(t, "127.0.0.1"), UserHeader: "X-User"}})
		streams = r.guard.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() }))
		req := httptest.NewRequest("GET", "http://127.0.0.1:8080/live", nil)
		req.RemoteAddr = b.from
		req.Header.Set("X-User", "cleo")
		began := time.Now()
		streams.ServeHTTP(httptest.NewRecorder(), req)
		if d := time.Since(began); d != longestProxyGet {
			t.Errorf("a stream of a user of the proxy lasted %v", d)
		}
	})
}

func TestNobodyCouldComeIn(t *testing.T) {
	for _, cfg := range []Config{{}, {Proxy: &Proxy{From: prefixes(t, "192.0.2.1")}}} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
}

func TestLoginByLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Links: true})
		operator := User{Name: "operator", Role: Look | Label | Operate}
		path := r.guard.NewLink(operator)
		b := r.browser()
		if got := body(t, b.get("/login")); !strings.Contains(got, "Open the link") || strings.Contains(got, "password") {
			t.Errorf("without users the login says %s", got)
		}
		for range 3 { // as programs that preview links do
			if got := b.get(path); got.StatusCode != 200 || !strings.Contains(body(t, got), "<button") {
				t.Fatalf("the page of a link: %d", got.StatusCode)
			}
		}
		if s := b.send("POST", path, nil).StatusCode; s != http.StatusForbidden {
			t.Errorf("the button without the token: %d", s)
		}
		press := func(b *browser, path string) *http.Response {
			form := map[string][]string{}
			if m := tokenInput.FindStringSubmatch(body(t, b.get(path))); m != nil {
				form[FormField] = m[1:]
			}
			return b.send("POST", path, form)
		}
		if in := press(b, path); in.StatusCode != http.StatusSeeOther || in.Header.Get("Location") != "/" {
			t.Fatalf("the button: %d", in.StatusCode)
		}
		if got := body(t, b.get("/")); !strings.HasPrefix(got, "operator is at / with look,label,operate") {
			t.Errorf("by the link: %q", got)
		}
		if s := b.get("/").StatusCode; s != 200 {
			t.Errorf("a session by a link: %d", s)
		}
		other := r.browser()
		if got := press(other, path); got.StatusCode != http.StatusGone || other.session() != "" {
			t.Errorf("the link a second time: %d", got.StatusCode)
		}
		late := r.guard.NewLink(operator)
		time.Sleep(linkLife)
		if got := press(other, late); got.StatusCode != http.StatusGone || other.session() != "" {
			t.Errorf("the link after 15 minutes: %d", got.StatusCode)
		}
		first := r.guard.NewLink(operator)
		for range 10 * maxLinks {
			time.Sleep(time.Millisecond)
			r.guard.NewLink(operator)
		}
		if s := other.get(first).StatusCode; s != http.StatusGone || len(r.guard.links.open) > maxLinks {
			t.Errorf("%d links are kept, the first answers %d", len(r.guard.links.open), s)
		}
	})
}
