package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"hamlet/cmd/internal/show/chart"
	"hamlet/cmd/internal/web/access"
)

//go:embed layout.html failure.html style.css console.js
var own embed.FS

// Templates are a page's templates in the common frame. They are safe for concurrent use.
type Templates struct {
	parsed func() *template.Template // once
}

// Parse returns the templates of a page: "content", and one for each fragment. They are read when the page is first
// shown, because most commands show none and start as fast as they can. It panics then where they are wrong.
//
// Their functions beside those of html/template:
//
//	{{csrf}}            the hidden field that every POST form has
//	{{may "operate"}}   whether the reader has a role
//	{{time .T}}         a <time> in UTC, which the script turns to the reader's zone
//	{{ago .T}}          the same as "5 min ago"
//	{{number .N}}       a count, with thin spaces between thousands
//	{{decimal .F 4}}    a float with digits behind the point; NaN is "–"
//	{{signed .F 2}}     the same with its sign, if it is above 0 too
//	{{visible .S}}      a stranger's text, so that nothing in it acts unseen
//	{{percent .F 1}}    a share as a percentage
//	{{prob .P}}         a probability: 0.42, 0.9987, 1 − 2e−6
//	{{short 40 .S}}     at most so many letters, all visible, with the whole as title
//	{{bytes .N}}        1.2 MiB
//	{{chart .C}}        a *chart.Chart as a figure
func Parse(files fs.FS, names ...string) *Templates {
	return &Templates{sync.OnceValue(func() *template.Template {
		t := template.New("layout").Funcs(functions(access.User{}, time.Time{}))
		t = template.Must(t.ParseFS(own, "layout.html"))
		return template.Must(t.ParseFS(files, names...))
	})}
}

// execute draws a template for a user.
func (t *Templates) execute(w io.Writer, name string, u access.User, now time.Time, data any) error {
	clone, err := t.parsed().Clone() // the functions know who reads
	if err != nil {
		return fmt.Errorf("copy the templates: %w", err)
	}
	return clone.Funcs(functions(u, now)).ExecuteTemplate(w, name, data)
}

func functions(u access.User, now time.Time) template.FuncMap {
	return template.FuncMap{
		"csrf": func() template.HTML {
			return template.HTML(`<input type="hidden" name="` + access.FormField + `" value="` +
				template.HTMLEscapeString(u.FormToken) + `">`)
		},
		"may": func(role string) (bool, error) {
			r, err := access.ParseRoles(role)
			return u.May(r), err
		},
		"time": timestamp,
		"ago": func(t time.Time) template.HTML {
			if t.IsZero() {
				return "–"
			}
			return template.HTML(`<time class="ago" datetime="` + t.UTC().Format(time.RFC3339) + `" title="` +
				t.UTC().Format(timeFormat) + `">` + Ago(now.Sub(t)) + `</time>`)
		},
		"number":  Number,
		"decimal": Decimal,
		"signed":  Signed,
		"visible": Visible,
		"percent": Percent,
		"prob":    Probability,
		"short":   short,
		"bytes":   Bytes,
		"chart": func(c *chart.Chart) (template.HTML, error) {
			if c == nil {
				return "", nil
			}
			return c.HTML()
		},
	}
}

const timeFormat = "2006-01-02 15:04:05 UTC"

func timestamp(t time.Time) template.HTML {
	if t.IsZero() {
		return "–"
	}
	t = t.UTC()
	return template.HTML(`<time datetime="` + t.Format(time.RFC3339) + `">` + t.Format(timeFormat) + `</time>`)
}

// Ago returns a duration as people say it: "just now", "5 min ago".
func Ago(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return "just now"
	case d < 2*time.Minute:
		return strconv.Itoa(int(d/time.Second)) + " s ago"
	case d < 2*time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + " min ago"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d/time.Hour)) + " h ago"
	}
	return strconv.Itoa(int(d/(24*time.Hour))) + " days ago"
}

// Number returns a count with thin spaces between thousands. It takes any type of integer.
func Number(n any) (string, error) {
	s := fmt.Sprintf("%d", n)
	if strings.HasPrefix(s, "%!") {
		return "", fmt.Errorf("number: %T is no integer", n)
	}
	digits := strings.TrimPrefix(s, "-")
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteRune('\u202f')
		}
		b.WriteRune(d)
	}
	if len(digits) < len(s) {
		return "−" + b.String(), nil
	}
	return b.String(), nil
}

// Decimal returns f with digits behind the point; what is no number is "–".
func Decimal(f float64, digits int) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return "–"
	}
	return strings.Replace(strconv.FormatFloat(f, 'f', digits, 64), "-", "−", 1)
}

// Percent returns a share as a percentage; what is no number is "–".
func Percent(share float64, digits int) string {
	if math.IsNaN(share) {
		return "–"
	}
	return Decimal(100*share, digits) + " %"
}

// Signed is Decimal with the sign of f, if it is above 0 too.
func Signed(f float64, digits int) string {
	text := Decimal(f, digits)
	if f > 0 && !math.IsInf(f, 0) {
		return "+" + text
	}
	return text
}

// Probability returns p so that those near 0 and 1 differ.
func Probability(p float64) string {
	switch {
	case math.IsNaN(p):
		return "–"
	case p > 0 && p < 1e-4:
		return strings.Replace(strconv.FormatFloat(p, 'e', 0, 64), "-", "−", 1)
	case p < 1 && p > 1-1e-4:
		return "1 − " + strings.Replace(strconv.FormatFloat(1-p, 'e', 0, 64), "-", "−", 1)
	}
	return strconv.FormatFloat(p, 'f', 4, 64)
}

// mostTitle bounds the text that a title holds, in runes.
const mostTitle = 200

// short cuts s, made visible, to n runes.
func short(n int, s string) template.HTML {
	s = Visible(s)
	runes := []rune(s)
	if len(runes) <= n {
		return template.HTML(template.HTMLEscapeString(s))
	}
	whole := string(runes[:min(len(runes), mostTitle)])
	if len(runes) > mostTitle {
		whole += "…"
	}
	return template.HTML(`<span title="` + template.HTMLEscapeString(whole) + `">` +
		template.HTMLEscapeString(string(runes[:n])) + `…</span>`)
}

// Bytes returns a size in binary units.
func Bytes(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return strconv.FormatInt(n, 10) + " B"
	}
	f, unit := float64(n)/1024, 0
	for ; f >= 1024 && unit < len(units)-1; unit++ {
		f /= 1024
	}
	return strconv.FormatFloat(f, 'f', 1, 64) + " " + units[unit:unit+1] + "iB"
}

// An asset is a file that never changes while the program runs.
type asset struct {
	name, kind string
	body       []byte
}

var (
	style  = asset{"style.css", "text/css; charset=utf-8", append([]byte(chart.Style), read("style.css")...)}
	script = asset{"console.js", "text/javascript; charset=utf-8", read("console.js")}

	styleURL, scriptURL = style.url(), script.url()
)

// StyleURL is the address of the style, for pages outside of the frame.
func StyleURL() string { return styleURL }

func read(name string) []byte {
	b, err := own.ReadFile(name)
	if err != nil {
		panic(err) // it is embedded
	}
	return b
}

// url has a hash, so that browsers may keep the file for ever.
func (a *asset) url() string {
	sum := sha256.Sum256(a.body)
	return "/static/" + hex.EncodeToString(sum[:6]) + "/" + a.name
}

func (a *asset) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", a.kind)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.body))
}

// Static serves style and script. It needs no login.
func Static() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+styleURL, &style)
	mux.Handle("GET "+scriptURL, &script)
	return mux
}
