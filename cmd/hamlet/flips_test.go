package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"hamlet/algos/model"
	"hamlet/cmd/internal/service/machine"
	"hamlet/cmd/internal/service/settings"
	"hamlet/state"
	"hamlet/stream"
	"hamlet/stream/filelog"
	"hamlet/stream/predictions"
)

// One bit of the log or of the models of a hamlet up flips. Whoever opens the folder reads every record and
// every version as it was, but for what an error or a line of the log names: at most one record, and one
// version or those that share its bytes. HAMLET_FLIPS is how many bits are tried.
func TestFlippedBitsOfAFolder(t *testing.T) {
	ownFolders(t)
	flips := 100
	if testing.Short() || raced {
		flips = 20
	}
	if n, err := strconv.Atoi(os.Getenv("HAMLET_FLIPS")); err == nil {
		flips = n
	}
	data := t.TempDir()
	for i := range 3 { // versions
		var texts strings.Builder
		for j := range 60 {
			fmt.Fprintf(&texts, "%s\tword%d thing%d of %d\n", []string{"spam", "ham"}[j%2], j%7, j%11, i)
		}
		file := filepath.Join(t.TempDir(), "texts")
		if err := os.WriteFile(file, []byte(texts.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		mustUp(t, "--format=text", "--data", data, file)
	}
	files := filesOf(t, data)
	whole := lookAt(t, data, nil)
	if len(whole.versions) < 3 || len(whole.records[stream.EventsTopic("default")]) != 180 || len(whole.said) > 0 {
		t.Fatalf("%d versions, %d events, %q", len(whole.versions), len(whole.records[stream.EventsTopic("default")]), whole.said)
	}

	random := rand.New(rand.NewPCG(1, 5))
	what := map[string]int{}
	for i := range flips {
		file := files[random.IntN(len(files))]
		if i%2 == 0 { // by bytes; else by files, most of which are small
			file = byBytes(files, random)
		}
		bit := random.Int64N(8 * file.size)
		t.Run(fmt.Sprintf("%s bit %d", file.name, bit), func(t *testing.T) {
			copied := filepath.Join(t.TempDir(), "data")
			for _, part := range []string{"logs", "models"} {
				if err := os.CopyFS(filepath.Join(copied, part), os.DirFS(filepath.Join(data, part))); err != nil {
					t.Fatal(err)
				}
			}
			path := filepath.Join(copied, file.name)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			b[bit/8] ^= 1 << (bit % 8)
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			got := lookAt(t, copied, whole)
			lost := got.against(t, whole)
			switch {
			case filepath.Base(file.name) == "retention":
				// up writes it at each start, from its flags: see lookAt.
				what["retention: written again"]++
				if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, file.bytes) {
					t.Errorf("it is %q, was %q (%v)", b, file.bytes, err)
				}
				if lost != "" {
					t.Errorf("%s", lost)
				}
			case len(got.said) == 0:
				t.Errorf("nobody says a word; %s", lost)
			case lost == "":
				what["named, and nothing is lost"]++
			default:
				what["named: "+lost]++
			}
		})
	}
	t.Logf("%d flips: %v", flips, what)
}

// An onDisk is a file that a flip may hit.
type onDisk struct {
	name  string // below the folder
	bytes []byte
	size  int64
}

// filesOf returns the files of the logs and the models that have bytes. The locks have none.
func filesOf(t *testing.T, data string) (all []onDisk) {
	t.Helper()
	for _, part := range []string{"logs", "models"} {
		err := filepath.WalkDir(filepath.Join(data, part), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			b, err := os.ReadFile(path)
			name, _ := filepath.Rel(data, path)
			if len(b) > 0 {
				all = append(all, onDisk{name, b, int64(len(b))})
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func byBytes(files []onDisk, random *rand.Rand) onDisk {
	var total int64
	for _, f := range files {
		total += f.size
	}
	at := random.Int64N(total)
	for _, f := range files {
		if at -= f.size; at < 0 {
			return f
		}
	}
	panic("no file has this byte")
}

// A look is what somebody finds who opens a folder and reads all of it.
type look struct {
	records  map[string][]stream.Record // by log
	ends     map[string]stream.Bounds
	damaged  map[string]int              // offsets that an error names
	versions map[int64]*state.Checkpoint // that can be read
	head     int64                       // that Load returns; 0: none
	said     []string                    // errors, and what was logged as a warning or an error
}

// A hearing logs into a look.
type hearing struct{ *look }

func (h hearing) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (h hearing) WithAttrs([]slog.Attr) slog.Handler               { return h }
func (h hearing) WithGroup(string) slog.Handler                    { return h }
func (h hearing) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	h.said = append(h.said, text)
	return nil
}

// lookAt opens a folder as up does, and reads all of it. was says which logs and versions there were; nil: ask.
func lookAt(t *testing.T, data string, was *look) *look {
	t.Helper()
	l := &look{
		records: map[string][]stream.Record{}, ends: map[string]stream.Bounds{}, damaged: map[string]int{}, versions: map[int64]*state.Checkpoint{},
	}
	dir, err := machine.Open(t.Context(), data, machine.Config{Log: slog.New(hearing{l})})
	if err != nil {
		l.said = append(l.said, err.Error())
		return l
	}
	defer dir.Close()
	topic := settings.Topic{Replication: -1, Retention: machine.DefaultRetention}
	err = errors.Join(topic.Ensure(t.Context(), dir, "default"), topic.EnsurePredictions(t.Context(), dir, "default"))
	if err != nil {
		l.said = append(l.said, err.Error())
	}
	for _, name := range []string{stream.EventsTopic("default"), stream.ReceiptTopic, stream.DeadLetterTopic, predictions.Topic("default")} {
		l.read(t, dir, name)
	}
	store, err := dir.Store("default")
	if err != nil {
		l.said = append(l.said, err.Error())
		return l
	}
	c, number, err := store.Load(t.Context(), state.Head)
	if err != nil {
		l.said = append(l.said, err.Error())
	} else {
		l.head, l.versions[number] = number, c
	}
	if was == nil {
		infos, err := store.Versions(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		was = &look{versions: map[int64]*state.Checkpoint{}}
		for _, v := range infos {
			was.versions[v.Version] = nil
		}
	}
	for number := range was.versions {
		if c, err := store.LoadVersion(t.Context(), number); err != nil {
			l.said = append(l.said, err.Error())
		} else {
			l.versions[number] = c
		}
	}
	return l
}

// read reads a log.
func (l *look) read(t *testing.T, dir *machine.Dir, name string) {
	t.Helper()
	log, err := dir.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	b, err := log.Bounds(t.Context())
	if err != nil {
		l.said = append(l.said, err.Error())
		return
	}
	l.ends[name] = b
	for next := b.First; next < b.End; {
		records, _, err := log.Read(t.Context(), next, stream.Limit{Records: 7}, 0)
		var bad *filelog.DamagedError
		switch {
		case errors.As(err, &bad):
			l.said = append(l.said, err.Error())
			l.damaged[name] += int(bad.To - bad.From)
			next = bad.To
			continue
		case err != nil:
			t.Fatal(err)
		case len(records) == 0:
			return
		}
		l.records[name] = append(l.records[name], records...)
		next = records[len(records)-1].Offset + 1
	}
}

// against compares what was found with the whole, and returns what is lost. What differs from it is an error.
func (l *look) against(t *testing.T, whole *look) (lost string) {
	t.Helper()
	for name, want := range whole.records {
		if b := l.ends[name]; b != whole.ends[name] {
			t.Errorf("%s: %+v, was %+v", name, b, whole.ends[name])
		}
		got := l.records[name]
		for _, w := range want {
			if len(got) > 0 && got[0].Offset == w.Offset {
				if fmt.Sprintf("%+v", got[0]) != fmt.Sprintf("%+v", w) {
					t.Errorf("%s: %+v, was %+v", name, got[0], w)
				}
				got = got[1:]
			}
		}
		missing := len(want) - len(l.records[name])
		if len(got) > 0 || missing != l.damaged[name] || missing > 1 {
			t.Errorf("%s: %d of %d records are missing, %d are named as damaged, and there are %d others", name, missing, len(want), l.damaged[name], len(got))
		}
		if missing == 1 {
			lost = "one record"
		}
	}
	for number, c := range l.versions {
		want := whole.versions[number]
		if want == nil || !bytes.Equal(c.Model, want.Model) || c.Position != want.Position || c.Epoch != want.Epoch || c.Events != want.Events {
			t.Errorf("version %d is not what it was", number)
		}
	}
	if c := l.versions[l.head]; c != nil {
		if _, err := model.Restore(c.Model); err != nil {
			t.Error(err)
		}
	}
	if n := len(whole.versions) - len(l.versions); n > 0 {
		lost += fmt.Sprintf("%d of %d versions", n, len(whole.versions))
	}
	return lost
}
