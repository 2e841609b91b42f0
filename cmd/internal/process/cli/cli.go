// Package cli holds what hamlet's commands share when they start: flags, signals
// and exit statuses. A flag comes from the command line, else from the environment
// (HAMLET_…), else from a configuration file.
//
//	type flags struct {
//		Every time.Duration `help:"How often." default:"3s" placeholder:"D"`
//		cli.LogFlags
//		cli.ProgramFlags
//	}
//
//	func main() { cli.Main("learner", run) }
//
//	func run(ctx context.Context, args []string, stdio cli.IO) error {
//		var f flags
//		_, err := cli.Parse(cli.Program{Name: "learner", Grammar: &f}, args, stdio)
//		…
//	}
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"hamlet/cmd/internal/process/cli/manual"
)

// Exit statuses of every command but `hamlet score --exit-code`.
const (
	StatusOK     = 0
	StatusFailed = 1 // something could not be done
	StatusUsage  = 2 // wrong usage

	// StatusRefused: what is saved is refused, and will be at every start until somebody mends it. The
	// units of systemd start nothing again after it. It is EX_CONFIG of sysexits.h; no Go program that
	// crashes ends with it.
	StatusRefused = 78
)

// A refusedError is an error that ends with StatusRefused.
type refusedError struct{ Err error }

func (e *refusedError) Error() string { return e.Err.Error() }
func (e *refusedError) Unwrap() error { return e.Err }

// ExitCode returns StatusRefused.
func (e *refusedError) ExitCode() int { return StatusRefused }

// Refused returns err, as a RefusedError if it is one of these.
func Refused(err error, these ...error) error {
	for _, refusal := range these {
		if errors.Is(err, refusal) {
			return &refusedError{err}
		}
	}
	return err
}

// ErrHelp says that the user asked for help and got it.
var ErrHelp = errors.New("help was asked for")

// A UsageError is a mistake in how a command was called.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef returns a UsageError.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// IO is what a command reads and writes: data on Out, progress and logs on Err.
type IO struct {
	In       io.Reader
	Out, Err io.Writer
}

// Main runs a command with the process's arguments and streams, and exits the
// process. SIGINT, SIGTERM and a lost terminal end ctx; a second signal kills.
func Main(name string, run func(ctx context.Context, args []string, stdio IO) error) {
	collectLater()
	ctx, stop := signal.NotifyContext(context.Background(), ends()...)
	context.AfterFunc(ctx, stop) // from here on a signal has its default effect
	err := run(ctx, os.Args[1:], IO{&interruptible{ctx: ctx, from: os.Stdin}, os.Stdout, os.Stderr})
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = &interruptedError{err}
	}
	stop()
	if err != nil && !errors.Is(err, ErrHelp) && err.Error() != "" {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		var usage *UsageError
		if errors.As(err, &usage) {
			fmt.Fprintf(os.Stderr, "Run '%s --help' for its usage.\n", name)
		}
	}
	os.Exit(Status(err))
}

// collectLater has the first collection of garbage begin at some 11 MB of heap in place of 2.8. A command that answers
// once ends before: a collection was an eighth of its time. The first collection sets all as it was, unless the
// program has set something else meanwhile.
func collectLater() {
	const first = 400
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(first)
	runtime.AddCleanup(new(*int), func(usual int) {
		if now := debug.SetGCPercent(usual); now != first {
			debug.SetGCPercent(now)
		}
	}, 100)
}

// An interruptedError is the error of a command that a signal ended. Its text says
// so once, and adds what was left undone or went wrong.
type interruptedError struct{ err error }

func (e *interruptedError) Unwrap() error { return e.err }

func (e *interruptedError) Error() string {
	rest := slices.DeleteFunc(joined(e.err), saysOnlyInterrupted)
	if len(rest) == 0 {
		return "interrupted"
	}
	return fmt.Sprintf("interrupted: %v", errors.Join(rest...))
}

// joined returns the errors that errors.Join made err of, or err.
func joined(err error) (all []error) {
	several, ok := err.(interface{ Unwrap() []error })
	if !ok || errors.Join(several.Unwrap()...).Error() != err.Error() {
		return []error{err}
	}
	for _, e := range several.Unwrap() {
		all = append(all, joined(e)...)
	}
	return all
}

// saysOnlyInterrupted reports whether the text of err is that of its innermost error, a
// cancellation.
func saysOnlyInterrupted(err error) bool {
	root := err
	for next := errors.Unwrap(root); next != nil; next = errors.Unwrap(root) {
		root = next
	}
	_, several := root.(interface{ Unwrap() []error })
	return !several && errors.Is(root, context.Canceled) && strings.TrimPrefix(err.Error(), "stopped: ") == root.Error()
}

// TakeHangups returns a channel of SIGHUPs. Until stop is called they do not end the command
// that Main runs, nor have they another effect. One that waits stands for all that follow.
func TakeHangups() (hangups <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Ignore(syscall.SIGHUP) // ends Main's interest in it
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}

// ends returns the signals that ask a command to end. A terminal that goes, or a
// lost ssh, sends SIGHUP; nohup has it ignored, and it stays so.
func ends() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// Status maps a command's error to its exit status. An error that has a method
// ExitCode chooses its own.
func Status(err error) int {
	var own interface{ ExitCode() int }
	var usage *UsageError
	switch {
	case err == nil, errors.Is(err, ErrHelp):
		return StatusOK
	case errors.As(err, &usage):
		return StatusUsage
	case errors.As(err, &own):
		return own.ExitCode()
	}
	return StatusFailed
}

// A Program is what Parse reads a command line for.
type Program struct {
	Name, Description string
	Version           string    // what --version prints
	Grammar           any       // a pointer to a struct with kong's tags, which Parse fills
	Vars              kong.Vars // for ${…} in the tags
	// Shared is a pointer to a struct of flags that other programs have. One
	// configuration file serves all programs, so its keys may name these as well.
	Shared  any
	Mapping Mapping
	Bind    []any // what kong passes to the hooks of Grammar
}

// A Subcommand is what follows the first word of a command, as kong names it: "pin <version>".
type Subcommand string

// Parse reads the command line, the environment and the configuration file, and
// returns the command that was chosen. The error is ErrHelp or a *UsageError.
func Parse(p Program, args []string, stdio IO) (*kong.Context, error) {
	helped := false
	file := &fileResolver{name: p.Name}
	grammar, commands := p.Grammar, []kong.Option{p.Vars}
	if fileOf(args) == "" { // a file may name the flags of all commands
		grammar, commands = reduce(grammar, p.Vars, args)
	} else if p.Shared != nil {
		shared, err := kong.New(p.Shared, p.Vars)
		if err != nil {
			return nil, fmt.Errorf("shared flags of %s: %w", p.Name, err)
		}
		file.shared, _ = flagNames(shared.Model.Node)
	}
	options := append([]kong.Option{
		kong.Name(p.Name),
		kong.Description(p.Description),
		kong.Vars{"version": p.Version},
		kong.Writers(stdio.Out, stdio.Err),
		kong.Exit(func(int) { helped = true }),
		kong.Help(printHelp),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: helpWidth, NoExpandSubcommands: true}),
		kong.ValueFormatter(helpText),
		kong.DefaultEnvars("HAMLET"),
		kong.Resolvers(file),
		kong.WithHyphenPrefixedParameters(true),
		kong.Bind(p.Bind...),
	}, commands...)
	parser, err := kong.New(grammar, options...)
	if err != nil {
		return nil, fmt.Errorf("flags of %s: %w", p.Name, err)
	}
	args, all := allHelp(args)
	if form, rest, ok := helpAs(args); ok {
		err := manual.Write(stdio.Out, form, manual.Program{
			Name: p.Name, Version: release(p.Version), Root: parser.Model.Node, Help: helpText,
		}, rest)
		if err != nil {
			return nil, &UsageError{err}
		}
		return nil, ErrHelp
	}
	if !all {
		hideRare(parser.Model.Node)
	}
	for _, f := range allFlags(parser.Model.Node) {
		if f.HasDefault && f.Default != "" && !f.IsBool() {
			f.PlaceHolder = f.Default
		}
	}
	parser.Model.HelpFlag.Help = "Print this help. After =: default. See --help-all."
	if err := file.load(args, p.Mapping); err != nil {
		return nil, &UsageError{err}
	}
	if err := file.Validate(parser.Model); err != nil { // before --help ends the run
		return nil, &UsageError{err}
	}
	ctx, err := parser.Parse(args)
	if helped {
		return nil, ErrHelp
	}
	var usage *UsageError
	if errors.As(err, &usage) { // a flag's own words, without kong's around them
		return nil, usage
	}
	if err != nil {
		return nil, &UsageError{err}
	}
	return ctx, nil
}

// allHelp makes --help of --help-all, and reports whether it was there.
func allHelp(args []string) ([]string, bool) {
	i := slices.Index(args, "--help-all")
	if end := slices.Index(args, "--"); i < 0 || end >= 0 && end < i {
		return args, false
	}
	args = slices.Clone(args)
	args[i] = "--help"
	return args, true
}

// helpAs returns the form that --help-as asks for, and the other arguments.
func helpAs(args []string) (form string, rest []string, ok bool) {
	for i, a := range args {
		if a == "--" {
			break
		}
		if form, ok = strings.CutPrefix(a, "--help-as="); ok {
			return form, slices.Delete(slices.Clone(args), i, i+1), true
		}
	}
	return "", args, false
}

// release returns the second word of what --version prints: the version alone.
func release(version string) string {
	if words := strings.Fields(version); len(words) > 1 {
		return words[1]
	}
	return version
}

// hideRare keeps flags out of the help of commands that their tag names: rare:"up,learner".
// The help must fit on two screens.
func hideRare(n *kong.Node) {
	for _, f := range n.Flags {
		f.Hidden = f.Hidden || slices.Contains(strings.Split(f.Tag.Get("rare"), ","), n.Name)
	}
	for _, child := range n.Children {
		hideRare(child)
	}
}

// helpWidth is the width of help texts, in columns.
const helpWidth = 80

// printHelp prints kong's help without the blank lines between groups of flags, so
// that it fits on two screens.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	var text strings.Builder
	out := ctx.Stdout
	ctx.Stdout = &text
	err := kong.DefaultHelpPrinter(options, ctx)
	ctx.Stdout = out
	inFlags := false
	for line := range strings.Lines(text.String()) {
		inFlags = inFlags && line != "Commands:\n" || line == "Flags:\n"
		if inFlags && line == "\n" {
			continue
		}
		if _, err := io.WriteString(out, line); err != nil {
			return err
		}
	}
	return err
}

// helpText returns what --help says about a flag. Its default stands behind the "=",
// but for one that is on.
func helpText(v *kong.Value) string {
	if v.IsBool() && v.Tag.Negatable != "" {
		return strings.TrimSuffix(v.Help, ".") + " (default on)."
	}
	return v.Help
}
