package access

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"
)

// password is that of every user in tests.
const password = "correct horse battery"

// cheap is a hash of password.
var cheap = func() string {
	b, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		panic(err)
	}
	return string(b)
}()

// usersFile writes a file of users with roles.
func usersFile(t testing.TB, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "users")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func openUsers(t testing.TB, lines ...string) *Users {
	t.Helper()
	u, err := OpenUsers(usersFile(t, lines...))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

var threeUsers = []string{"# the console's users", "", "ann:" + cheap + ":look,label,operate", "bob:" + cheap + ":look", "cleo:-:label"}

// A rig is a guard before pages that say who asks and what was done.
type rig struct {
	t       testing.TB
	guard   *Guard
	handler http.Handler
	done    []string // POSTs that came to a page, with the user
}

func newRig(t testing.TB, cfg Config) *rig {
	t.Helper()
	if cfg.Addr == "" {
		cfg.Addr = "127.0.0.1:8080"
	}
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, guard: g}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, req *http.Request) {
		u := FromContext(req.Context())
		fmt.Fprintf(w, "%s is at %s with %s from %s", u.Name, req.URL.Path, u.Role, Address(req.Context()))
	})
	mux.HandleFunc("GET /token", func(w http.ResponseWriter, req *http.Request) { fmt.Fprint(w, FromContext(req.Context()).FormToken) })
	mux.HandleFunc("GET /static/", func(w http.ResponseWriter, req *http.Request) { fmt.Fprint(w, "static "+req.URL.Path) })
	mux.HandleFunc("POST /pin", func(w http.ResponseWriter, req *http.Request) {
		r.done = append(r.done, FromContext(req.Context()).Name+" pins "+req.FormValue("version"))
	})
	mux.HandleFunc("POST /label", func(w http.ResponseWriter, req *http.Request) {
		if !FromContext(req.Context()).May(Label) {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		r.done = append(r.done, "label")
	})
	r.handler = g.Wrap(mux)
	return r
}

// A browser keeps cookies.
type browser struct {
	*rig
	cookies map[string]string
	from    string
	host    string
	headers http.Header
}

func (r *rig) browser() *browser {
	return &browser{rig: r, cookies: map[string]string{}, from: "127.0.0.1:50000", host: "127.0.0.1:8080", headers: http.Header{}}
}

// send sends a request, a form if one is given, and follows nothing.
func (b *browser) send(method, target string, form url.Values) *http.Response {
	b.t.Helper()
	r := httptest.NewRequest(method, "http://console.example/", nil)
	if form != nil {
		r = httptest.NewRequest(method, "http://console.example/", strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	u, err := url.ParseRequestURI(target)
	if err != nil {
		b.t.Fatal(err)
	}
	r.URL, r.RequestURI = u, target
	return b.do(r)
}

// do sends a request with the cookies.
func (b *browser) do(r *http.Request) *http.Response {
	r.RemoteAddr, r.Host = b.from, b.host
	for name, values := range b.headers {
		r.Header[name] = values
	}
	for name, value := range b.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		if c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		} else {
			b.cookies[c.Name] = c.Value
		}
	}
	return w.Result()
}

func (b *browser) get(target string) *http.Response { return b.send("GET", target, nil) }

func body(t testing.TB, r *http.Response) string {
	t.Helper()
	var s strings.Builder
	if err := r.Write(&s); err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(s.String(), "\r\n\r\n")
	return text
}

var tokenInput = regexp.MustCompile(`name="csrf" value="([^"]*)"`)

// login logs in, and returns the status.
func (b *browser) login(name, password string) int {
	b.t.Helper()
	return b.send("POST", "/login", b.loginForm(name, password)).StatusCode
}

func (b *browser) loginForm(name, password string) url.Values {
	b.t.Helper()
	m := tokenInput.FindStringSubmatch(body(b.t, b.get("/login")))
	if m == nil {
		b.t.Fatal("the login has no token")
	}
	return url.Values{FormField: {html.UnescapeString(m[1])}, "name": {name}, "password": {password}}
}

// token returns the token of the session's forms.
func (b *browser) token() string { return body(b.t, b.get("/token")) }

func (b *browser) session() string { return b.cookies["hamlet-session-8080"] }

// loggedIn returns a browser in which a user has logged in.
func (r *rig) loggedIn(name string) *browser {
	r.t.Helper()
	b := r.browser()
	if status := b.login(name, password); status != http.StatusSeeOther {
		r.t.Fatalf("%s logs in: %d", name, status)
	}
	return b
}

func prefixes(t testing.TB, all ...string) []netip.Prefix {
	t.Helper()
	p, err := parseProxies(all)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
