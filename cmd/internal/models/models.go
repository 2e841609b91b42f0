// Package models is what `hamlet model` shows of models, and how it moves them: list,
// show, diff, export, import and verify. Compare says which of two models predicts better.
// Package pinning has what changes answers.
//
// A model is named as MODEL or MODEL@VERSION, and then it is in Redis, or as a file: one of
// `hamlet model export`, or one of `hamlet eval --save`.
package models

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/settings"
	"hamlet/state/redis"
)

// Commands are commands below `hamlet model`, for kong to fill.
type Commands struct {
	List    list    `cmd:"" help:"List the models in Redis."`
	Show    show    `cmd:"" help:"Show a model: configuration, versions, sources, alarms."`
	Diff    diff    `cmd:"" help:"Show how two models differ: settings, weights, sources."`
	Compare compare `cmd:"" help:"Say which of two models predicts better, as their learners go on."`
	Export  export  `cmd:"" help:"Write a model to a file."`
	Import  put     `cmd:"" help:"Put the model of a file into Redis."`
	Verify  verify  `cmd:"" help:"Check that a model is whole and decodes."`
}

// patience bounds a command. A model has some 30 MB. A comparison is not bounded: it
// may read predictions of a month.
const patience = 10 * time.Minute

// A Session is what the flags of `hamlet model` say. Model is the model that is meant
// where a command names none.
type Session struct {
	Model  string
	JSON   bool
	Redis  settings.Redis
	Stdout io.Writer
	Log    *slog.Logger

	stores map[string]*redis.Store // by model; opened by store
}

// Has reports whether kong's command, such as "export <model> <file>", is one of Commands.
func Has(command string) bool { return find(&Commands{}, command) != nil }

// find returns what runs a command, nil if it is not here.
func find(c *Commands, command string) func(context.Context, *Session) error {
	name, _, _ := strings.Cut(command, " ")
	return map[string]func(context.Context, *Session) error{
		"list": c.List.run, "show": c.Show.run, "diff": c.Diff.run, "compare": c.Compare.run,
		"export": c.Export.run, "import": c.Import.run, "verify": c.Verify.run,
	}[name]
}

// Run runs a command of which Has is true.
func (c *Commands) Run(ctx context.Context, command string, s *Session) error {
	if name, _, _ := strings.Cut(command, " "); name != "compare" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	s.stores = map[string]*redis.Store{}
	err := find(c, command)(ctx, s)
	for _, store := range s.stores {
		err = errors.Join(err, store.Close())
	}
	return err
}

// store returns a model's store.
func (s *Session) store(name string) (*redis.Store, error) {
	if store := s.stores[name]; store != nil {
		return store, nil
	}
	if err := (settings.ModelName{Model: name}).Validate(); err != nil {
		return nil, cli.Usagef("%q is not a name of a model: 1 to 64 of a–z, 0–9 and -", name)
	}
	reach, err := s.Redis.OrRunning()
	if err != nil {
		return nil, err
	}
	cfg, err := reach.Config(name, s.Log)
	if err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	redis.SetLogger(s.Log)
	store, err := redis.New(cfg)
	if err != nil {
		return nil, err
	}
	s.stores[name] = store
	return store, nil
}

// named returns the names that a command was given, or the model that --model names.
func (s *Session) named(names []string) []string {
	if len(names) == 0 {
		return []string{s.Model}
	}
	return names
}

// json prints one object.
func (s *Session) json(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("models in JSON: %w", err)
	}
	_, err = s.Stdout.Write(append(b, '\n'))
	return written(err)
}

// print writes a text.
func (s *Session) print(text string) error {
	_, err := io.WriteString(s.Stdout, text)
	return written(err)
}

// written says what an error in writing was about.
func written(err error) error {
	if err != nil {
		return fmt.Errorf("write about the models: %w", err)
	}
	return nil
}

// megabytes writes a length in bytes.
func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// age writes how long ago a time was, in its largest unit.
func age(at, now time.Time) string {
	d := now.Sub(at)
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}

// stamp writes a time of saving.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
