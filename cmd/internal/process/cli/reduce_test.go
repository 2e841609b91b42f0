package cli

import (
	"bytes"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"hamlet/cmd/internal/testkit/await"
)

// reducible is a grammar of which kong gets a part, and the same with a field for which it gets the whole.
type reducible struct {
	Send struct {
		Every  string   `help:"How often (${often})." default:"${often}"`
		Height int      `help:"In metres."`
		To     []string `arg:"" optional:"" help:"Where to."`
	} `cmd:"" help:"Send it."`
	Keep struct {
		List struct{} `cmd:"" help:"List what is kept."`
		Add  struct {
			Weight int `help:"In grams."`
		} `cmd:"" help:"Keep more."`
	} `cmd:"" help:"Keep it."`
	Old Gone `cmd:"" hidden:"" passthrough:"" instead:"send"`
	ProgramFlags
}

type whole struct {
	Quartz bool `hidden:""`
	reducible
}

// Parse gives kong a part of the grammar only where nobody can tell.
func TestReducedGrammarDoesTheSame(t *testing.T) {
	t.Setenv("HAMLET_HEIGHT", "high") // is no number, and of one command
	parse := func(grammar any, args []string) string {
		var out, errs bytes.Buffer
		ctx, err := Parse(Program{Name: "post", Description: "Post.", Version: "post 1", Grammar: grammar,
			Vars: kong.Vars{"often": "3s", "seldom": "1h"}}, args, IO{Out: &out, Err: &errs})
		text := out.String() + errs.String()
		if ctx != nil {
			text += ctx.Command()
		}
		if err != nil {
			text += err.Error()
		}
		return text
	}
	for _, line := range []string{
		"", "--help", "-h", "--help-all", "--version", "--version --help", "send --help", "send --help-all", "send",
		"send a b", "send --every=1h a", "send --height=3 a", "send --evry=1h", "send --version", "send --help-as=man",
		"send -- --help", "sent", "keep", "keep --help", "keep list", "keep ad", "keep add --help", "keep add --weight=x",
		"keep add --weight=2", "old", "old a --b", "--config=/nowhere send", "send --config=/nowhere", "--help-as=bash", "-- send",
		"--every=1h send", "--height",
	} {
		args := strings.Fields(line)
		if got, want := parse(new(reducible), args), parse(new(whole), args); got != want {
			t.Errorf("post %s: with a part of the grammar\n%s\nwith the whole\n%s", line, got, want)
		}
	}
}

// The first collection of garbage, which comes late, leaves the next at their usual times.
func TestCollectLater(t *testing.T) {
	t.Setenv("GOGC", "")
	percent := func() uint64 {
		s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	collectLater()
	if got := percent(); got != 400 {
		t.Fatalf("GOGC is %d, want 400", got)
	}
	await.Until(t, func() bool { runtime.GC(); return percent() == 100 }, func() string { return "GOGC stays as it was at the start" })
}
