package contract

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/testkit/debian"
)

const dashboardFile = root + "deploy/grafana/hamlet.json"

// A panel is one of Grafana's.
type panel struct {
	Title   string
	Type    string
	ID      int
	GridPos struct{ X, Y, W, H int }
	Targets []struct{ Expr, LegendFormat string }
}

type dashboard struct {
	Panels      []panel
	Annotations struct{ List []struct{ Name, Expr string } }
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	if err := json.Unmarshal([]byte(file(t, dashboardFile)), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// Panels have ids and places of their own, and each asks something.
func TestDashboard(t *testing.T) {
	d := readDashboard(t)
	ids, taken := map[int]string{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if other, ok := ids[p.ID]; ok {
			t.Errorf("%s has the id of %s", p.Title, other)
		}
		ids[p.ID] = p.Title
		if p.Title == "" || (p.Type == "row") != (len(p.Targets) == 0) || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%+v: no title, no query or no place", p)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, ok := taken[[2]int{x, y}]; ok {
					t.Fatalf("%s lies over %s", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
	if len(d.Panels) < 20 {
		t.Errorf("%d panels: the test misses its point", len(d.Panels))
	}
}

// Every query of the dashboard gets data from a Prometheus that scrapes a live hamlet, every
// label of a legend is there, and Prometheus takes the rules.
func TestDashboardShowsALiveHamlet(t *testing.T) {
	program := filepath.Join(debian.Tree(t, "prometheus"), "run")
	d, dir := readDashboard(t), t.TempDir()
	hamlet := os.Getenv("HAMLET_BIN")
	if hamlet == "" {
		hamlet = filepath.Join(dir, "hamlet")
		if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", hamlet, "hamlet/cmd/hamlet").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	rules, err := filepath.Abs(root + "deploy/prometheus/hamlet.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	door, at := freeAddress(t), freeAddress(t)
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, fmt.Appendf(nil, `global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
  - {job_name: hamlet-up, static_configs: [{targets: [%q]}]}
`, rules, door), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, ctx, hamlet, "up", "--generate", "0", "--rate", "300", "--bad-feed", "700", "--save-every", "1s",
		"--http", door, "--spamd", "127.0.0.1:0", "--listen-nats", "127.0.0.1:0")
	start(t, ctx, program, "prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "tsdb"), "--web.listen-address="+at)

	type query struct{ where, expr, legend string }
	var left []query
	for _, p := range d.Panels {
		for _, asked := range p.Targets {
			left = append(left, query{p.Title, asked.Expr, asked.LegendFormat})
		}
	}
	for _, a := range d.Annotations.List {
		left = append(left, query{where: a.Name, expr: a.Expr})
	}
	why := map[string]error{}
	for len(left) > 0 {
		ask(ctx, door)
		left = slices.DeleteFunc(left, func(q query) bool {
			why[q.where] = hasData(ctx, at, q.expr, q.legend)
			return why[q.where] == nil
		})
		select {
		case <-ctx.Done():
			for _, q := range left {
				t.Errorf("%s: %s: %v", q.where, q.expr, why[q.where])
			}
			t.FailNow()
		case <-time.After(200 * time.Millisecond):
		}
	}
	var loaded struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
	}
	if err := get(ctx, "http://"+at+"/api/v1/rules", &loaded); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, g := range loaded.Data.Groups {
		for _, r := range g.Rules {
			seen++
			if r.Health == "err" {
				t.Errorf("rule %s: %s", r.Name, r.LastError)
			}
		}
	}
	if seen < 25 {
		t.Errorf("Prometheus has %d rules", seen)
	}
}

// freeAddress returns an address of loopback that nobody listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// start starts a program that ends with the test.
func start(t *testing.T, ctx context.Context, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "XDG_RUNTIME_DIR="+t.TempDir())
	said, err := os.CreateTemp(t.TempDir(), "said")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = said, said
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Cancel()
		_ = cmd.Wait()
		if t.Failed() {
			said := file(t, said.Name())
			t.Logf("%v: %s", args, said[max(0, len(said)-2000):])
		}
	})
}

// ask makes one question at the HTTP door. It may be early.
func ask(ctx context.Context, door string) {
	for path, body := range map[string]string{"/v1/score": "You won a prize", "/v1/explain": "See you at lunch"} {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+door+path, strings.NewReader(body))
		if err != nil {
			return
		}
		request.Header.Set("Content-Type", "text/plain")
		if answer, err := http.DefaultClient.Do(request); err == nil {
			answer.Body.Close()
		}
	}
}

func get(ctx context.Context, from string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	return json.NewDecoder(answer.Body).Decode(into)
}

// hasData returns nil if Prometheus answers a query with a number, whose labels are those of
// the legend.
func hasData(ctx context.Context, at, expr, legend string) error {
	expr = strings.ReplaceAll(expr, "$__rate_interval", "10s")
	var got struct {
		Status, Error string
		Data          struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := get(ctx, "http://"+at+"/api/v1/query?query="+url.QueryEscape(expr), &got); err != nil {
		return err
	}
	if got.Status != "success" {
		return fmt.Errorf("%s: %s", got.Status, got.Error)
	}
	err := fmt.Errorf("no data")
	for _, r := range got.Data.Result {
		if r.Value[1] == "NaN" {
			continue
		}
		err = nil
		for _, m := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(legend, -1) {
			if r.Metric[m[1]] == "" {
				return fmt.Errorf("%v has no label %s", r.Metric, m[1])
			}
		}
	}
	return err
}
