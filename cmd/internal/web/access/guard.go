package access

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path"
	"strings"
	"time"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/process/secretfile"
	"hamlet/cmd/internal/service/settings"
	"hamlet/stream"
)

// A Config says who may come in, and how.
type Config struct {
	Addr     string            // host:port that the console listens on; it may be the flag's
	TLS      bool              // the console itself speaks TLS
	Hosts    []string          // names, without port, by which browsers know the console
	Users    *Users            // who has a password, and the roles of users of the proxy; nil: nobody
	Proxy    *Proxy            // nil: browsers reach the console directly
	Links    bool              // NewLink may be called
	LinkUser User              // whom a link logs in that a browser asks for
	Print    func(path string) // shows such a link to who runs the console; nil: nobody may ask
	Style    string            // address of the style of the login, below /static/
	Log      *slog.Logger      // nil: silent
}

// A Guard stands before all pages of the console. For each request it checks the host, finds
// the user, and checks the token of a form. It may be used concurrently.
type Guard struct {
	cfg      Config
	log      *slog.Logger
	loopback bool // only this machine reaches the console, and no proxy does
	secure   bool // browsers speak TLS
	key      [32]byte
	origin   http.CrossOriginProtection
	sessions sessions
	links    links
	throttle *throttle
	hashing  chan struct{} // a token for each password that is being checked
	waiting  chan struct{} // and for each that waits or is being checked
}

// New returns a guard. It is wrong usage if nobody could come in.
func New(cfg Config) (*Guard, error) {
	if cfg.Users == nil && !cfg.Links && (cfg.Proxy == nil || cfg.Proxy.RolesHeader == "") {
		return nil, cli.Usagef("console: nobody could log in: give a file of users with --users, " +
			"or the proxy's --user-header and --roles-header")
	}
	g := &Guard{
		cfg:      cfg,
		log:      cmp.Or(cfg.Log, slog.New(slog.DiscardHandler)),
		loopback: cfg.Proxy == nil && settings.Loopback(cfg.Addr),
		secure:   cfg.TLS || cfg.Proxy != nil,
		throttle: newThrottle(),
		hashing:  make(chan struct{}, maxHashing),
		waiting:  make(chan struct{}, maxWaiting),
	}
	if cfg.Proxy != nil { // it may put another name in its own requests
		for _, name := range cfg.Hosts {
			if err := g.origin.AddTrustedOrigin("https://" + name); err != nil {
				return nil, cli.Usagef("console: the host %q: %v", name, err)
			}
		}
	}
	_, _ = rand.Read(g.key[:]) // never fails: see its documentation
	return g, nil
}

// Run reads the file of users again when it changes, and on SIGHUP, until ctx ends. It ends the
// sessions of users who are no longer in it, or have another password or less rights.
func (g *Guard) Run(ctx context.Context) error {
	hangups, stop := g.hangups()
	defer stop()
	g.watch(ctx, hangups)
	return nil
}

// hangups returns the SIGHUPs. Without a file of users it returns nil: the signal then ends the
// program, as it should when its terminal closes.
func (g *Guard) hangups() (<-chan os.Signal, func()) {
	if g.cfg.Users == nil {
		return nil, func() {}
	}
	return cli.TakeHangups()
}

func (g *Guard) watch(ctx context.Context, hangups <-chan os.Signal) {
	var live *secretfile.Live[table]
	if g.cfg.Users != nil {
		live = g.cfg.Users.live
	}
	live.Watch(ctx, time.Tick(5*time.Second), hangups, g.take)
}

// take ends the sessions whose time is over, and those that a changed file of users does not
// allow.
func (g *Guard) take(changed bool, err error) {
	g.sessions.expire(time.Now())
	if err != nil {
		g.log.Error("the console's users stay as they were", "error", err)
	}
	if !changed {
		return
	}
	if n := len(g.cfg.Users.live.Get().lines); n == 0 {
		g.log.Warn("the console's file of users is empty or is not there: nobody of it may come in", "file", g.cfg.Users.path)
	} else {
		g.log.Info("the console's users were read again", "users", n)
	}
	g.sessions.endIf(func(s *session) bool {
		u, ok := g.userOf(s)
		return !ok || s.user.Role&^u.Role != 0
	})
}

// maxCookies bounds the cookies of a request, in bytes.
const maxCookies = 16 << 10

// longestGet is how long a page, or a stream of a page, may take. The browser then opens the
// stream again, and is asked again who it is. A proxy does not tell when it no longer lets
// somebody in, so its users are asked more often.
const (
	longestGet      = time.Hour
	longestProxyGet = 10 * time.Minute
)

// Wrap returns a handler that lets next answer to users alone, with the user in the request's
// context. It serves /login, /logout and /login/link/ itself. Files below /static/ are for
// everybody.
func (g *Guard) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.setHeaders(w.Header())
		from, status, why := g.admit(r)
		if status != 0 {
			g.page(w, r, status, loginPage{Title: "Refused", Error: why})
			return
		}
		if isStatic(r) {
			next.ServeHTTP(w, r)
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), addressKey{}, from))
		u, s, err := g.user(r)
		if s != nil && r.Method != http.MethodPost {
			// The streams of a session end with it. An action that has begun does not.
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer context.AfterFunc(s.ended, cancel)()
			r = r.WithContext(ctx)
		}
		if isLogin(r.URL.Path) {
			g.serveLogin(w, r, u, s)
			return
		}
		switch {
		case err != nil:
			g.page(w, r, http.StatusForbidden, loginPage{Title: "Refused", Error: err.Error()})
			return
		case u.Name == "":
			g.sendToLogin(w, r)
			return
		}
		if r.Method == http.MethodPost {
			if err := g.checkForm(r, u.FormToken); err != nil {
				g.page(w, r, http.StatusForbidden, loginPage{Title: "Refused", Error: err.Error()})
				return
			}
			next.ServeHTTP(w, r.WithContext(WithUser(r.Context(), u)))
			return
		}
		longest := longestGet
		if s == nil {
			longest = longestProxyGet
		}
		ctx, cancel := context.WithTimeout(r.Context(), longest)
		defer cancel()
		next.ServeHTTP(w, r.WithContext(WithUser(ctx, u)))
	})
}

// admit refuses a request that no browser of a user sends, with a status that is not 0. Else
// it returns the browser's address.
func (g *Guard) admit(r *http.Request) (from netip.Addr, status int, why string) {
	cookies := 0
	for _, line := range r.Header["Cookie"] {
		cookies += len(line)
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost:
	default:
		return from, http.StatusMethodNotAllowed, "The console knows GET and POST alone."
	}
	if cookies > maxCookies {
		return from, http.StatusRequestHeaderFieldsTooLarge,
			"Your browser sent more cookies than the console reads. Delete those of this address."
	}
	from, err := g.address(r)
	if err != nil {
		return from, http.StatusForbidden, err.Error()
	}
	if !g.knowsHost(r.Host) {
		return from, http.StatusMisdirectedRequest, "The console is not known by this name. Its flag --host names it."
	}
	return from, 0, ""
}

type addressKey struct{}

// Address returns the address of the browser that sent the request, or the zero Addr.
func Address(ctx context.Context) netip.Addr {
	a, _ := ctx.Value(addressKey{}).(netip.Addr)
	return a
}

// address returns the address of a request's browser. A console with a proxy hears the proxy
// alone: who could come another way would choose the proxy's headers.
func (g *Guard) address(r *http.Request) (netip.Addr, error) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}, sentence("The console cannot tell where the request comes from.")
	}
	from := peer.Addr().Unmap().WithZone("")
	if g.cfg.Proxy == nil {
		return from, nil
	}
	return g.cfg.Proxy.client(from, r.Header)
}

// user returns who sent a request, and the session where there is one. Without a user all are
// zero. The error is a sentence for a user whom the proxy names and who may not come in.
func (g *Guard) user(r *http.Request) (User, *session, error) {
	if p := g.cfg.Proxy; p != nil && p.UserHeader != "" {
		u, err := p.user(r.Header, g.cfg.Users)
		if err != nil {
			return User{}, nil, err
		}
		u.Session = stream.Unaddressed(u.Name)
		u.FormToken = g.sign("proxy", u.Name)
		return u, nil, nil
	}
	s, id := g.sessions.find(r, g.cookieName(r), time.Now())
	if s == nil {
		return User{}, nil, nil
	}
	u, ok := g.userOf(s)
	if !ok {
		return User{}, nil, nil
	}
	u.Session, u.FormToken = s.name, g.sign("session", id)
	return u, s, nil
}

// userOf returns a session's user as the file of users has it now, and whether the user may
// still come in.
func (g *Guard) userOf(s *session) (User, bool) {
	if s.credential == ([sha256.Size]byte{}) {
		return s.user, true // by a link
	}
	line, ok := g.cfg.Users.find(s.user.Name)
	return User{Name: s.user.Name, Role: line.roles}, ok && line.credential == s.credential
}

// sendToLogin answers a request of nobody.
func (g *Guard) sendToLogin(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost || strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		g.page(w, r, http.StatusUnauthorized, loginPage{
			Title: "Log in", Error: "Your session has ended, and nothing was done. Log in and try again.", Again: true,
		})
		return
	}
	http.Redirect(w, r, loginPath+"?"+nextQuery(r.URL), http.StatusSeeOther)
}

// isStatic reports whether a request is for a file below /static/. A path that is written
// another way may be understood in another way behind the guard.
func isStatic(r *http.Request) bool {
	p := r.URL.EscapedPath()
	return r.Method != http.MethodPost && strings.HasPrefix(p, "/static/") &&
		!strings.ContainsAny(p, `%\`) && path.Clean(p) == p
}

// A sentence is an error that a page shows as it is.
type sentence string

func (s sentence) Error() string { return string(s) }

func sentencef(format string, args ...any) error { return sentence(fmt.Sprintf(format, args...)) }
