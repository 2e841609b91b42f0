package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"hamlet/cmd/internal/operate/model"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/advice"
	"hamlet/cmd/internal/service/machine"
	"hamlet/cmd/internal/service/settings"
	"hamlet/cmd/internal/show/progress"
	"hamlet/state"
	"hamlet/stream"
)

// A Restore is `hamlet restore`, for kong to fill.
type Restore struct {
	Folder string `arg:"" name:"dir" help:"A directory of hamlet backup, or a model's file."`
	Names
	As      string `help:"Name for the model of a file." placeholder:"NAME" env:"-"`
	Backup  string `help:"This backup; the beginning of its name is enough. Default: the newest." placeholder:"NAME"`
	Replace bool   `help:"Restore models that the store has already, if the backup is not older." env:"-"`
	NewLog  bool   `help:"The log is lost too: begin with the model at offset 0 of an empty one." env:"-"`
	Data    string `help:"Restore into the folder of a stopped hamlet up --data." placeholder:"DIR"`
	JSON    bool   `name:"json" help:"Print one JSON object."`
	settings.Redis
	settings.Kafka
}

// Help is what kong prints below the flags.
func (Restore) Help() string {
	return `Examples:

  hamlet restore /backup --redis r:6379 --kafka k:9092      the newest
  hamlet restore /backup --backup 20261123T20 --model news --redis r:6379
  sudo -u hamlet hamlet restore /backup --data /var/lib/hamlet   a stopped up
  sudo -u hamlet hamlet restore /backup --data /srv/new --new-log   disk lost
  hamlet restore spam.tar --as copy             beside a running hamlet up

Of a directory: stop the learners first. After it start them: they go on from the restored position, and
the model becomes what it would have been without the loss. Scorers may run.

It refuses, and writes nothing, if

  the store has the model already (--replace), or has come further in the log;
  the model is of other numerics: use the hamlet that made the backup;
  the model is of several partitions, which hamlet 0.1.0 could have; without
  --model it restores the others, and ends with status 1;
  a learner of the model runs, which its lease says;
  the log does not go on where the model ends (with --kafka or --data);
  a file is damaged: hamlet verify shows which backups are whole.

Without --kafka and --data nobody compares the log now. The learner does so when it starts.

With --new-log the model keeps what it has learnt, and a new log starts. What was
labelled after the backup is lost, and answers come from the newest version: a pin is
not restored. It needs --kafka or --data.

A file is one of backup --model, of hamlet model export of 0.1.0, or of eval --save, which
has no position: its learner reads the log from the beginning. Learners may run. With
--replace theirs goes on from the file at its next save, and a pin ends. The file must have
come as far in the log. What was replaced is kept for 30 days, for hamlet model pin. The
learner of another name goes on with --events-of.

It writes as a learner does: in Redis it needs the right of the learner's user.`
}

// A Restored is what `hamlet restore --json` prints.
type Restored struct {
	Backup string            `json:"backup"`
	Models []RestoredVersion `json:"models"`
	Logs   bool              `json:"log_compared"` // with --new-log: the log is empty
}

// A RestoredVersion is the newest version of a model that was restored.
type RestoredVersion struct {
	Model     string `json:"model"`
	Partition int    `json:"partition"` // always 0
	Version
	Before   int64  `json:"before,omitempty"`   // the version that it replaced
	Pinned   int64  `json:"pinned,omitempty"`   // answers come from this version
	Unpinned int64  `json:"unpinned,omitempty"` // the version of the backup that was pinned, and is not restored
	Versions int    `json:"versions"`           // that were restored
	Promoted string `json:"promoted,omitempty"` // the model that answers in its place
	Logs     []Log  `json:"logs,omitempty"`     // one, where the log was compared
}

// Run restores.
func (c *Restore) Run(ctx context.Context, stdio cli.IO) error {
	if isFile(c.Folder) {
		return c.fromFile(ctx, stdio)
	}
	if c.As != "" {
		return cli.Usagef("--as: %s is a directory of backups, which names its models", c.Folder)
	}
	if err := c.check(); err != nil {
		return err
	}
	if c.NewLog && c.Data == "" && len(c.Kafka.Kafka) == 0 {
		return cli.Usagef("--new-log begins at offset 0, and must see that the log is empty: give --kafka, or --data")
	}
	log := slog.New(slog.NewTextHandler(stdio.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	x, chosen, unlock, err := c.backup()
	if err != nil {
		return err
	}
	defer func() { _ = unlock() }()
	r, done, err := c.reach(ctx, log)
	if err != nil {
		return err
	}
	line := progress.NewLine(stdio.Err)
	defer line.Clear()
	r.show = func(doing string) { line.Draw(doing) }
	result := &Restored{Backup: x.name, Logs: r.logs != nil}
	err = r.all(ctx, chosen, result)
	line.Clear()
	if err := errors.Join(err, done()); err != nil {
		return err
	}
	return errors.Join(c.print(result, stdio.Out), errors.Join(r.old...))
}

// A Place is where models are restored to: a directory of a machine that is stopped.
type Place interface {
	Store(model string) (state.Store, error)
	Path() string // for people
}

// Into restores the models of a directory of backups to a place, and prints nothing. The learners of
// the models are stopped. logs may be nil: then nobody compares the log.
func (c *Restore) Into(ctx context.Context, to Place, logs stream.Logs) (*Restored, error) {
	x, chosen, unlock, err := c.backup()
	if err != nil {
		return nil, err
	}
	defer func() { _ = unlock() }()
	r := c.restoring(slog.New(slog.DiscardHandler))
	r.dir, r.logs, r.show = to, logs, func(string) {}
	result := &Restored{Backup: x.name, Logs: logs != nil}
	if err := r.all(ctx, chosen, result); err != nil {
		return nil, err
	}
	return result, errors.Join(r.old...)
}

func (c *Restore) restoring(log *slog.Logger) *restoring {
	return &restoring{c: c, from: folder{c.Folder}, log: log, kept: map[string]int{}}
}

// backup returns the backup and those of its models that are asked for. Until unlock no backup of the
// directory is deleted.
func (c *Restore) backup() (x *Index, chosen []Model, unlock func() error, err error) {
	if unlock, err = machine.ShareLock(c.Folder); err != nil {
		return nil, nil, nil, err
	}
	if x, err = (folder{c.Folder}).choose(c.Backup); err == nil {
		chosen, err = c.choose(x)
	}
	if err != nil {
		_ = unlock()
		return nil, nil, nil, err
	}
	return x, chosen, unlock, nil
}

// choose returns the models of the backup that are asked for.
func (c *Restore) choose(x *Index) ([]Model, error) {
	if len(c.Model) == 0 {
		return x.Models, nil
	}
	var chosen []Model
	for _, name := range c.Model {
		i := slices.IndexFunc(x.Models, func(m Model) bool { return m.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("the backup %s has no model %s", x.name, name)
		}
		chosen = append(chosen, x.Models[i])
	}
	return chosen, nil
}

// reach finds where the models and the log are: what is named, or the directory of a stopped hamlet up.
// done frees that. Without a log it is nil.
func (c *Restore) reach(ctx context.Context, log *slog.Logger) (r *restoring, done func() error, err error) {
	r = c.restoring(log)
	done = func() error { return nil }
	switch {
	case c.Data == "" && c.Redis.Redis == "":
		return nil, nil, cli.Usagef("say where the models go: --redis HOST:PORT, or --data DIR of a stopped hamlet up")
	case c.Data != "" && c.Redis.Redis != "":
		return nil, nil, cli.Usagef("--data is in place of --redis")
	case c.Data != "":
		if err := ours(c.Data); err != nil {
			return nil, nil, err
		}
		const all = 1 << 20 // versions: those of the directory and of the backup
		dir, err := machine.Open(ctx, c.Data, machine.Config{Keep: all, Database: c.Redis.RedisDB, Log: log})
		if err != nil {
			return nil, nil, err
		}
		r.dir, r.logs, done = dir, dir, dir.Close
	}
	if len(c.Kafka.Kafka) > 0 {
		cfg, err := c.Kafka.Config("hamlet-restore", log)
		if err != nil {
			return nil, nil, errors.Join(&cli.UsageError{Err: err}, done())
		}
		if err := cfg.Ping(ctx); err != nil {
			return nil, nil, errors.Join(err, done())
		}
		r.logs = cfg
	}
	return r, done, nil
}

// A restoring writes models of a folder to Redis.
type restoring struct {
	c    *Restore
	from folder
	dir  Place       // the models'; nil: they are in Redis
	logs stream.Logs // nil: nobody compares the log
	log  *slog.Logger
	show func(doing string)
	kept map[string]int // by model: the versions that Redis has
	old  []error        // of models that only hamlet 0.1.0 reads, which are left out
}

// all looks at every model before it writes the first. Where all models are meant, it leaves out those
// that only hamlet 0.1.0 reads.
func (r *restoring) all(ctx context.Context, chosen []Model, result *Restored) error {
	compared := map[string][]Log{} // by model
	var readable []Model
	for _, m := range chosen {
		err := r.check(ctx, &m, compared)
		switch {
		case errors.Is(err, state.ErrPartitions) && len(r.c.Model) == 0:
			err = fmt.Errorf("model %s is not restored: %w; to restore the others alone, name each with --model", m.Name, err)
			r.old = append(r.old, err)
		case err != nil:
			return fmt.Errorf("nothing is restored: model %s: %w", m.Name, err)
		default:
			readable = append(readable, m)
		}
	}
	if len(readable) == 0 {
		return fmt.Errorf("nothing is restored: %w", errors.Join(r.old...))
	}
	for i, m := range readable {
		store, err := r.open(&m)
		if err != nil {
			return err
		}
		restored, err := r.model(ctx, store, &m)
		if err := errors.Join(err, store.Close()); err != nil {
			return fmt.Errorf("restore model %s, after %d of %d models: %w; correct the cause, "+
				"and run the same command with --replace",
				m.Name, i, len(readable), err)
		}
		restored.Logs = compared[m.Name]
		result.Models = append(result.Models, restored)
	}
	return nil
}

// check returns an error if a model cannot be restored. It writes nothing.
func (r *restoring) check(ctx context.Context, m *Model, compared map[string][]Log) error {
	p, err := m.only()
	if err != nil {
		return advice.Add(err)
	}
	store, err := r.open(m)
	if err != nil {
		return err
	}
	err = nobodyActs(ctx, store)
	if err == nil {
		err = r.takes(ctx, store, m)
	}
	if errors.Is(err, state.ErrPartitions) { // Redis has it, and not the backup
		err = fmt.Errorf("%w; %s", advice.Add(err), model.OldKeys(m.Name))
	}
	if err := errors.Join(err, store.Close()); err != nil {
		return err
	}
	if err := r.fits(p); err != nil {
		return err
	}
	if r.logs == nil {
		return nil
	}
	at := p.newest().manifest.Position
	if r.c.NewLog {
		at = state.Position{}
	}
	l, err := goesOn(ctx, r.logs, r.c.events(m.Name), at)
	switch {
	case err != nil:
		return err
	case r.c.NewLog && (l.End > 0 || l.First > 0):
		return fmt.Errorf("--new-log: topic %s is not empty: it ends at offset %d", l.Topic, l.End)
	case r.c.NewLog:
		return nil
	case l.Problem != "":
		return fmt.Errorf("%s. Restore the log first, or name the right one; if the log is lost: --new-log, "+
			"with an empty topic", &l)
	}
	compared[m.Name] = []Log{l}
	return nil
}

// nobodyActs returns an error if a learner of the model runs: its beats change the lease. A learner
// of 0.1.0 has none. Its next save is refused all the same, because restoring takes its epoch.
func nobodyActs(ctx context.Context, store state.Store) error {
	before, err := store.Lease(ctx)
	if err != nil || before.Beats <= 0 {
		return err
	}
	select {
	case <-time.After(lookAgain):
	case <-ctx.Done():
		return ctx.Err()
	}
	after, err := store.Lease(ctx)
	if err == nil && !after.Same(before) {
		process, _, _ := strings.Cut(after.Writer, "#")
		return fmt.Errorf("the learner %s runs: stop the learners of this model first", process)
	}
	return err
}

// lookAgain is many beats of a learner: on a busy machine some are late.
const lookAgain = 2 * time.Second

// fits reads all versions that would be restored, and checks that this program
// can go on with the newest.
func (r *restoring) fits(p *Partition) error {
	for i := range p.Versions {
		v := &p.Versions[i]
		r.show(fmt.Sprintf("reading version %d", v.Version))
		checkpoint, err := r.from.checkpoint(v)
		if err == nil && v == p.newest() {
			err = model.Fits(checkpoint)
		}
		if err != nil {
			return fmt.Errorf("version %d: %w", v.Version, err)
		}
	}
	return nil
}

func (c *Restore) print(r *Restored, w io.Writer) error {
	if c.JSON {
		return cli.PrintJSON(w, r)
	}
	var b strings.Builder
	for i := range r.Models {
		m := &r.Models[i]
		fmt.Fprintf(&b, "%s, %s\n", m.Model, m.line())
		if m.Before != 0 {
			fmt.Fprintf(&b, "  version %d, which it replaces, is kept for 30 days\n", m.Before)
		}
		if m.Pinned != 0 {
			fmt.Fprintf(&b, "  answers come from version %d, which was pinned: hamlet model unpin ends that\n", m.Pinned)
		}
		if m.Promoted != "" && m.Promoted != m.Model {
			fmt.Fprintf(&b, "  model %s answers in its place, as before: hamlet model promote --back ends that\n", m.Promoted)
		}
		if m.Unpinned != 0 {
			fmt.Fprintf(&b, "  version %d was pinned in the backup and is not restored\n", m.Unpinned)
			if m.Pinned == 0 {
				fmt.Fprint(&b, "  answers come from the newest version\n")
			}
		}
		for j := range m.Logs {
			fmt.Fprintf(&b, "  %s\n", &m.Logs[j])
		}
	}
	fmt.Fprintf(&b, "restored from %s. Start the learners", r.Backup)
	if !r.Logs {
		b.WriteString(": they compare the log, which nobody has compared yet")
	}
	b.WriteString(".\n")
	return cli.Print(w, b.String())
}
