package cli

import (
	"cmp"
	"io"
	"log/slog"
	"time"

	"github.com/alecthomas/kong"
)

// LogFlags choose what is logged on standard error, and how.
type LogFlags struct {
	LogLevel  string `help:"debug, info, warn or error." enum:"debug,info,warn,error" default:"info" placeholder:"LEVEL"`
	LogFormat string `help:"text or json." enum:"text,json" default:"text" placeholder:"FORM"`
}

// Logger returns the logger that the flags describe.
func (f LogFlags) Logger(w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(f.LogLevel)) // one of the enum
	options := &slog.HandlerOptions{Level: level}
	if f.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// ProgramFlags are the flags of every program: its configuration file, which Parse
// has read by then, and its version.
type ProgramFlags struct {
	Config  string           `help:"YAML; keys are flag names. HAMLET_SAVE_EVERY for --save-every overrides it, a flag overrides both." placeholder:"FILE"`
	Version kong.VersionFlag `help:"Print the version." env:"-"`
}

// Range returns wrong usage if a flag's value is not in least…most.
func Range[T cmp.Ordered](flag string, value, least, most T) error {
	if value >= least && value <= most {
		return nil
	}
	return Usagef("%s: %v is not in %v…%v", flag, value, least, most)
}

// NotNegative returns wrong usage if a flag's value is below zero.
func NotNegative(flag string, value int) error {
	if value >= 0 {
		return nil
	}
	return Usagef("%s: %d is below zero", flag, value)
}

// Since returns the time that --since names: a duration before now, such as 24h, or a time of
// RFC 3339. An empty value is the zero time.
func Since(value string, now time.Time) (time.Time, error) {
	if value == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(value); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	if t, err := time.Parse(time.RFC3339, value); err == nil {
		return t, nil
	}
	return time.Time{}, Usagef("--since: %q is neither a duration such as 24h nor a time such as 2026-11-20T10:00:00Z",
		value)
}

// Gone is a command that a release had. It is wrong usage, whatever follows its name, and the tag says what does
// the same now:
//
//	Filter cli.Gone `cmd:"" hidden:"" passthrough:"" instead:"spamc marks a message"`
type Gone struct {
	Args []string `arg:"" optional:""`
}

// AfterApply is called by kong where the command is given.
func (Gone) AfterApply(path *kong.Path) error {
	return Usagef("there is no %s any more: %s", path.Command.FullPath(), path.Command.Tag.Get("instead"))
}
