package access

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A form counts only with the token of its own session, from a page of the console.
func TestForeignForms(t *testing.T) {
	r := newRig(t, Config{Users: openUsers(t, threeUsers...)})
	ann, bob := r.loggedIn("ann"), r.loggedIn("bob")
	again := r.loggedIn("ann")
	good := ann.token()
	for _, c := range []struct {
		what, token string
		headers     http.Header
		want        int
	}{
		{"good", good, nil, 200},
		{"good, by a browser that says where from", good, http.Header{"Sec-Fetch-Site": {"same-origin"}, "Origin": {"http://127.0.0.1:8080"}}, 200},
		{"good, without a referrer", good, http.Header{"Sec-Fetch-Site": {"same-origin"}, "Origin": {"null"}}, 200},
		{"good, by an old browser", good, http.Header{"Origin": {"http://127.0.0.1:8080"}}, 200},
		{"missing", "", nil, 403},
		{"cut", good[:len(good)-1], nil, 403},
		{"longer", good + "A", nil, 403},
		{"of another user", bob.token(), nil, 403},
		{"of another session", again.token(), nil, 403},
		{"of the login", ann.loginForTest(), nil, 403},
		{"the session's id", ann.session(), nil, 403},
		{"good, but another site", good, http.Header{"Sec-Fetch-Site": {"cross-site"}}, 403},
		{"good, but another port", good, http.Header{"Sec-Fetch-Site": {"same-site"}, "Origin": {"http://127.0.0.1:3000"}}, 403},
		{"good, but another origin", good, http.Header{"Origin": {"https://evil.example"}}, 403},
		{"good, but another port's origin", good, http.Header{"Origin": {"http://127.0.0.1:3000"}}, 403},
		{"good, but no origin", good, http.Header{"Origin": {"null"}}, 403},
		{"good, but nonsense", good, http.Header{"Origin": {"http://%"}}, 403},
	} {
		r.done, ann.headers = nil, c.headers
		form := url.Values{"version": {"7"}}
		if c.token != "" {
			form.Set(FormField, c.token)
		}
		got := ann.send("POST", "/pin", form).StatusCode
		if got != c.want || (len(r.done) == 1) != (c.want == 200) {
			t.Errorf("token %s: %d, done %q, want %d", c.what, got, r.done, c.want)
		}
		if c.want == 200 && (len(r.done) != 1 || r.done[0] != "ann pins 7") {
			t.Errorf("token %s: the page reads %q", c.what, r.done)
		}
	}
	// A GET changes nothing, with a token too.
	ann.headers, r.done = nil, nil
	ann.get("/pin?version=7&csrf=" + good)
	if len(r.done) > 0 {
		t.Error("a GET pinned")
	}
}

// loginForTest returns the token of a form of the login for this browser.
func (b *browser) loginForTest() string {
	return b.guard.sign("login", b.session())
}

// The token is found in large forms too, and the page reads the whole form.
func TestTokenInUploads(t *testing.T) {
	r := newRig(t, Config{Users: openUsers(t, threeUsers...)})
	ann := r.loggedIn("ann")
	large := strings.Repeat("x", 300_000)
	upload := func(first bool, token string) *http.Response {
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		if first {
			_ = w.WriteField(FormField, token)
		}
		f, _ := w.CreateFormFile("file", "<script>.eml")
		_, _ = f.Write([]byte(large))
		_ = w.WriteField("version", large)
		if !first {
			_ = w.WriteField(FormField, token)
		}
		_ = w.Close()
		req := httptest.NewRequest("POST", "/pin", &b)
		req.Header.Set("Content-Type", w.FormDataContentType())
		return ann.do(req)
	}
	token := ann.token()
	if s := upload(true, token).StatusCode; s != 200 || len(r.done) != 1 || r.done[0] != "ann pins "+large {
		t.Errorf("an upload: %d", s)
	}
	for _, s := range []int{upload(false, token).StatusCode, upload(true, "x").StatusCode, upload(true, strings.Repeat("y", 1000)).StatusCode} {
		if s != 403 || len(r.done) != 1 {
			t.Errorf("an upload without the token before the file: %d", s)
		}
	}
	r.done = nil
	if s := ann.send("POST", "/pin", url.Values{FormField: {token}, "version": {large}}).StatusCode; s != 200 || r.done[0] != "ann pins "+large {
		t.Errorf("a long form: %d", s)
	}
	// What was read may end within the token.
	for cut := range 3 {
		r.done = nil
		pad := strings.Repeat("x", firstOfForm-len("a=&csrf=")-len(token)+1-cut)
		req := httptest.NewRequest("POST", "/pin", strings.NewReader("a="+pad+"&csrf="+token+"AAAA&version=1"))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if s := ann.do(req).StatusCode; s != 403 {
			t.Errorf("a token that is cut: %d", s)
		}
	}
	for _, kind := range []string{"", "text/plain", "application/json", "multipart/form-data", "multipart/form-data; boundary=" + strings.Repeat("b", 100)} {
		req := httptest.NewRequest("POST", "/pin", strings.NewReader("csrf="+token))
		req.Header.Set("Content-Type", kind)
		if s := ann.do(req).StatusCode; s != 403 {
			t.Errorf("a body of type %q: %d", kind, s)
		}
	}
}

// Nobody else logs a browser in.
func TestForeignLogin(t *testing.T) {
	r := newRig(t, Config{Users: openUsers(t, threeUsers...)})
	attacker, victim := r.browser(), r.browser()
	form := attacker.loginForm("bob", password)
	if s := victim.send("POST", "/login", form).StatusCode; s != 403 || victim.session() != "" {
		t.Errorf("a form of the attacker, without a cookie: %d", s)
	}
	victim.get("/login")
	if s := victim.send("POST", "/login", form).StatusCode; s != 403 || victim.session() != "" {
		t.Errorf("a form of the attacker: %d", s)
	}
}

// A session's id is always made by the login.
func TestSessionFixation(t *testing.T) {
	r := newRig(t, Config{Users: openUsers(t, threeUsers...)})
	b, chosen := r.browser(), rand.Text()
	b.cookies["hamlet-session-8080"] = chosen
	if s := b.login("ann", password); s != http.StatusSeeOther || b.session() == chosen {
		t.Fatalf("%d, session %s", s, b.session())
	}
	attacker := r.browser()
	attacker.cookies["hamlet-session-8080"] = chosen
	if s := attacker.get("/").StatusCode; s != http.StatusSeeOther {
		t.Errorf("the id that was chosen before: %d", s)
	}
	// An attacker who has a session of his own gives it to the victim.
	bob := r.loggedIn("bob")
	victim := r.browser()
	victim.login("ann", password) // makes the cookies of a login
	old := bob.session()
	form := r.browser()
	form.cookies["hamlet-session-8080"] = old
	form.send("POST", "/logout", url.Values{FormField: {bob.token()}})
	if s := bob.get("/").StatusCode; s != http.StatusSeeOther {
		t.Errorf("a session that was logged out: %d", s)
	}
	// Ids in the memory are hashes.
	for sum := range r.guard.sessions.open {
		if strings.Contains(string(sum[:]), victim.session()[:8]) {
			t.Error("the memory has the id")
		}
	}
}

func TestRoles(t *testing.T) {
	r := newRig(t, Config{Users: openUsers(t, threeUsers...)})
	for name, want := range map[string]int{"ann": 200, "bob": 403} {
		b := r.loggedIn(name)
		r.done = nil
		got := b.send("POST", "/label", url.Values{FormField: {b.token()}})
		if got.StatusCode != want || (len(r.done) == 1) != (want == 200) {
			t.Errorf("%s labels: %d, want %d", name, got.StatusCode, want)
		}
	}
}

// No path leads around the login, and only files are below /static/.
func TestPathsLeadNowhere(t *testing.T) {
	r := newRig(t, Config{Users: openUsers(t, threeUsers...)})
	b := r.browser()
	for _, target := range []string{
		"/static/../sources", "/static/%2e%2e/sources", "/static/..%2fsources", "/static/x/../../sources", "/static//../sources",
		"/static/%2e%2e%2fsources", "/static/..%5csources", "/static%2fx", "/static", "//static/x", "/static//etc/passwd", "/STATIC/x",
		"/./static/x", "/login/../sources", "/login/link/../../sources", "/login/", "/loginx", "/logout/x", "/live", "/", "/sources/..%00",
	} {
		got := b.get(target)
		if text := body(t, got); got.StatusCode == 200 && strings.Contains(text, " is at ") || strings.HasPrefix(text, "static ") {
			t.Errorf("%s: %d, %s", target, got.StatusCode, text)
		}
	}
	if got := b.get("/static/1234/style.css"); got.StatusCode != 200 {
		t.Errorf("a style: %d", got.StatusCode)
	}
	for _, method := range []string{"PUT", "DELETE", "CONNECT", "TRACE", "OPTIONS", "PATCH", "get"} {
		if s := b.send(method, "/static/x", nil).StatusCode; s != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, s)
		}
	}
	if s := b.send("POST", "/static/x", nil).StatusCode; s != http.StatusUnauthorized {
		t.Errorf("a POST to a file: %d", s)
	}
	if s := b.send("POST", "/pin", nil).StatusCode; s != http.StatusUnauthorized || len(r.done) > 0 {
		t.Errorf("a POST of nobody: %d", s)
	}
	b.headers = http.Header{"Accept": {"text/event-stream"}}
	if s := b.get("/live").StatusCode; s != http.StatusUnauthorized {
		t.Errorf("a stream of nobody: %d", s)
	}
}

// The login leads back into the console alone.
func TestNextStaysHere(t *testing.T) {
	for next, want := range map[string]string{
		"": "/", "/sources?since=7d": "/sources?since=7d", "/incidents/1": "/incidents/1",
		"//evil.example": "/", `/\evil.example`: "/", "https://evil.example/": "/", "evil.example": "/", "/\t/evil.example": "/",
		"/login": "/", "/logout": "/", "/live?page=/": "/", "/../x": "/", "javascript:alert(1)": "/", "/x\r\nSet-Cookie: a=b": "/",
		"/" + strings.Repeat("x", 2000): "/",
	} {
		if got := safeNext(next); got != want {
			t.Errorf("%q leads to %q, want %q", next, got, want)
		}
	}
}

// Only the proxy's headers count, and only where each comes once.
func TestForgedProxyHeaders(t *testing.T) {
	for _, users := range []*Users{nil, openUsers(t, threeUsers...)} {
		p := &Proxy{From: prefixes(t, "192.0.2.0/28", "2001:db8::1"), UserHeader: "X-Remote-User"}
		if users == nil {
			p.RolesHeader = "X-Remote-Roles"
		}
		r := newRig(t, Config{Proxy: p, Users: users, Hosts: []string{"console.example"}})
		for _, c := range []struct {
			what, from string
			headers    http.Header
			want       string // of the page; empty: refused
		}{
			{"the proxy", "192.0.2.3:1", http.Header{"X-Remote-User": {"cleo"}, "X-Remote-Roles": {"label"}}, "cleo is at / with look,label from 192.0.2.3"},
			{"the proxy, by IPv6", "[2001:db8::1]:1", http.Header{"X-Remote-User": {"cleo"}, "X-Remote-Roles": {"label, staff"}, "X-Forwarded-For": {"2001:db8::5"}}, "cleo is at / with look,label from 2001:db8::5"},
			{"the proxy, mapped", "[::ffff:192.0.2.3]:1", http.Header{"X-Remote-User": {"cleo"}, "X-Remote-Roles": {"label"}, "X-Forwarded-For": {"198.51.100.1, 203.0.113.9, 192.0.2.4"}}, "cleo is at / with look,label from 203.0.113.9"},
			{"another address", "192.0.2.16:1", http.Header{"X-Remote-User": {"cleo"}, "X-Remote-Roles": {"label"}}, ""},
			{"this machine", "127.0.0.1:1", http.Header{"X-Remote-User": {"cleo"}, "X-Remote-Roles": {"label"}}, ""},
			{"another that says it is the proxy", "203.0.113.9:1", http.Header{"X-Remote-User": {"cleo"}, "X-Remote-Roles": {"label"}, "X-Forwarded-For": {"192.0.2.3"}, "X-Real-Ip": {"192.0.2.3"}, "Forwarded": {"for=192.0.2.3"}}, ""},
			{"no user", "192.0.2.3:1", http.Header{"X-Remote-Roles": {"label"}}, ""},
			{"empty user", "192.0.2.3:1", http.Header{"X-Remote-User": {""}, "X-Remote-Roles": {"label"}}, ""},
			{"two users", "192.0.2.3:1", http.Header{"X-Remote-User": {"cleo", "ann"}, "X-Remote-Roles": {"label"}}, ""},
			{"two lists of roles", "192.0.2.3:1", http.Header{"X-Remote-User": {"eve"}, "X-Remote-Roles": {"look", "operate"}}, ""},
			{"no roles", "192.0.2.3:1", http.Header{"X-Remote-User": {"eve"}, "X-Remote-Roles": {"staff,root"}}, ""},
			{"control characters", "192.0.2.3:1", http.Header{"X-Remote-User": {"eve\u202eeno"}, "X-Remote-Roles": {"label"}}, ""},
			{"a long name", "192.0.2.3:1", http.Header{"X-Remote-User": {strings.Repeat("e", 129)}, "X-Remote-Roles": {"label"}}, ""},
			{"another spelling", "192.0.2.3:1", http.Header{"X_Remote_User": {"cleo"}, "X-Remote-Roles": {"label"}}, ""},
		} {
			b := r.browser()
			b.from, b.headers, b.host = c.from, c.headers, "console.example"
			got := b.get("/")
			if text := body(t, got); c.want == "" && (got.StatusCode != http.StatusForbidden || strings.Contains(text, " is at ")) || c.want != "" && text != c.want {
				t.Errorf("%s: %d, %s", c.what, got.StatusCode, text)
			}
		}
		// Forms have a token of the user.
		b, eve := r.browser(), r.browser()
		b.from, b.host, b.headers = "192.0.2.3:1", "console.example", http.Header{"X-Remote-User": {"cleo"}, "X-Remote-Roles": {"label"}}
		eve.from, eve.host, eve.headers = b.from, b.host, http.Header{"X-Remote-User": {"ann"}, "X-Remote-Roles": {"label"}}
		if s := b.send("POST", "/pin", url.Values{FormField: {eve.token()}}).StatusCode; s != 403 {
			t.Errorf("a form of another user: %d", s)
		}
		b.headers.Set("Origin", "https://console.example")
		b.host = "192.0.2.200:8080" // the proxy's own name for the console
		if s := b.send("POST", "/pin", url.Values{FormField: {b.token()}}).StatusCode; s != 200 {
			t.Errorf("a form by way of the proxy: %d", s)
		}
	}
}

// A name that is made to point at this machine opens nothing (DNS rebinding).
func TestHosts(t *testing.T) {
	users := openUsers(t, threeUsers...)
	for _, c := range []struct {
		cfg       Config
		good, bad []string
	}{
		{Config{Addr: "127.0.0.1:8080", Hosts: []string{"mail.example"}},
			[]string{"localhost", "localhost:8080", "LOCALHOST:1", "127.0.0.1:8080", "[::1]:8080", "[::1]", "127.8.0.1", "mail.example:8080", "Mail.Example."},
			[]string{"", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example:8080", "192.0.2.1:8080", "mail.example.evil.example", "0.0.0.0"}},
		{Config{Addr: "0.0.0.0:443", TLS: true}, []string{"mail.example", "192.0.2.1"}, []string{""}},
		{Config{Addr: "0.0.0.0:443", TLS: true, Hosts: []string{"mail.example"}}, []string{"mail.example:443", "192.0.2.1"}, []string{"evil.example", "localhost"}},
		{Config{Addr: "127.0.0.1:8080", Proxy: &Proxy{From: prefixes(t, "127.0.0.1")}, Hosts: []string{"mail.example"}}, []string{"mail.example", "127.0.0.1:8080"}, []string{"evil.example"}},
	} {
		c.cfg.Users = users
		b := newRig(t, c.cfg).browser()
		for _, b.host = range c.good {
			if s := b.get("/login").StatusCode; s != 200 {
				t.Errorf("%+v: host %q: %d", c.cfg, b.host, s)
			}
		}
		for _, b.host = range c.bad {
			if s := b.get("/login").StatusCode; s != http.StatusMisdirectedRequest {
				t.Errorf("%+v: host %q: %d", c.cfg, b.host, s)
			}
		}
	}
}

// Ten thousand attempts keep the memory as it is. They do not keep the user out.
func TestManyAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Users: openUsers(t, threeUsers...)})
		ann := r.loggedIn("ann")
		token := r.browser()
		form := token.loginForm("ann", "wrong")
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		statuses := map[int]int{}
		for i := range 10_000 {
			token.from = fmt.Sprintf("198.%d.%d.1:1", i>>8&255, i&255) // another address each
			if i%2 == 1 {
				form.Set("name", fmt.Sprint("user", i)) // another name each
				token.from = "203.0.113.1:1"
			} else {
				form.Set("name", "ann")
			}
			statuses[token.send("POST", "/login", form).StatusCode]++
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if statuses[401] > 3*burst || statuses[401] < burst || statuses[401]+statuses[429] != 10_000 {
			t.Errorf("answers: %v", statuses)
		}
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
			t.Errorf("the memory grew by %d bytes", grown)
		}
		if n := len(r.guard.sessions.open); n != 1 {
			t.Errorf("%d sessions", n)
		}
		// The user comes in with the browser that is known, even from the address of the attack.
		ann.from = "203.0.113.1:2"
		delete(ann.cookies, "hamlet-session-8080")
		if s := ann.login("ann", password); s != http.StatusSeeOther {
			t.Errorf("the user: %d", s)
		}
		// The cookie of a known browser does not help with other names, nor for ever.
		ann.cookies["hamlet-known-8080"] = knownCookie("bob", []byte(cheap))
		delete(ann.cookies, "hamlet-session-8080")
		if s := ann.login("ann", password); s != http.StatusTooManyRequests {
			t.Errorf("with the cookie of another user: %d", s)
		}
		late := r.browser()
		got := late.send("POST", "/login", late.loginForm("ann", password))
		if got.StatusCode != http.StatusTooManyRequests || got.Header.Get("Retry-After") == "" {
			t.Errorf("another browser during the attack: %d", got.StatusCode)
		}
		time.Sleep(refill)
		if s := late.login("ann", password); s != http.StatusSeeOther {
			t.Errorf("the user after a while: %d", s)
		}
	})
}

// Of many who press the button of one link at once, one comes in.
func TestLinkIsTakenOnce(t *testing.T) {
	r := newRig(t, Config{Links: true})
	path := r.guard.NewLink(User{Name: "operator", Role: Look})
	statuses := make(chan int, 8)
	start := make(chan struct{})
	for range cap(statuses) {
		b := r.browser()
		m := tokenInput.FindStringSubmatch(body(t, b.get(path)))
		if m == nil {
			t.Fatal("the link has no button")
		}
		go func() {
			<-start
			statuses <- b.send("POST", path, url.Values{FormField: {m[1]}}).StatusCode
		}()
	}
	close(start)
	in := 0
	for range cap(statuses) {
		switch s := <-statuses; s {
		case http.StatusSeeOther:
			in++
		case http.StatusGone:
		default:
			t.Errorf("status %d", s)
		}
	}
	if in != 1 {
		t.Errorf("%d came in", in)
	}
}

// Sessions are bounded, of all and of one user.
func TestManySessions(t *testing.T) {
	var all sessions
	now := time.Now()
	first := all.add(User{Name: "first"}, [32]byte{1}, now)
	for i := range 3 * maxSessions {
		all.add(User{Name: fmt.Sprint("user", i)}, [32]byte{1}, now.Add(time.Duration(i)))
		if i%100 == 0 && all.use(first, now.Add(time.Duration(i))) == nil {
			t.Fatal("a session in use ended")
		}
	}
	if n := len(all.open); n != maxSessions {
		t.Errorf("%d sessions", n)
	}
	for i := range 3 * maxOfUser {
		all.add(User{Name: "ann"}, [32]byte{1}, now.Add(time.Minute+time.Duration(i)))
	}
	n := 0
	for _, s := range all.open {
		if s.user.Name == "ann" {
			n++
		}
	}
	if n != maxOfUser || len(all.open) != maxSessions || all.use(first, now) == nil {
		t.Errorf("%d sessions of one user, %d in all", n, len(all.open))
	}
	all.endIf(func(*session) bool { return true })
}

// Large cookies and headers are refused, and none of them is taken for a session.
func TestLargeHeaders(t *testing.T) {
	r := newRig(t, Config{Users: openUsers(t, threeUsers...)})
	for _, value := range []string{strings.Repeat("x", 1<<20), strings.Repeat("hamlet-session-8080="+rand.Text()+"; ", 1000)} {
		req := httptest.NewRequest("GET", "/", nil)
		req.Header.Set("Cookie", "hamlet-session-8080="+value)
		if s := r.browser().do(req).StatusCode; s != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("%d bytes of cookies: %d", len(value), s)
		}
	}
	ann := r.loggedIn("ann")
	// Another program of this host has set cookies of the same name.
	for others, want := range map[int]int{0: 200, 3: 200, 4: 303} {
		req := httptest.NewRequest("GET", "/", nil)
		for range others {
			req.AddCookie(&http.Cookie{Name: "hamlet-session-8080", Value: rand.Text()})
		}
		if s := ann.do(req).StatusCode; s != want {
			t.Errorf("behind %d cookies of others: %d, want %d", others, s, want)
		}
	}
	b := r.browser()
	form := b.loginForm("ann", password)
	form.Set("a", strings.Repeat("x", 1<<20))
	if s := b.send("POST", "/login", form).StatusCode; s != 403 && s != 400 {
		t.Errorf("a large form of the login: %d", s)
	}
	b = r.browser()
	b.from = "nonsense"
	if s := b.get("/").StatusCode; s != 403 {
		t.Errorf("without an address: %d", s)
	}
}

// No more than two passwords are checked at once, and few wait.
func TestHashingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Config{Users: openUsers(t, threeUsers...)})
		r.guard.hashing <- struct{}{}
		r.guard.hashing <- struct{}{}
		began := time.Now()
		if _, _, err := r.guard.checkPassword(t.Context(), "ann", password); err == nil || time.Since(began) != passwordPatience {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		for range maxWaiting {
			r.guard.waiting <- struct{}{}
		}
		b := r.browser()
		if s := b.login("ann", password); s != http.StatusServiceUnavailable {
			t.Errorf("too many wait: %d", s)
		}
	})
}

func TestAddressesOfANetworkAreOne(t *testing.T) {
	a, b, c := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::ffff:1"), netip.MustParseAddr("2001:db8:0:1::1")
	if ofAddress(a) != ofAddress(b) || ofAddress(a) == ofAddress(c) || ofAddress(netip.MustParseAddr("192.0.2.1")) == ofAddress(netip.MustParseAddr("192.0.2.2")) || ofAddress(netip.Addr{}) == "" {
		t.Error("networks are told apart in another way")
	}
}
