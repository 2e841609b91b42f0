package manual_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/process/cli/manual"
	"hamlet/cmd/internal/testkit/debian"
)

// A grammar with everything that help knows.
type grammar struct {
	Serve struct {
		Listen string        `help:"Serve here: see [docs]." default:"127.0.0.1:80" placeholder:"ADDR"`
		Every  time.Duration `help:"How often." default:"3s" placeholder:"D"`
		Form   string        `help:"What to say." enum:"text,json" default:"text" group:"Words"`
		Kafka  []string      `help:"Brokers." placeholder:"ADDR" group:"Words"`
		Users  string        `help:"File of users." type:"path" placeholder:"FILE"`
		Key    string        `help:"A key." placeholder:"SECRET"`
		Watch  *bool         `help:"Look at it." negatable:""`
		Deep   bool          `help:"All of it, even 'quotes' and \\backslashes."`
		Rare   int           `help:"Hardly ever." rare:"serve" default:"7"`
		Gone   string        `help:"Not there." hidden:""`
		Bare   bool          `help:"Typed alone." env:"-"`
	} `cmd:"" help:"Serve it."`
	Model struct {
		Pin struct {
			Version string `arg:"" help:"Which one."`
		} `cmd:"" help:"Pin a version."`
		Unpin struct{} `cmd:"" help:"Follow the newest again."`
	} `cmd:"" help:"Models."`
	Hidden struct{} `cmd:"" hidden:"" help:"Not there."`
	cli.ProgramFlags
}

const description = `hamlet: a program.

Examples:
  hamlet serve   .starts with a dot

It's all -- in \one\ paragraph.`

func parse(args ...string) (string, grammar, error) {
	var g grammar
	var out bytes.Buffer
	_, err := cli.Parse(cli.Program{Name: "hamlet", Description: description, Version: "hamlet 0.1.0", Grammar: &g}, args,
		cli.IO{In: strings.NewReader(""), Out: &out, Err: io.Discard})
	return out.String(), g, err
}

// help returns the help in a form.
func help(t *testing.T, args ...string) string {
	t.Helper()
	out, _, err := parse(args...)
	if !errors.Is(err, cli.ErrHelp) {
		t.Fatalf("%q: %v", args, err)
	}
	return out
}

func TestCommands(t *testing.T) {
	if got, want := help(t, "--help-as=commands"), "\nserve\nmodel\nmodel pin\nmodel unpin\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// All forms name all flags, but hidden ones, and no form fails.
func TestFormsNameAllFlags(t *testing.T) {
	for _, form := range manual.Forms() {
		text := strings.ReplaceAll(help(t, "serve", "--help-as="+form), `\-`, "-")
		if strings.Contains(text, "gone") || strings.Contains(text, "hidden") {
			t.Errorf("%s shows what is hidden", form)
		}
		for _, flag := range []string{"listen", "every", "form", "kafka", "users", "watch", "deep", "rare"} {
			if form != "commands" && !strings.Contains(text, flag) {
				t.Errorf("%s lacks --%s", form, flag)
			}
		}
	}
}

func TestWrongUsage(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--help-as=rtf", "there are man, yaml"},
		{"serve now --help-as=man", "no command now of hamlet serve"},
		{"serve --help-as=yaml --speed=1", "no flag --speed"},
	} {
		_, _, err := parse(strings.Fields(c.args)...)
		if cli.Status(err) != cli.StatusUsage || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want wrong usage with %q", c.args, err, c.want)
		}
	}
}

var comment = regexp.MustCompile(`(?m)^#([a-z-]+:)`)

// The file as it is changes nothing but what was given. With all its lines in effect it is
// a file of the program, and its defaults are the program's.
func TestYAML(t *testing.T) {
	text := help(t, "serve", "--help-as=yaml", "--listen=:9", "--kafka=[a:1, b:2]")
	for _, lack := range []string{"bare", "config:", "version:"} {
		if strings.Contains(text, lack) {
			t.Errorf("the file has %s, which only a command line sets:\n%s", lack, text)
		}
	}
	for _, want := range []string{"### Words\n", "#watch: true\n", "HAMLET_KEY may stand", "#users: FILE\n", "#form: text\n", "One of text, json."} {
		if !strings.Contains(text, want) {
			t.Errorf("the file lacks %q:\n%s", want, text)
		}
	}
	for line := range strings.Lines(text) {
		if len([]rune(line)) > 91 {
			t.Errorf("a long line: %s", line)
		}
	}
	file := filepath.Join(t.TempDir(), "hamlet.yaml")
	read := func(text string) grammar {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, g, err := parse("serve", "--config", file)
		if err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
		return g
	}
	_, plain, err := parse("serve")
	if err != nil {
		t.Fatal(err)
	}
	if g := read(text); g.Serve.Listen != ":9" || !slices.Equal(g.Serve.Kafka, []string{"a:1", "b:2"}) || g.Serve.Every != plain.Serve.Every || g.Serve.Rare != 7 {
		t.Errorf("the file as it is makes %+v", g.Serve)
	}
	g := read(comment.ReplaceAllString(help(t, "serve", "--help-as=yaml"), "$1"))
	if g.Serve.Listen != plain.Serve.Listen || g.Serve.Every != plain.Serve.Every || g.Serve.Form != "text" || g.Serve.Rare != 7 || g.Serve.Deep {
		t.Errorf("the file with all lines makes %+v, without a file it is %+v", g.Serve, plain.Serve)
	}
}

// troff finds nothing to complain of, and shows every word.
func TestManPages(t *testing.T) {
	page := help(t, "--help-as=man")
	for _, want := range []string{".TH HAMLET 1", ".B hamlet\n", `\&.starts`, `\eone\e`, ".BR hamlet\\-serve (1)\nServe it.", ".SH NAME\nhamlet \\- a program\n"} {
		if !strings.Contains(page, want) && !strings.Contains(page, strings.TrimPrefix(want, `\&`)) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("no groff: what it thinks of the pages is not tested")
	}
	for _, command := range []string{"", "serve", "model", "model pin"} {
		cmd := exec.CommandContext(t.Context(), groff, "-man", "-ww", "-b", "-Tutf8", "-P-c")
		cmd.Stdin = strings.NewReader(help(t, append(strings.Fields(command), "--help-as=man")...))
		var out, complaints bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &complaints
		if err := cmd.Run(); err != nil || complaints.Len() > 0 {
			t.Errorf("%s: %v: %s", command, err, complaints.String())
		}
		if command == "" && !strings.Contains(out.String(), `in \one\ paragraph`) {
			t.Errorf("the page reads\n%s", out.String())
		}
	}
}

// A program with a name that says little is installed under a longer one.
func TestInstalledName(t *testing.T) {
	var g struct{ cli.ProgramFlags }
	var out bytes.Buffer
	_, err := cli.Parse(cli.Program{Name: "learner", Description: "Learns.\n\n  learner --kafka k:9092", Grammar: &g, Version: "learner 0.1.0"},
		[]string{"--help-as=man"}, cli.IO{In: strings.NewReader(""), Out: &out, Err: io.Discard})
	if !errors.Is(err, cli.ErrHelp) || !strings.Contains(out.String(), "\nhamlet\\-learner \\- learns\n") || !strings.Contains(out.String(), "hamlet\\-learner \\-\\-kafka k:9092") {
		t.Errorf("%v: %s", err, out.String())
	}
}

// What the shells offer behind a line. Flags that take a value with = end so in zsh.
var offers = []struct {
	line, want, not string // words that are offered, and one that is not
}{
	{"hamlet se", "serve", "model"},
	{"hamlet model ", "pin unpin", "serve"},
	{"hamlet serve --ev", "--every", "--listen"},
	{"hamlet serve --form=", "text json", "--form"},
	{"hamlet model pin --c", "--config", "--every"},
	{"hamlet serve --no-", "--no-watch", "--watch"},
}

func TestBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	script := help(t, "--help-as=bash") + "\ncompopt() { :; }\n" +
		`COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _hamlet; printf '%s\n' "${COMPREPLY[@]}"`
	for _, o := range offers {
		words := strings.Split(strings.Replace(o.line, "=", " = ", 1), " ") // as bash cuts it
		out, err := exec.CommandContext(t.Context(), bash, append([]string{"-uc", script, "bash"}, words...)...).CombinedOutput()
		if err != nil {
			t.Errorf("%q: %v", o.line, err)
		}
		checkOffer(t, o.line, strings.Fields(string(out)), o.want, o.not)
	}
}

func checkOffer(t *testing.T, line string, got []string, want, not string) {
	t.Helper()
	for _, w := range strings.Fields(want) {
		if !slices.Contains(got, w) {
			t.Errorf("%q offers %q, and not %s", line, got, w)
		}
	}
	if slices.Contains(got, not) {
		t.Errorf("%q offers %s", line, not)
	}
}

func TestFish(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hamlet.fish")
	if err := os.WriteFile(file, []byte(help(t, "--help-as=fish")), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", t.TempDir())
	for _, o := range offers {
		out, err := debian.Over(t, "fish", "fish", "--no-config", "-c", "source "+file+`; complete -C "$argv[1]"`, o.line).CombinedOutput()
		if err != nil {
			t.Errorf("%q: %v: %s", o.line, err, out)
		}
		var got []string
		for line := range strings.Lines(string(out)) {
			word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
			got = append(got, strings.TrimPrefix(word, "--form=")) // fish repeats the flag
		}
		checkOffer(t, o.line, got, o.want, o.not)
	}
}

// Zsh's own functions are played: they print what they are given.
func TestZsh(t *testing.T) {
	script := `compdef() {}
_describe() { local all=("${(@)${(P)2}%%:*}"); print -l -- ${(M)all:#$PREFIX*} }
_arguments() { print -l -- "$@" }
` + help(t, "--help-as=zsh") + `
words=("$@"); CURRENT=$#; PREFIX=${words[-1]}; _hamlet`
	for _, o := range offers {
		out, err := debian.Command(t, "zsh", "zsh", append([]string{"-fuc", script, "zsh"}, strings.Split(o.line, " ")...)...).CombinedOutput()
		if err != nil {
			t.Errorf("%q: %v: %s", o.line, err, out)
		}
		var got []string
		for line := range strings.Lines(string(out)) {
			word := strings.TrimSpace(line)
			if flag, rest, ok := strings.Cut(strings.TrimPrefix(word, "*"), "["); ok {
				word = strings.TrimSuffix(flag, "=")
				if strings.Contains(o.line, word+"=") { // the values of the flag before the cursor
					_, values, _ := strings.Cut(strings.TrimSuffix(rest, ")"), "(")
					got = append(got, strings.Fields(values)...)
					continue
				}
			}
			got = append(got, word)
		}
		not := o.not
		if strings.HasPrefix(not, "--") { // zsh itself chooses among flags
			not = ""
		}
		checkOffer(t, o.line, got, o.want, not)
	}
}
