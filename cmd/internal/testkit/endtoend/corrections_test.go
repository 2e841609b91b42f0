package endtoend

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hamlet/algos/algotest/dataset"
	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/data/synthetic"
	"hamlet/stream"
)

// corrections is a running hamlet up that clients correct through its doors.
type corrections struct {
	t      *testing.T
	up     *process
	topic  string
	http   string
	spamd  string
	rspamd string
	sent   int // events by /v1/events
}

const correctionsSecret = "secret"

// teachers are the doors. teach says through one what a message is.
var teachers = []struct {
	name  string
	teach func(c *corrections, message []byte, spam bool)
}{
	{"/v1/events", (*corrections).events},
	{"TELL", (*corrections).tell},
	{"/learnspam and /learnham", (*corrections).learn},
	{"hamlet learn", (*corrections).learnCommand},
}

func (c *corrections) post(address string, header http.Header, body []byte) (answer []byte, code int) {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, "http://"+address, bytes.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	request.Header = header
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	if answer, err = io.ReadAll(response.Body); err != nil {
		c.t.Fatal(err)
	}
	return answer, response.StatusCode
}

func class(spam bool) string {
	if spam {
		return "spam"
	}
	return "ham"
}

func (c *corrections) events(message []byte, spam bool) {
	c.t.Helper()
	c.sent++
	event := fmt.Appendf(nil, `{"id":"http-%d","action":"correct","label":%q,"mail":%q}`, c.sent, class(spam), base64.StdEncoding.EncodeToString(message))
	header := http.Header{"Authorization": {"Bearer " + correctionsSecret}, "Content-Type": {stream.ContentTypeJSON}}
	if answer, code := c.post(c.http+"/v1/events", header, event); code != http.StatusAccepted {
		c.t.Fatalf("events: status %d, %s", code, answer)
	}
}

func (c *corrections) tell(message []byte, spam bool) {
	c.t.Helper()
	conn, err := net.DialTimeout("tcp", c.spamd, patience)
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		c.t.Fatal(err)
	}
	fmt.Fprintf(conn, "TELL SPAMC/1.5\r\nMessage-class: %s\r\nSet: local\r\nContent-length: %d\r\n\r\n%s", class(spam), len(message), message)
	if answer, err := io.ReadAll(conn); err != nil || !strings.Contains(string(answer), "DidSet: local") {
		c.t.Fatalf("TELL: %q, %v", answer, err)
	}
}

func (c *corrections) learn(message []byte, spam bool) {
	c.t.Helper()
	header := http.Header{"Password": {correctionsSecret}}
	if answer, code := c.post(c.rspamd+"/learn"+class(spam), header, message); code != http.StatusOK || !strings.Contains(string(answer), "true") {
		c.t.Fatalf("learn%s: status %d, %s", class(spam), code, answer)
	}
}

func (c *corrections) learnCommand(message []byte, spam bool) {
	c.t.Helper()
	file := filepath.Join(c.t.TempDir(), "message.eml")
	if err := os.WriteFile(file, message, 0o600); err != nil {
		c.t.Fatal(err)
	}
	mustOutput(c.t, "hamlet", "learn", "--"+class(spam), "--url", "http://"+c.http, "--token", correctionsSecret, "--source", "users",
		"--spool", filepath.Join(filepath.Dir(file), "spool"), file)
}

// ask asks what the model says of a message.
func (c *corrections) ask(message []byte) (v stream.Verdict, code int) {
	c.t.Helper()
	header := http.Header{"Authorization": {"Bearer " + correctionsSecret}, "Content-Type": {"message/rfc822"}}
	answer, code := c.post(c.http+"/v1/score", header, message)
	if err := json.Unmarshal(answer, &v); err != nil {
		c.t.Fatalf("score: status %d, %s, %v", code, answer, err)
	}
	return v, code
}

// margin returns the log-odds of a message's right label.
func (c *corrections) margin(message []byte, spam bool) float64 {
	c.t.Helper()
	v, code := c.ask(message)
	if code != http.StatusOK {
		c.t.Fatalf("score: status %d", code)
	}
	if spam {
		return v.LogOdds
	}
	return -v.LogOdds
}

// settle waits until the model that answers has learnt the whole log, and returns its SHA-256 and
// the length of the log.
func (c *corrections) settle(message []byte) (sha256 string, end int64) {
	c.t.Helper()
	end = boundsOf(c.t, kafkaAs(c.t, admin), c.topic).End
	await(c.t, fmt.Sprintf("offset %d is served", end), func() bool {
		v, code := c.ask(message) // 503 before there is a model
		sha256 = v.Model.SHA256
		return code == http.StatusOK && len(v.Model.Positions) == 1 && v.Model.Positions[0] == end
	})
	return sha256, end
}

// Clients correct the messages of whose labels the model is least sure, through each door. Every
// fourth was given the wrong label first, at the same door. Then p is on the right side of ½ for
// all of them, and the model is what eval makes of the log.
//
// It is 3 synthetic messages a door. At night it is 20 of the SpamAssassin corpus.
func TestDoubtfulMessagesAreCorrected(t *testing.T) {
	each, args, items := 3, []string{writeMail(t, 300)}, syntheticItems(t, 60)
	if nightly {
		const learnt = 2000
		data := dataset.Path(t, "spamassassin")
		index, archive := filepath.Join(data, "index.csv"), filepath.Join(data, "spamassassin.tar.gz")
		each, args = 20, []string{"--limit", fmt.Sprint(learnt), "--index", index, archive}
		s, err := source.Open(source.Config{Paths: []string{archive}, Index: index})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		items = taken(t, s.Events(), learnt, 1000)
	}
	model := modelName(t)
	c := &corrections{t: t, topic: stream.EventsTopic(model)}
	c.up = start(t, "hamlet", append([]string{"up", "--model", model, "--kafka", kafkaAddr, "--nats", natsURL, "--redis", redisAddr, "--table-bits", "14",
		"--save-every", "20ms", "--deadline", "20s", "--http", "127.0.0.1:0", "--token", correctionsSecret, "--allow-learn", "--spamd", "127.0.0.1:0",
		"--rspamd-controller", "127.0.0.1:0", "--rspamd-password", correctionsSecret}, args...)...)
	c.http = c.up.upHTTP()
	c.spamd, c.rspamd = c.up.says(regexp.MustCompile(`spamd +(127\S+)`)), c.up.says(regexp.MustCompile(`rspamd-ctl +(127\S+)`))
	await(t, "the stream is learnt", func() bool { return strings.Contains(c.up.log(), "serving on") })
	c.settle(items[0].Event.Body.Mail)

	type message struct {
		mail   []byte
		spam   bool
		margin float64 // log-odds of the right label at first
	}
	var all []message
	for _, item := range items {
		m := message{mail: item.Event.Body.Mail, spam: item.Event.Label == stream.Spam}
		m.margin = c.margin(m.mail, m.spam)
		all = append(all, m)
	}
	slices.SortStableFunc(all, func(x, y message) int { return cmp.Compare(x.margin, y.margin) })
	sum, end := "", int64(0)
	for number, door := range teachers {
		var own []message
		for i := range each {
			own = append(own, all[i*len(teachers)+number])
		}
		for i, m := range own {
			if i%4 == 0 { // somebody clicks wrongly first
				door.teach(c, m.mail, !m.spam)
			}
			door.teach(c, m.mail, m.spam)
		}
		sum, end = c.settle(own[0].mail)
		right, least := 0, math.Inf(1)
		for _, m := range own {
			margin := c.margin(m.mail, m.spam)
			if least = min(least, margin); margin > 0 {
				right++
			}
		}
		t.Logf("%s: %d of %d on the right side of ½; log-odds of the right label from %.2f to %.2f at first, at least %.2f now",
			door.name, right, each, own[0].margin, own[each-1].margin, least)
		if right != each {
			t.Errorf("%s corrects %d of %d", door.name, right, each)
		}
	}
	c.up.stop()

	var log bytes.Buffer
	for _, r := range recordsOf(t, kafkaAs(t, admin), c.topic, 0, end) {
		e, err := stream.DecodeRecord(r.Headers, r.Value)
		if err != nil {
			t.Fatal(err)
		}
		line, err := e.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		log.Write(append(line, '\n'))
	}
	file := filepath.Join(t.TempDir(), "log.jsonl")
	if err := os.WriteFile(file, log.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	want := parseResult(t, mustOutput(t, "hamlet", "eval", "--json", "--table-bits", "14", file))
	if want.Rejected != 0 || sum != want.ModelSHA256 {
		t.Errorf("up made model %s, eval made %s of the log and rejected %d events", sum, want.ModelSHA256, want.Rejected)
	}
}

// syntheticItems returns n messages that writeMail has not.
func syntheticItems(t *testing.T, n int) []source.Item {
	t.Helper()
	items, err := synthetic.Items(synthetic.Config{Seed: 8}, n, source.FlipConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return taken(t, items, 0, n)
}

// taken returns n items behind the first skip.
func taken(t *testing.T, items iter.Seq2[source.Item, error], skip, n int) (all []source.Item) {
	t.Helper()
	for item, err := range items {
		if err != nil {
			t.Fatal(err)
		}
		if skip--; skip < 0 {
			all = append(all, item)
		}
		if len(all) == n {
			return all
		}
	}
	t.Fatalf("%d messages, %d are wanted", len(all), n)
	return nil
}
