package cli

import (
	"io"
	"log/slog"

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
