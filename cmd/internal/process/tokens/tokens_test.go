package tokens

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"hamlet/cmd/internal/process/cli"
	"hamlet/stream"
)

// write writes a file of tokens and returns its path.
func write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	replace(t, path, text)
	return path
}

func replace(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, path string) *File {
	t.Helper()
	f, err := Open(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A made token is found by its line, and by nothing else.
func TestNewTokenIsFound(t *testing.T) {
	want := Rights{
		Name: "abuse-desk.1", Sources: []string{"desk", "007", "a, b", `"x`}, Tenants: []string{"tenant: x", "yes"},
		Actions: []string{"learn", "score"}, AnySource: true,
	}
	secret, line, err := New(want)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(line, []byte("\n")); n != 1 || line[len(line)-1] != '\n' || strings.Contains(string(line), secret) || len(secret) != 43 {
		t.Errorf("the line is %q, the token has %d characters", line, len(secret))
	}
	other, otherLine, err := New(*Everything("all"))
	if err != nil {
		t.Fatal(err)
	}
	f := open(t, write(t, "# tokens\n"+string(line)+"\n"+string(otherLine)))
	got, ok := f.Find(secret)
	if d := cmp.Diff(&want, got); !ok || d != "" {
		t.Errorf("found %v (-want +got):\n%s", ok, d)
	}
	if got, ok := f.Find(other); !ok || got.Name != "all" {
		t.Errorf("the other token: %v, %v", got, ok)
	}
	sum := sha256.Sum256([]byte(secret))
	for _, wrong := range []string{"", secret[1:], secret + "A", strings.ToLower(secret), hex.EncodeToString(sum[:]), string(sum[:]), strings.Repeat("x", 1<<20)} {
		if got, ok := f.Find(wrong); ok {
			t.Errorf("%.50q is found: %+v", wrong, got)
		}
	}
	if _, ok := (*File)(nil).Find(secret); ok {
		t.Error("without a file a token is found")
	}
}

// Hashes that begin alike are told apart: each comparison is of the whole hash.
func TestHashesThatBeginAlike(t *testing.T) {
	sum := sha256.Sum256([]byte("secret"))
	near := sum
	near[31] ^= 1
	row := func(name string, sum [32]byte) string {
		return fmt.Sprintf("- {name: %s, sha256: %x, sources: [a], tenants: [a], actions: [learn]}\n", name, sum)
	}
	for _, text := range []string{row("near", near) + row("right", sum), row("right", sum) + row("near", near)} {
		if got, ok := open(t, write(t, text)).Find("secret"); !ok || got.Name != "right" {
			t.Errorf("found %+v, %v", got, ok)
		}
	}
	if got, ok := open(t, write(t, row("near", near))).Find("secret"); ok {
		t.Errorf("a hash with another last bit: %+v", got)
	}
}

func TestMistakesNameTheirLine(t *testing.T) {
	const hash = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
	const good = "- {name: a, sha256: " + hash + ", sources: [s], tenants: [t], actions: [learn]}\n"
	for text, want := range map[string]string{
		"":                              "it holds no token",
		"# nothing\n":                   "it holds no token",
		"[]\n":                          "it holds no token",
		"---\n" + good + "---\n" + good: "line 3: a second document",
		good + "---\n":                  "line 2: a second document",
		good + "---\n[":                 "line ",
		"a: b\n":                        "line 1: a list is wanted",
		good + "- b\n":                  "line 2: a token is written as",
		good + "- {\n":                  "line 3",
		good + "- {a: b\n" + good:       "line 2",
		"- {name: a, sources: [s, tenants: [t]}\n":                              "line 1",
		good + "- name: @\n" + good:                                             "line 2",
		good + "\t- x\n" + good:                                                 "line 2",
		good + "\n" + good:                                                      "line 3: name: another token is called a",
		good + strings.Replace(good, "name: a", "name: b", 1):                   "line 2: sha256: b has the hash",
		"\n" + strings.Replace(good, "name: a", "name: A", 1):                   "line 2: name: 1 to 64",
		strings.Replace(good, "name: a", "name: "+strings.Repeat("a", 65), 1):   "line 1: name: 1 to 64",
		strings.Replace(good, "name: a, ", "", 1):                               "line 1: name is missing",
		strings.Replace(good, ", tenants: [t]", "", 1):                          "line 1: tenants is missing",
		strings.Replace(good, hash, "opensesame", 1):                            "line 1: sha256: 64 hexadecimal digits",
		strings.Replace(good, hash, hash[2:], 1):                                "line 1: sha256: 64 hexadecimal digits",
		strings.Replace(good, "[s]", "s", 1):                                    "line 1: sources: a list",
		strings.Replace(good, "[s]", "[]", 1):                                   "line 1: sources: a list",
		strings.Replace(good, "[s]", "[null]", 1):                               "line 1: sources: a text",
		strings.Replace(good, "[s]", "[bob@example.org]", 1):                    "line 1: sources: source: an opaque name",
		strings.Replace(good, "[s]", `["a\nb"]`, 1):                             "line 1: sources: source: holds a control character",
		strings.Replace(good, "[s]", `[s, "*"]`, 1):                             `line 1: sources: "*" stands for all`,
		strings.Replace(good, "[t]", "["+strings.Repeat("t", 300)+"]", 1):       "line 1: tenants: tenant: 300 bytes",
		strings.Replace(good, "[learn]", "[sing]", 1):                           "line 1: actions: one is none of learn",
		strings.Replace(good, "[learn]", "[learn], any-source: perhaps", 1):     "line 1: any-source: true or false",
		strings.Replace(good, "[learn]", "[learn], any_source: true", 1):        "line 1: unknown key",
		strings.Replace(good, "[learn]", "[learn], actions: [learn, score]", 1): "line 1: actions is given twice",
	} {
		_, err := parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		} else if strings.Contains(err.Error(), "opensesame") {
			t.Errorf("%v shows what may be a token", err)
		}
	}
}

// What would make the file unreadable is not printed.
func TestNewTokenCanBeRead(t *testing.T) {
	for _, sources := range [][]string{{All, "b"}, {""}, {}} {
		secret, line, err := New(Rights{Name: "x", Sources: sources, Tenants: []string{"a"}, Actions: []string{"learn"}})
		if err == nil || secret != "" || line != nil {
			t.Errorf("%q: the line %q, %v", sources, line, err)
		}
	}
}

func TestClaim(t *testing.T) {
	for _, c := range []struct {
		rights         Rights
		action         stream.Action
		source, tenant string
		want           string // of the error, or source and whether it is own only
	}{
		{Rights{Sources: []string{"desk"}, Tenants: []string{"a"}, Actions: []string{"learn"}}, stream.Learn, "default", "a", "desk false"},
		{Rights{Sources: []string{"desk"}, Tenants: []string{"a"}, Actions: []string{"learn"}}, stream.Learn, "desk", "a", "desk false"},
		{Rights{Sources: []string{"desk"}, Tenants: []string{"a"}, Actions: []string{"learn"}}, stream.Learn, "desk ", "a", `source: this token is for "desk": leave the field out`},
		{Rights{Sources: []string{"desk"}, Tenants: []string{"a"}, Actions: []string{"learn"}}, stream.Learn, "*", "a", `source: this token is for "desk"`},
		{Rights{Sources: []string{"desk"}, Tenants: []string{"a"}, Actions: []string{"learn"}}, stream.Learn, "desk", "A", `tenant: this token is for "a"`},
		{Rights{Sources: []string{"desk"}, Tenants: []string{"a"}, Actions: []string{"learn"}}, stream.Learn, "desk", "a/b", `tenant: this token is for "a"`},
		{Rights{Sources: []string{"desk"}, Tenants: []string{"a"}, Actions: []string{"learn"}}, stream.Unlearn, "desk", "a", "action: this token may learn, and not unlearn"},
		{Rights{Sources: []string{"desk", "b"}, Tenants: []string{"a", "b"}, Actions: []string{"relearn"}}, stream.Relearn, "b", "b", "b true"},
		{Rights{Sources: []string{"desk", "b"}, Tenants: []string{"a"}, Actions: []string{"relearn"}}, stream.Relearn, "default", "a", `source: this token is for "desk", "b"`},
		{Rights{Sources: strings.Split("a b c d e f g", " "), Tenants: []string{"a"}, Actions: []string{"learn"}}, stream.Learn, "default", "a", `"d", "e", 2 more`},
		{Rights{Sources: []string{All}, Tenants: []string{All}, Actions: []string{"unlearn"}}, stream.Unlearn, "x", "y", "x true"},
		{Rights{Sources: []string{"desk"}, Tenants: []string{"a"}, Actions: []string{"unlearn"}, AnySource: true}, stream.Unlearn, "default", "a", "desk false"},
		{*OfTenant("a", "http"), stream.Correct, "default", "a", "http true"},
		{*Everything("x"), stream.Correct, "desk", "a", "desk false"},
		{Rights{Sources: []string{All}, Tenants: []string{All}, Actions: []string{"learn", "unlearn", "relearn"}}, stream.Correct, "x", "y", "and not correct"},
		{*Everything("x"), stream.Unlearn, "default", "y", "default false"},
		{*Everything("x"), stream.Assume, "default", "y", "and not assume"},
		{*OfTenant("a", "http"), stream.Unlearn, "default", "a", "http true"},
		{*OfTenant("a", "http"), stream.Unlearn, "desk", "a", `source: this token is for "http"`},
	} {
		e := stream.Event{Action: c.action, Source: c.source, Tenant: c.tenant}
		err := c.rights.Claim(&e)
		got := fmt.Sprint(e.Source, " ", e.OwnOnly)
		if err != nil {
			var denied *DeniedError
			if got = err.Error(); !errors.As(err, &denied) {
				t.Errorf("%+v: a %T", c, err)
			}
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%+v: got %q", c, got)
		}
	}
	for _, c := range []struct {
		rights *Rights
		ok     bool
	}{{OfTenant("a", "http"), false}, {Everything("x"), true}} {
		e := stream.Event{Source: "http", Tenant: "a", Sampled: stream.SampledShare(0.02, stream.SampledReview)}
		if err := c.rights.Claim(&e); (err == nil) != c.ok {
			t.Errorf("%+v says that a label was asked for: %v", c.rights, err)
		}
	}
	if got := (&Rights{Tenants: []string{"a", "b"}}).Tenant("x"); got != "x" {
		t.Errorf("a token of two tenants speaks for %q", got)
	}
}

// What others may write gives them rights, and what they may read is theirs to guess at.
func TestFilesOfOthers(t *testing.T) {
	_, line, err := New(*Everything("a"))
	if err != nil {
		t.Fatal(err)
	}
	path := write(t, string(line))
	for mode, want := range map[os.FileMode]string{0o600: "", 0o640: "", 0o644: "chmod o= " + path, 0o602: "chmod o= ", 0o666: "chmod o= "} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, err := Open(path, slog.New(slog.DiscardHandler))
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", mode, err, want)
		}
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, maxFile+1); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("an endless file is read")
	}
}

// many returns a file of n tokens; secret7 is that of t7 and of source s7.
func many(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "- {name: t%d, sha256: %x, sources: [s%d], tenants: [t], actions: [learn]}\n", i, sha256.Sum256([]byte(fmt.Sprint("secret", i))), i)
	}
	return text.String()
}

func TestTenThousandTokens(t *testing.T) {
	const n = 10_000
	f := open(t, write(t, many(n)))
	for i := range n {
		if got, ok := f.Find(fmt.Sprint("secret", i)); !ok || got.Name != fmt.Sprint("t", i) {
			t.Fatalf("token %d: %v, %v", i, got, ok)
		}
	}
}

// The file is replaced while requests run. One with a mistake changes nothing.
func TestFileIsReplacedUnderRequests(t *testing.T) {
	text := many(100)
	small := fmt.Sprintf("- {name: t7, sha256: %x, sources: [other], tenants: [t], actions: [learn]}\n", sha256.Sum256([]byte("secret7")))
	path := write(t, text)
	var logged bytes.Buffer
	f, err := Open(path, slog.New(slog.NewTextHandler(&logged, nil)))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			for {
				runtime.Gosched()
				select {
				case <-stop:
					return
				default:
				}
				got, ok := f.Find("secret7")
				if !ok || got.Name != "t7" || !slices.Contains([]string{"s7", "other"}, got.Sources[0]) {
					t.Errorf("token 7: %+v, %v", got, ok)
					return
				}
			}
		})
	}
	for _, next := range []string{small, "- {\n", text, small} {
		replace(t, path, next)
		f.Reload()
		_, many := f.Find("secret8")
		if want := next == text; many != want {
			t.Errorf("after a file of %d bytes: token 8 is known: %v", len(next), many)
		}
	}
	close(stop)
	wg.Wait()
	if said := logged.String(); strings.Count(said, "stay as they were") != 1 || !strings.Contains(said, "line 2") || strings.Contains(said, "secret") {
		t.Errorf("the log says %s", said)
	}
}

// A SIGHUP reads the file again and does not end the program.
func TestWatch(t *testing.T) {
	_, guard := cli.TakeHangups() // until Watch has it, the signal must not kill the test
	defer guard()
	secret, line, err := New(*Everything("a"))
	if err != nil {
		t.Fatal(err)
	}
	_, another, err := New(*Everything("b"))
	if err != nil {
		t.Fatal(err)
	}
	path := write(t, string(line))
	f := open(t, path)
	watched := make(chan error, 1)
	go func() { watched <- f.Watch(t.Context()) }()
	replace(t, path, string(another))
	for end := time.Now().Add(20 * time.Second); ; {
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		if _, ok := f.Find(secret); !ok {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the file is not read again")
		}
		time.Sleep(time.Millisecond)
	}
	select {
	case err := <-watched:
		t.Fatalf("Watch ended: %v", err)
	default:
	}
}

// Tokens beyond the bound are counted together.
func TestMetricsAreBounded(t *testing.T) {
	m := NewMetrics(prometheus.NewRegistry())
	for i := range 3 * maxNames {
		m.Count(fmt.Sprint("t", i), 202, 2)
	}
	if n := testutil.CollectAndCount(m.events); n != maxNames+1 {
		t.Errorf("%d series", n)
	}
	if got := testutil.ToFloat64(m.events.WithLabelValues(byOthers)); got != 4*maxNames {
		t.Errorf("%v events of other tokens", got)
	}
	(*Metrics)(nil).Count("a", 202, 1)
}

func BenchmarkFind(b *testing.B) {
	f := open(b, write(b, many(10_000)))
	for b.Loop() {
		f.Find("secret5000")
	}
}

type tenantTokens map[string]string

func (t tenantTokens) OfToken(token string) (string, bool) { tenant, ok := t[token]; return tenant, ok }

// A token is the operator's, or of the file, or a tenant's. No token and no password is empty.
func TestSender(t *testing.T) {
	secret, line, err := New(Rights{Name: "desk", Sources: []string{"s"}, Tenants: []string{"a"}, Actions: []string{"learn"}})
	if err != nil {
		t.Fatal(err)
	}
	all := Known{
		Operator: NewSecret("operator"), File: open(t, write(t, string(line))),
		Tenants: tenantTokens{"tenant": "b", "": "b", "nobody": ""}, Source: "http",
	}
	for header, want := range map[string]string{
		"Bearer operator": ByOperator, "bearer  operator ": ByOperator, "Bearer " + secret: "desk", "Bearer tenant": ByTenant,
		"": "", "Bearer": "", "Bearer ": "", "Basic operator": "", "operator": "", "Bearer operato": "", "Bearer nobody": "",
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Authorization", header)
		got := ""
		if rights := all.Sender(r); rights != nil {
			got = rights.Name
		}
		if got != want {
			t.Errorf("%q: the rights of %q, want of %q", header, got, want)
		}
		if rights := (&Known{}).Sender(r); rights != nil {
			t.Errorf("%q: without tokens there are rights: %+v", header, rights)
		}
	}
	if none := NewSecret(""); none.Set() || none.Is("") || !NewSecret("a").Is("a") || NewSecret("a").Is("b") {
		t.Error("a secret is not compared as it should")
	}
}
