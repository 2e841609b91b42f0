package endtoend

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/operate/eventlog"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/servertest/appends"
)

// A golden model of several partitions has an export beside its log, NAME.jsonl.zst, which the
// release's own program made:
//
//	hamlet order export testdata/golden/v0.1/golden-four.jsonl.zst --model golden-four
//
// Imported into one partition and learnt, it makes the same model.
func TestGoldenImport(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(goldenFolder, "*", "*.jsonl.zst"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there is no export of a golden log: %v", err)
	}
	for _, file := range files {
		t.Run(file, func(t *testing.T) { importGolden(t, file) })
	}
}

func importGolden(t *testing.T, file string) {
	var want golden
	b, err := os.ReadFile(filepath.Join(filepath.Dir(file), "golden.json"))
	if err := errors.Join(err, json.Unmarshal(b, &want)); err != nil {
		t.Fatal(err)
	}
	name := strings.TrimSuffix(filepath.Base(file), ".jsonl.zst")
	i := slices.IndexFunc(want.Models, func(m goldenModel) bool { return m.Name == name })
	if i < 0 {
		t.Fatalf("%s is of no model of its golden.json", file)
	}
	m := want.Models[i]
	m.Partitions = 1
	s := newStage(t)
	wantModel := func(of, got string) {
		t.Helper()
		if want.Numerics == model.CurrentNumerics() && got != m.SHA256 {
			t.Errorf("%s: model %s, want %s", of, got, m.SHA256)
		}
	}
	evalLog := func(args ...string) string {
		t.Helper()
		return parseResult(t, mustOutput(t, "hamlet", slices.Concat([]string{"eval", "--json"}, m.Flags, args)...)).ModelSHA256
	}
	wantModel("eval --log", evalLog("--log", file))

	// The events of a golden log are as old as its release.
	mustOutput(t, "hamlet", "log", "import", file, "--model", m.Name, "--kafka", s.addr, "--retention", "-1s")
	topic := stream.EventsTopic(m.Name)
	s.ends[topic] = boundsOf(t, s.kafka, topic).End
	addr := ownRedis(t)
	s.learner(&m, addr)
	learnt := fmt.Sprintf("%x", s.taken(&m, addr).ModelSHA256)
	wantModel("the learner", learnt)

	again := filepath.Join(t.TempDir(), "again.zst")
	mustOutput(t, "hamlet", "log", "export", again, "--model", m.Name, "--kafka", s.addr)
	if got := evalLog("--log", again); got != learnt {
		t.Errorf("exported again: model %s, want %s", got, learnt)
	}
	if got, want := digestOf(t, eventlog.File(again)), digestOf(t, eventlog.File(file)); got != want {
		t.Errorf("exported again: %s, want %s", got, want)
	}
}

// digestOf is the SHA-256 of records: of their times, keys, headers and values.
func digestOf(t *testing.T, records eventlog.Records) string {
	t.Helper()
	n, sum := 0, sha256.New()
	for r, err := range records {
		if err != nil {
			t.Fatal(err)
		}
		n++
		fmt.Fprintf(sum, "%d %q %q %q\n", r.Time.UnixMilli(), r.Key, r.Headers, r.Value)
	}
	return fmt.Sprintf("%d records, SHA-256 %x", n, sum.Sum(nil))
}

// mostMemory returns the most memory that a process had until it ended, in MiB. What its parent had
// before is in a child's rusage, so /proc says it.
func mostMemory(pid int) (mib int) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		status, err := os.ReadFile(fmt.Sprint("/proc/", pid, "/status"))
		_, peak, ok := strings.Cut(string(status), "VmHWM:")
		if err != nil || !ok { // it has no memory any more
			return mib
		}
		kb, _ := strconv.Atoi(strings.Fields(peak)[0])
		mib = max(mib, kb>>10)
	}
	return mib
}

// An import that kill −9 ends ten times makes the log of the file, and its model. With
// HAMLET_NIGHTLY=1 the file has a million records.
func TestImportIsKilled(t *testing.T) {
	t.Parallel()
	if passwords != nil {
		t.Skip("the proxy stands before servers without users")
	}
	n, pad := 2000, 4096
	if nightly {
		n, pad = 1_000_000, 0
	}
	random := rand.New(rand.NewPCG(23, 23))
	began := time.Now().Add(-time.Hour).Truncate(time.Second).UTC()
	written := func(yield func(*stream.Record, error) bool) {
		for i := range n {
			class := float64(random.IntN(2))
			e := stream.Event{ID: fmt.Sprint("e", i), Source: "s", Tenant: "t", Label: stream.Ham, Time: began}
			e.Body = stream.Body{Kind: stream.Vector, Vector: []stream.Number{
				{Name: "x", Value: random.NormFloat64() + class}, {Name: "y", Value: random.NormFloat64()},
			}}
			if class > 0 {
				e.Label = stream.Spam
			}
			r := stream.Record{
				Offset: int64(i), Key: fmt.Append(nil, i%100), Time: began.Add(time.Duration(i) * time.Millisecond),
			}
			var err error
			r.Value, r.Headers, err = e.EncodeRecord()
			r.Headers = append(r.Headers, stream.Header{Key: "pad", Value: make([]byte, pad)})
			if !yield(&r, err) {
				return
			}
		}
	}
	file := filepath.Join(t.TempDir(), "log.zst")
	if _, err := eventlog.Export(written, "source", file); err != nil {
		t.Fatal(err)
	}
	want := digestOf(t, eventlog.File(file))

	name := modelName(t)
	topic := stream.EventsTopic(name)
	proxy := appends.Start(t, appends.Config{
		Broker: kafkaAddr, Topic: topic, Delay: 30 * time.Millisecond, Fate: func() appends.Fate { return appends.Delay },
	})
	cfg := kafka.Config{Brokers: []string{kafkaAddr}}
	if err := cfg.Ensure(t.Context(), topic, -1, -1); err != nil {
		t.Fatal(err)
	}
	flags := []string{"log", "import", file, "--model", name, "--kafka"}
	end := func() int { return int(boundsOf(t, cfg, topic).End) }
	midway := 0
	for kill := 1; kill <= 10; kill++ {
		p := start(t, "hamlet", append(flags, proxy.Addr())...)
		await(t, "a part of the file is in the log", func() bool { return end() >= kill*n/12 })
		p.kill()
		if at := end(); at < n {
			midway++
		}
	}
	if midway < 5 {
		t.Errorf("only %d of 10 kills came before the end", midway)
	}
	began = time.Now()
	last := exec.CommandContext(t.Context(), filepath.Join(bin, "hamlet"), append(flags, kafkaAddr, "--json")...)
	var out bytes.Buffer
	last.Stdout = &out
	if err := last.Start(); err != nil {
		t.Fatal(err)
	}
	memory := mostMemory(last.Process.Pid) // until it has ended
	if err := last.Wait(); err != nil {
		t.Fatalf("the last import: %v\n%s", err, out.String())
	}
	took := time.Since(began).Round(time.Millisecond)
	t.Logf("%d kills came midway; the last import took %v and at most %d MiB: %s", midway, took, memory, out.String())
	if memory > 300 {
		t.Errorf("it took %d MiB", memory)
	}
	log, err := eventlog.Open(t.Context(), cfg, name)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if got := digestOf(t, log.Records(t.Context())); got != want {
		t.Errorf("the log has %s, the file %s", got, want)
	}
	sha := func(args ...string) string {
		t.Helper()
		args = append([]string{"eval", "--json", "--table-bits", "8", "--dense", "x,y", "--experts", "lean"}, args...)
		out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "hamlet"), args...).Output()
		if err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
		return parseResult(t, string(out)).ModelSHA256
	}
	if got, want := sha("--kafka", kafkaAddr, "--model", name), sha("--log", file); got != want {
		t.Errorf("the log makes model %s, the file %s", got, want)
	}
}
