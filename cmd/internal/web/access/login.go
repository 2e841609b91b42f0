package access

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Paths that the guard serves itself.
const (
	loginPath  = "/login"
	logoutPath = "/logout" // POST, with User.FormToken
	linkPath   = "/login/link/"
)

func isLogin(p string) bool {
	return p == loginPath || p == logoutPath || strings.HasPrefix(p, linkPath)
}

//go:embed login.html
var loginHTML string

var loginTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("login").Parse(loginHTML))
})

// A loginPage is what login.html shows.
type loginPage struct {
	Style  string // the address of the style
	Title  string
	Error  string // a sentence
	Notice string // a sentence
	Again  bool   // show the way to the login
	Link   bool   // show the button of a link
	Form   bool   // show name and password
	Ask    bool   // show the button that asks for a link
	Next   string // where to go afterwards, when it is not the first page
	Name   string
	Field  string // of the token
	Token  string
}

// page answers with a page of the guard's own.
func (g *Guard) page(w http.ResponseWriter, r *http.Request, status int, p loginPage) {
	p.Style, p.Field = g.cfg.Style, FormField
	var b bytes.Buffer
	if err := loginTemplate().Execute(&b, p); err != nil {
		http.Error(w, "the page cannot be shown", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(b.Bytes()) // the browser has gone
	}
}

// serveLogin serves the guard's own paths. u and s are of the session that the request has.
func (g *Guard) serveLogin(w http.ResponseWriter, r *http.Request, u User, s *session) {
	post := r.Method == http.MethodPost
	if post {
		r.Body = http.MaxBytesReader(w, r.Body, maxLoginForm)
	}
	switch {
	case g.cfg.Proxy != nil && g.cfg.Proxy.UserHeader != "":
		g.page(w, r, http.StatusOK, loginPage{Title: "Log in", Notice: "You log in and out at the proxy."})
	case r.URL.Path == logoutPath && post:
		g.logout(w, r, u, s)
	case r.URL.Path == logoutPath:
		http.Redirect(w, r, "/", http.StatusSeeOther)
	case strings.HasPrefix(r.URL.Path, linkPath):
		g.serveLink(w, r, strings.TrimPrefix(r.URL.Path, linkPath))
	case post:
		g.login(w, r)
	case u.Name != "":
		http.Redirect(w, r, safeNext(r.URL.Query().Get("next")), http.StatusSeeOther)
	default:
		p := loginPage{Next: safeNext(r.URL.Query().Get("next"))}
		if r.URL.Query().Has("out") {
			p.Notice = "You have logged out."
		}
		g.showLogin(w, r, http.StatusOK, p)
	}
}

// maxLoginForm bounds a form of the guard's own, in bytes.
const maxLoginForm = 8 << 10

// showLogin shows the form of name and password, or says how else to come in.
func (g *Guard) showLogin(w http.ResponseWriter, r *http.Request, status int, p loginPage) {
	p.Title, p.Form = "Log in", g.cfg.Users != nil
	p.Ask = !p.Form && g.cfg.Print != nil
	if !p.Form && p.Error == "" && p.Notice == "" {
		p.Notice = "Open the link that hamlet printed when it started. It works once, within 15 minutes."
	}
	p.Token = g.loginToken(w, r)
	g.page(w, r, status, p)
}

// loginToken returns the token of a form that is sent before there is a session. It belongs to
// a cookie, so that no other site logs a browser in as somebody else. The guard keeps nothing.
func (g *Guard) loginToken(w http.ResponseWriter, r *http.Request) string {
	name := g.cookie(r, "login")
	c, err := r.Cookie(name)
	if err == nil && len(c.Value) == secretLength {
		return g.sign("login", c.Value)
	}
	secret := rand.Text()
	g.setCookie(w, name, secret, time.Hour)
	return g.sign("login", secret)
}

// checkLoginForm returns an error, a sentence, unless a form has the token of loginToken.
func (g *Guard) checkLoginForm(r *http.Request) error {
	c, err := r.Cookie(g.cookie(r, "login"))
	if err != nil || len(c.Value) != secretLength {
		return sentence("Your browser sent no cookie. Allow cookies for this address, and try again.")
	}
	return g.checkForm(r, g.sign("login", c.Value))
}

// login answers the form of name and password.
func (g *Guard) login(w http.ResponseWriter, r *http.Request) {
	if err := g.checkLoginForm(r); err != nil {
		g.showLogin(w, r, http.StatusForbidden, loginPage{Error: err.Error()})
		return
	}
	if g.cfg.Users == nil {
		g.printLink(w, r)
		return
	}
	if err := r.ParseForm(); err != nil {
		g.showLogin(w, r, http.StatusBadRequest, loginPage{Error: "The form could not be read. Try again."})
		return
	}
	name, password := r.PostForm.Get("name"), r.PostForm.Get("password")
	p := loginPage{Next: safeNext(r.PostForm.Get("next")), Name: name}
	if checkName(name) != nil {
		p.Name = ""
	}
	keys := []string{ofAddress(Address(r.Context())), "name " + name}
	if g.knows(r, name) {
		keys = []string{"known " + name}
	}
	if wait := g.throttle.take(time.Now(), keys...); wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(wait.Seconds())+1))
		p.Error = "Too many attempts to log in. Wait " + strconv.Itoa(int(wait.Seconds())+1) + " seconds, and try again."
		g.showLogin(w, r, http.StatusTooManyRequests, p)
		return
	}
	l, ok, err := g.checkPassword(r.Context(), name, password)
	switch {
	case err != nil:
		p.Error = "Too many people log in at this moment. Try again."
		g.showLogin(w, r, http.StatusServiceUnavailable, p)
	case !ok:
		g.log.Info("a login to the console failed")
		p.Error = "No user has this name and password."
		g.showLogin(w, r, http.StatusUnauthorized, p)
	default:
		g.throttle.giveBack(keys...)
		g.setCookie(w, g.cookie(r, "known"), knownCookie(name, l.hash), 180*24*time.Hour)
		g.enter(w, r, User{Name: name, Role: l.roles}, l.credential, p.Next)
	}
}

// printLink has a new link printed where the console runs. Who asks does not see it.
func (g *Guard) printLink(w http.ResponseWriter, r *http.Request) {
	if g.cfg.Print == nil {
		g.showLogin(w, r, http.StatusNotFound, loginPage{})
		return
	}
	if wait := g.throttle.take(time.Now(), "link"); wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(wait.Seconds())+1))
		g.showLogin(w, r, http.StatusTooManyRequests, loginPage{
			Error: "Several links were printed a moment ago. Open the last one, or wait a minute.",
		})
		return
	}
	g.cfg.Print(g.NewLink(g.cfg.LinkUser))
	g.showLogin(w, r, http.StatusOK, loginPage{
		Notice: "Hamlet has printed a new link where it runs. It works once, within 15 minutes.",
	})
}

// enter opens a session, always with a new id, and sends the browser on.
func (g *Guard) enter(w http.ResponseWriter, r *http.Request, u User, credential [sha256.Size]byte, next string) {
	if _, old := g.sessions.find(r, g.cookieName(r), time.Now()); old != "" {
		g.sessions.drop(old)
	}
	id := g.sessions.add(u, credential, time.Now())
	g.setCookie(w, g.cookieName(r), id, sessionLife)
	g.setCookie(w, g.cookie(r, "login"), "", 0)
	g.log.Info("a user logged in to the console", "roles", u.Role)
	http.Redirect(w, r, next, http.StatusSeeOther)
}

func (g *Guard) logout(w http.ResponseWriter, r *http.Request, u User, s *session) {
	if s != nil {
		if err := g.checkForm(r, u.FormToken); err != nil {
			g.page(w, r, http.StatusForbidden, loginPage{Title: "Refused", Error: err.Error()})
			return
		}
		if _, id := g.sessions.find(r, g.cookieName(r), time.Now()); id != "" {
			g.sessions.drop(id)
		}
	}
	g.setCookie(w, g.cookieName(r), "", 0)
	http.Redirect(w, r, loginPath+"?out=1", http.StatusSeeOther)
}

// serveLink shows the button of a link, and logs in who presses it.
func (g *Guard) serveLink(w http.ResponseWriter, r *http.Request, secret string) {
	const gone = "This link was used already, or is older than 15 minutes."
	if !g.links.valid(secret, time.Now()) {
		g.page(w, r, http.StatusGone, loginPage{Title: "Log in", Error: gone, Again: true})
		return
	}
	if r.Method != http.MethodPost {
		g.page(w, r, http.StatusOK, loginPage{Title: "Log in", Link: true, Token: g.loginToken(w, r)})
		return
	}
	if err := g.checkLoginForm(r); err != nil {
		g.page(w, r, http.StatusForbidden,
			loginPage{Title: "Log in", Error: err.Error(), Link: true, Token: g.loginToken(w, r)})
		return
	}
	u, ok := g.links.take(secret, time.Now())
	if !ok {
		g.page(w, r, http.StatusGone, loginPage{Title: "Log in", Error: gone, Again: true})
		return
	}
	g.enter(w, r, u, [sha256.Size]byte{}, "/")
}

// Bounds of passwords that are checked: a check takes a core for some tenths of a second.
const (
	maxHashing = 2  // at once
	maxWaiting = 64 // for one of these; more are sent away
)

// errBusy says that a password was not checked.
var errBusy = errors.New("too many passwords are being checked")

func (g *Guard) checkPassword(ctx context.Context, name, password string) (line, bool, error) {
	if g.cfg.Users == nil {
		return line{}, false, nil
	}
	select {
	case g.waiting <- struct{}{}:
		defer func() { <-g.waiting }()
	default:
		return line{}, false, errBusy
	}
	ctx, cancel := context.WithTimeout(ctx, passwordPatience)
	defer cancel()
	select {
	case g.hashing <- struct{}{}:
		defer func() { <-g.hashing }()
	case <-ctx.Done():
		return line{}, false, errBusy
	}
	l, ok := g.cfg.Users.check(name, password)
	return l, ok, nil
}

// knownCookie returns what a browser keeps in which a user has logged in: the name, signed with
// the hash of the password. It opens nothing. It lets others who try this name not keep the
// user out, and ends with the password.
func knownCookie(name string, hash []byte) string {
	m := hmac.New(sha256.New, hash)
	m.Write([]byte("hamlet console, known user\x00" + name))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// knows reports whether the user has logged in with this browser before.
func (g *Guard) knows(r *http.Request, name string) bool {
	l, ok := g.cfg.Users.find(name)
	c, err := r.Cookie(g.cookie(r, "known"))
	return ok && l.hash != nil && err == nil && hmac.Equal([]byte(c.Value), []byte(knownCookie(name, l.hash)))
}

// nextQuery returns the query that leads back to a page.
func nextQuery(u *url.URL) string {
	return url.Values{"next": {u.RequestURI()}}.Encode()
}

// safeNext returns a path of this console to go to after the login, the first page in doubt.
// A browser takes //host and /\host for another host.
func safeNext(next string) string {
	u, err := url.Parse(next)
	switch {
	case err != nil || len(next) > 1024 || u.Scheme != "" || u.Host != "" || u.User != nil,
		!strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.Contains(next, `\`),
		path.Clean(u.Path) != u.Path && path.Clean(u.Path)+"/" != u.Path, isLogin(u.Path), strings.HasPrefix(u.Path, "/live"):
		return "/"
	}
	return next
}
