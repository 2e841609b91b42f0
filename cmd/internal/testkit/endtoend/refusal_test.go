package endtoend

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hamlet/stream"
)

// produce writes records to a topic.
func produce(t *testing.T, topic string, records ...stream.Record) {
	t.Helper()
	if err := logOf(t, kafkaAs(t, admin), topic).Append(t.Context(), records...); err != nil {
		t.Fatal(err)
	}
}

// deadLetters reads the dead letters of a topic's records.
func deadLetters(t *testing.T, topic string) map[int64]stream.DeadLetter {
	t.Helper()
	out := map[int64]stream.DeadLetter{}
	for _, r := range allOf(t, kafkaAs(t, admin), stream.DeadLetterTopic) {
		d, err := stream.ParseDeadLetter(r.Headers)
		if err != nil {
			t.Errorf("offset %d of the dead letters: %v", r.Offset, err)
		}
		if d.Topic == topic {
			out[d.Offset] = d
		}
	}
	return out
}

// vectorProto is the event {id, label spam, vector {name: value}} in protobuf,
// written by hand because no encoder of ours would write it.
func vectorProto(id, name string, value float64) []byte {
	v := append([]byte{0x0a, byte(len(name))}, name...)
	v = append(v, 0x12, 8)
	v = binary.LittleEndian.AppendUint64(v, math.Float64bits(value))
	e := append([]byte{0x0a, byte(len(id))}, id...)
	e = append(e, 0x38, 2) // label: spam
	return append(append(e, 0x52, byte(len(v))), v...)
}

// A bad record goes to the dead-letter topic with its reason and origin. Learning goes
// on, and the counters add up to the offsets.
func TestWhatCannotBeLearnt(t *testing.T) {
	model := modelName(t)
	topic := stream.EventsTopic(model)
	bad := []struct {
		value []byte
		want  string
	}{
		{vectorProto("nan", "x", math.NaN()), `"x" is NaN`},
		{vectorProto("inf", "x", math.Inf(1)), `"x" is +Inf`},
		{vectorProto("lacks", "y", 1), `"x"`},
		{[]byte(`{"id":"l","label":"eggs","vector":{"x":1}}`), `"eggs" is neither spam nor ham`},
		{[]byte(`{"id":"b","label":"spam","vector":{"x":1}`), "ends too early"},
		{[]byte{0xff, 0xff, 0xff}, "not a message of event.proto"},
		{[]byte(`{"id":"c","label":"spam","colour":"red","vector":{"x":1}}`), `unknown field "colour"`},
		{[]byte(`{"label":"spam","vector":{"x":1}}`), "id: missing"},
		{nil, "id: missing"},
	}
	good := func(i int) stream.Record {
		return stream.Record{Key: []byte("k"), Value: fmt.Appendf(nil, `{"id":"g%d","label":"spam","vector":{"x":%d}}`, i, i)}
	}
	learner := start(t, "learner", learnerFlags(model, "--dense", "x")...)
	addr := learner.httpAddr()
	var records []stream.Record
	for i, b := range bad {
		records = append(records, good(i), stream.Record{Key: []byte("k"), Value: b.value})
	}
	records = append(records, good(0)) // a copy
	produce(t, topic, records...)
	n := len(records)
	await(t, "the learner has read all", func() bool { return metric(addr, "hamlet_learner_next_offset") == float64(n) })
	counts := map[string]float64{}
	for _, outcome := range []string{"learned", "duplicate", "dead-letter"} {
		counts[outcome] = metric(addr, "hamlet_learner_records_total", `outcome="`+outcome+`"`)
	}
	want := map[string]float64{"learned": float64(len(bad)), "duplicate": 1, "dead-letter": float64(len(bad))}
	for outcome, w := range want {
		if counts[outcome] != w {
			t.Errorf("%s: counted %v, want %v", outcome, counts[outcome], w)
		}
	}
	learner.stop()
	letters := deadLetters(t, topic)
	for i, b := range bad {
		d, ok := letters[int64(2*i+1)]
		if !ok {
			t.Errorf("record %d is not among the dead letters", 2*i+1)
		} else if !strings.Contains(d.Reason, b.want) {
			t.Errorf("record %d: reason %q, want %q in it", 2*i+1, d.Reason, b.want)
		}
	}
	c, err := checkpoint(t, model)
	if err != nil {
		t.Fatal(err)
	}
	if c.Events != uint64(len(bad)) || c.Position.Next != int64(n) {
		t.Errorf("saved %d events at offset %d, want %d at %d", c.Events, c.Position.Next, len(bad), n)
	}
}

// Broken mail is read as raw text, learnt and counted.
func TestBrokenMailIsLearnt(t *testing.T) {
	model := modelName(t)
	random := make([]byte, 5000)
	source := rand.New(rand.NewPCG(1, 2))
	for i := range random {
		random[i] = byte(source.Uint32())
	}
	nested := "Content-Type: text/plain\n\nhello\n"
	for i := range 50 {
		nested = fmt.Sprintf("Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n%s\n--b%d--\n", i, i, nested, i)
	}
	mails := map[string]string{
		"truncated": "Subject: x\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=zz\n\n--zz\nContent-Type: text/pl",
		"nested":    "Subject: x\nMIME-Version: 1.0\n" + nested,
		"random":    string(random),
	}
	dir := t.TempDir()
	for name, m := range mails {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(m), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	learner := start(t, "learner", learnerFlags(model)...)
	addr := learner.httpAddr()
	mustOutput(t, "ingest", "--model", model, "--kafka", kafkaAddr, "--spam", dir)
	await(t, "the learner has read all", func() bool { return metric(addr, "hamlet_learner_next_offset") == 3 })
	if got := metric(addr, "hamlet_learner_records_total", `outcome="learned"`); got != 3 {
		t.Errorf("learned %v of 3", got)
	}
	if got := metric(addr, "hamlet_learner_raw_mail_total"); got < 2 {
		t.Errorf("%v mails were counted as raw, want those nested too deeply and random at least", got)
	}
	learner.stop()
}

// sent returns a request's body. If it is held, its end does not come. A server that has
// refused a body closes the connection half a second later, and a late client that still
// writes would see that in place of the answer.
func sent(body []byte, held bool) io.Reader {
	if !held {
		return bytes.NewReader(body)
	}
	r, w := io.Pipe()
	go func() { _, _ = w.Write(body) }() // until the client has its answer, and closes r
	return r
}

// The HTTP endpoint answers 202 only for events that Kafka has; errors say why.
func TestEventsOverHTTP(t *testing.T) {
	model := modelName(t)
	ingest := start(t, "ingest", "--model", model, "--kafka", kafkaAddr, "--http", "127.0.0.1:0", "--token", "secret")
	url := "http://" + ingest.httpAddr() + "/v1/events"
	post := func(token, contentType string, body []byte) (int, string) {
		t.Helper()
		const most = 40<<20 + 64<<10 // ingest takes 40<<20 of these; buffers hold the rest
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, sent(body[:min(len(body), most)], len(body) > most))
		if err != nil {
			t.Fatal(err)
		}
		request.ContentLength = int64(len(body))
		request.Header.Set("Authorization", "Bearer "+token)
		request.Header.Set("Content-Type", contentType)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var b bytes.Buffer
		if _, err := b.ReadFrom(response.Body); err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, b.String()
	}
	event := func(id string) []byte { return fmt.Appendf(nil, `{"id":%q,"label":"spam","text":"You won"}`, id) }
	for _, c := range []struct {
		name, token, contentType string
		body                     []byte
		code                     int
		want                     string
	}{
		{"one", "secret", "application/json", event("a"), 202, `"accepted":1`},
		{"many", "secret", "application/x-ndjson", append(append(event("b"), '\n'), event("c")...), 202, `"accepted":2`},
		{"no token", "", "application/json", event("d"), 401, "Authorization"},
		{"wrong token", "Secret", "application/json", event("d"), 401, "Authorization"},
		{"no type", "secret", "", event("d"), 400, "Content-Type"},
		{"broken", "secret", "application/json", []byte(`{"id":`), 400, "ends too early"},
		{"no label", "secret", "application/json", []byte(`{"id":"d","text":"x"}`), 400, "label: missing"},
		{"second line", "secret", "application/x-ndjson", append(append(event("d"), '\n'), '{'), 400, "line 2"},
		{"100 MB", "secret", "application/json", make([]byte, 100<<20), 413, "larger than"},
		{"empty", "secret", "application/x-ndjson", nil, 400, "no event"},
	} {
		code, body := post(c.token, c.contentType, c.body)
		if code != c.code || !strings.Contains(body, c.want) {
			t.Errorf("%s: got %d %s, want %d with %q", c.name, code, body, c.code, c.want)
		}
	}
	if end := boundsOf(t, kafkaAs(t, admin), stream.EventsTopic(model)).End; end != 3 {
		t.Errorf("the topic holds %d records, want the 3 that were accepted", end)
	}
	ingest.stop()
}
