package cli

import (
	"io"
	"log/slog"
)

// LogFlags choose what is logged on standard error, and how.
type LogFlags struct {
	LogLevel  string `help:"Least level that is logged: debug, info, warn or error." enum:"debug,info,warn,error" default:"info" group:"Logs"`
	LogFormat string `help:"Form of the log: text or json." enum:"text,json" default:"text" group:"Logs"`
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

// ConfigFlag names the configuration file; Parse has read it by then.
type ConfigFlag struct {
	Config string `help:"Configuration file in YAML: any flag by its long name. Flags and HAMLET_… variables win over it." placeholder:"FILE"`
}
