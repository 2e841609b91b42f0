package endtoend

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hamlet/algos/algotest/dataset"
	"hamlet/cmd/internal/door/gateway"
	"hamlet/cmd/internal/testkit/debian"
	"hamlet/stream"
	"hamlet/stream/embedded"
)

// These are read before TestMain clears them for the commands.
var (
	nightly  = os.Getenv("HAMLET_NIGHTLY") != ""
	programs = os.Getenv(debian.Variable)
)

// TestPostfix sends real mail through a real Postfix, which asks a gateway by the milter
// protocol. It takes two minutes and runs with HAMLET_NIGHTLY=1 alone.
//
//  1. Each of 1,000 messages is delivered once, byte for byte but for the fields of
//     Postfix and X-Hamlet, which says exactly what `hamlet score` says of it.
//  2. The log shows the throughput beside that without a milter, in turns.
//  3. The scorer is killed and NATS stopped: mail flows on, unmarked and counted, and is
//     marked again when both are back.
func TestPostfix(t *testing.T) {
	if !nightly {
		t.Skip("1,000 messages through Postfix: HAMLET_NIGHTLY=1 runs it")
	}
	if real {
		t.Skip("it stops its NATS: with embedded servers alone")
	}
	t.Setenv(debian.Variable, programs)
	const learnt, sent = 2000, 1000
	data := dataset.Path(t, "spamassassin")
	mail := corpus(t, data, learnt, sent)
	model := modelName(t)
	learnCorpus(t, model, data, learnt)

	broker, err := embedded.StartNATS(embedded.NATSOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = broker.Close() }()
	scorerFlags := []string{"--model", model, "--nats", broker.URL(), "--redis", redisAddr, "--http", "127.0.0.1:0"}
	scorer := start(t, "scorer", scorerFlags...)
	// On a busy machine two seconds may pass without a fault.
	door := start(t, "hamlet", "gateway", "--model", model, "--nats", broker.URL(), "--milter", "127.0.0.1:0",
		"--http", "127.0.0.1:0", "--deadline", "5s")
	doorHTTP := door.httpAddr()
	ready := func() bool { return status(doorHTTP+"/readyz") == 200 }
	await(t, "the gateway is ready", ready)
	p := debian.NewPostfix(t, "smtpd_milters = inet:"+door.says(regexp.MustCompile(`milter +(127\S+)`)),
		"milter_default_action = accept",
		// Postfix changes a message in two ways, which would hide a change that is ours.
		"message_drop_headers =", "local_header_rewrite_clients =")

	// 1 and 2: with the milter, without, and again, so that the machine's mood counts for both.
	half := sent / 2
	first, _ := send(t, p.Addr, 0, mail[:half])
	plain, _ := send(t, p.Plain, sent, mail)
	second, _ := send(t, p.Addr, half, mail[half:])
	rate := func(n int, d time.Duration) float64 { return float64(n) / d.Seconds() }
	t.Logf("with the milter %.0f and %.0f messages a second, without %.0f",
		rate(half, first), rate(sent-half, second), rate(sent, plain))
	arrived := delivered(t, p, 2*sent)
	marked := map[string]string{} // X-Hamlet, by the file that hamlet score reads
	folder := t.TempDir()
	for i, want := range mail {
		got := arrived[i]
		if got.field == "" || !bytes.Equal(got.message, want) {
			t.Fatalf("message %d has X-Hamlet %q and is\n%q\nwant\n%q", i, got.field, got.message, want)
		}
		if other := arrived[sent+i]; other.field != "" || !bytes.Equal(other.message, want) {
			t.Fatalf("message %d without a milter has X-Hamlet %q and is\n%q\nwant\n%q", i, other.field, other.message, want)
		}
		file := filepath.Join(folder, fmt.Sprintf("%04d.eml", i))
		if err := os.WriteFile(file, got.message, 0o600); err != nil {
			t.Fatal(err)
		}
		marked[file] = got.field
	}
	compareWithScore(t, model, broker.URL(), folder, marked)
	if n := metric(doorHTTP, "hamlet_gateway_unmarked_total"); n > 0 {
		t.Errorf("%v messages passed unmarked", n)
	}
	clear(arrived)

	// 3.
	const killAt, stopAt = 50, 150 // messages, of which eight are under way
	var killBegins, killed time.Time
	outage, base := mail[:300], 2*sent
	address, err := url.Parse(broker.URL())
	if err != nil {
		t.Fatal(err)
	}
	took, moments := send(t, p.Addr, base, outage[:250], func(i int) {
		switch i {
		case killAt:
			killBegins = time.Now()
			scorer.kill()
			killed = time.Now()
		case stopAt:
			if err := broker.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	if broker, err = embedded.StartNATS(embedded.NATSOptions{Addr: address.Host}); err != nil {
		t.Fatal(err)
	}
	start(t, "scorer", scorerFlags...)
	await(t, "the gateway is ready again", ready)
	_, later := send(t, p.Addr, base+250, outage[250:])
	moments = append(moments, later...)
	t.Logf("250 messages took %v, while the scorer was killed and NATS stopped", took)
	arrived = delivered(t, p, base+len(outage))
	unmarked, before, during := 0, 0, 0
	for i, want := range outage {
		got := arrived[base+i]
		if !bytes.Equal(got.message, want) {
			t.Fatalf("message %d of the outage is\n%q\nwant\n%q", i, got.message, want)
		}
		if got.field == "" {
			unmarked++
		}
		// Messages that were under way at the kill may be either.
		switch there := moments[i].reply.Before(killBegins); {
		case there || i >= 250:
			if there {
				before++
			}
			if got.field == "" {
				t.Errorf("message %d, while the scorer answers, is unmarked", i)
			}
		case moments[i].data.After(killed):
			during++
			if got.field != "" {
				t.Errorf("message %d, without a scorer, has X-Hamlet %q", i, got.field)
			}
		}
	}
	t.Logf("%d messages were answered before the kill; %d began after it", before, during)
	if before == 0 || during == 0 {
		t.Error("that shows nothing")
	}
	if n := metric(doorHTTP, "hamlet_gateway_unmarked_total", `reason="no-answer"`); n != float64(unmarked) {
		t.Errorf("%d messages passed unmarked; %v are counted", unmarked, n)
	}
	if !strings.Contains(door.log(), "messages pass unmarked") {
		t.Error("the log does not tell")
	}
	if !p.Empty() {
		t.Error("Postfix's queues are not empty")
	}
	door.stop()
}

// corpus returns n messages of the SpamAssassin corpus, spread evenly over those after the
// first skip, as SMTP carries them: without the "From " line of an mbox, with a line end
// at the end.
func corpus(t *testing.T, folder string, skip, n int) [][]byte {
	t.Helper()
	index, err := os.Open(filepath.Join(folder, "index.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer index.Close()
	lines, err := csv.NewReader(index).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	place := map[string]int{} // of a member, among those that are sent
	for i := range n {
		place[lines[skip+i*(len(lines)-skip)/n][1]] = i
	}
	archive, err := os.Open(filepath.Join(folder, "spamassassin.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	unpacked, err := gzip.NewReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	mail, found := make([][]byte, n), 0
	for r := tar.NewReader(unpacked); ; {
		member, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		i, wanted := place[strings.TrimPrefix(member.Name, "./")]
		if !wanted {
			continue
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		for bytes.HasPrefix(b, []byte("From ")) || bytes.HasPrefix(b, []byte(">From ")) {
			_, b, _ = bytes.Cut(b, []byte("\n"))
		}
		if !bytes.HasSuffix(b, []byte("\n")) {
			b = append(b, '\n')
		}
		mail[i] = b
		found++
	}
	if found != n {
		t.Fatalf("%d of %d messages are in the archive", found, n)
	}
	return mail
}

// learnCorpus has a learner learn the first n messages of the corpus.
func learnCorpus(t *testing.T, model, folder string, n int) {
	t.Helper()
	learner := start(t, "learner", learnerFlags(model)...)
	addr := learner.httpAddr()
	mustOutput(t, "ingest", "--model", model, "--kafka", kafkaAddr, "--limit", fmt.Sprint(n),
		"--index", filepath.Join(folder, "index.csv"), filepath.Join(folder, "spamassassin.tar.gz"))
	await(t, "the learner has read all", func() bool { return metric(addr, "hamlet_learner_next_offset") == float64(n) })
	learner.stop()
}

// send sends messages by SMTP on eight connections at once. Message i goes to the
// recipient of number first+i. Before message i the hooks are called. It returns how long
// all took, and the moments of each.
func send(t *testing.T, addr string, first int, mail [][]byte, hooks ...func(i int)) (took time.Duration, moments []moment) {
	t.Helper()
	begin := time.Now()
	moments = make([]moment, len(mail))
	var (
		next    atomic.Int64
		workers sync.WaitGroup
	)
	for range 8 {
		workers.Go(func() {
			conn, err := textproto.Dial("tcp", addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			say := func(code int, format string, args ...any) bool {
				if format != "" {
					err = conn.PrintfLine(format, args...)
				}
				if err == nil {
					_, _, err = conn.ReadResponse(code)
				}
				if err != nil {
					t.Errorf("SMTP: %v", err)
				}
				return err == nil
			}
			if !say(220, "") || !say(250, "EHLO client.example.org") {
				return
			}
			for {
				i := int(next.Add(1)) - 1
				if i >= len(mail) {
					say(221, "QUIT")
					return
				}
				for _, hook := range hooks {
					hook(i)
				}
				if !say(250, "MAIL FROM:<ann@example.org>") || !say(250, "RCPT TO:<m%d@example.com>", first+i) {
					return
				}
				moments[i].data = time.Now()
				if !say(354, "DATA") {
					return
				}
				_, _ = conn.W.Write(dotted(mail[i]))
				if !say(250, ".") {
					return
				}
				moments[i].reply = time.Now()
			}
		})
	}
	workers.Wait()
	return time.Since(begin), moments
}

// A moment is when the content of a message began, and when it was answered.
type moment struct{ data, reply time.Time }

// dotted returns a message as it goes behind DATA (RFC 5321, section 4.5.2).
func dotted(message []byte) []byte {
	var b bytes.Buffer
	for line := range bytes.Lines(message) {
		if line[0] == '.' {
			b.WriteByte('.')
		}
		b.Write(bytes.TrimSuffix(line, []byte("\n")))
		b.WriteString("\r\n")
	}
	return b.Bytes()
}

// An arrival is a delivered message, without what Postfix added at its top.
type arrival struct {
	field   string // the value of X-Hamlet
	message []byte
}

var atTop = regexp.MustCompile(`^Return-Path: .*\nX-Original-To: m(\d+)@example\.com\nDelivered-To: .*\n(?:X-Hamlet: (.*)\n)?Received: from .*\n\tby .*\n\tfor .*\n`)

// delivered waits for messages of n recipients and returns them by the recipient's
// number. Each must have come once.
func delivered(t *testing.T, p *debian.Postfix, n int) map[int]arrival {
	t.Helper()
	arrived := make(map[int]arrival, n)
	for _, file := range p.Delivered(n) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m := atTop.FindSubmatch(b)
		if m == nil {
			t.Fatalf("delivered\n%s", b)
		}
		var i int
		if _, err := fmt.Sscan(string(m[1]), &i); err != nil {
			t.Fatal(err)
		}
		if _, twice := arrived[i]; twice {
			t.Errorf("message %d was delivered twice", i)
		}
		arrived[i] = arrival{string(m[2]), b[len(m[0]):]}
	}
	if len(arrived) != n {
		t.Fatalf("%d messages were delivered, want %d", len(arrived), n)
	}
	return arrived
}

// compareWithScore checks that X-Hamlet of each file's message is what hamlet score says
// of it.
func compareWithScore(t *testing.T, model, server, folder string, marked map[string]string) {
	t.Helper()
	out := mustOutput(t, "hamlet", "score", "--json", "--model", model, "--server", server, folder)
	decisions, scored := map[stream.Decision]int{}, 0
	for line := range strings.Lines(out) {
		var v struct {
			File string `json:"file"`
			stream.Verdict
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		scored++
		decisions[v.Decision]++
		if want := gateway.FieldValue(&v.Verdict); marked[v.File] != want {
			t.Errorf("%s: the milter says %q, score says %q", v.File, marked[v.File], want)
		}
	}
	if scored != len(marked) {
		t.Errorf("%d messages were scored, want %d", scored, len(marked))
	}
	if decisions[stream.DecideSpam] == 0 || decisions[stream.DecideHam] == 0 {
		t.Errorf("the verdicts %v compare little", decisions)
	}
	var all []string
	for d, n := range decisions {
		all = append(all, fmt.Sprintf("%d %s", n, d))
	}
	slices.Sort(all)
	t.Logf("verdicts equal to hamlet score's: %s", strings.Join(all, ", "))
}

// status returns the status of an answer by HTTP, or 0 without one.
func status(address string) int {
	response, err := http.Get("http://" + address)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	return response.StatusCode
}
