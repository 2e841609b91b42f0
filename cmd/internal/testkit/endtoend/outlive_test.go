package endtoend

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// The doors of hamlet up outlive its learner. Its log is another one, and no kept version follows
// from it: answers come from the saved model, a label is appended to the log, /readyz and the
// metric say what is wrong, and the status is 1 once it is stopped.
func TestDoorsOutliveTheLearner(t *testing.T) {
	for _, live := range []bool{true, false} { // the log is replaced under a learner, or before the start
		t.Run(fmt.Sprintf("live %t", live), func(t *testing.T) {
			t.Parallel()
			o := newReplicas(t)
			o.send(200)
			args := append([]string{"up", "--model", o.model, "--kafka", kafkaAddr, "--nats", natsURL, "--redis", redisAddr, "--save-every", "20ms",
				"--http", "127.0.0.1:0", "--token", correctionsSecret, "--allow-learn"}, o.modelFlags()...)
			p := start(t, "hamlet", args...)
			c := &corrections{t: t, topic: o.topic, up: p, http: p.upHTTP()}
			o.awaitSaved()
			message := []byte("Subject: offer\r\n\r\ncheap pills\r\n")
			sha256, _ := c.settle(message)
			if !live {
				p.stop()
			}
			o.delete(o.topic)
			o.makeTopic()
			o.send(10)
			if !live {
				p = start(t, "hamlet", args...)
				c.up, c.http = p, p.upHTTP()
			}
			await(t, "the learner's end is told", func() bool { return strings.Contains(p.log(), "the learner has ended") })
			if v, code := c.ask(message); code != http.StatusOK || v.Model.SHA256 != sha256 {
				t.Errorf("status %d from model %s, want 200 from %s", code, v.Model.SHA256, sha256)
			}
			end := o.end()
			c.events(message, true)
			if after := o.end(); after != end+1 {
				t.Errorf("the log ended at %d, and after a label at %d", end, after)
			}
			code, body := page(t, "http://"+c.http+"/readyz")
			if code != http.StatusOK || !strings.Contains(body, "answers only; the learner has ended") || !strings.Contains(body, "no kept version") {
				t.Errorf("/readyz: %d, %s", code, body)
			}
			if _, body := page(t, "http://"+c.http+"/metrics"); !strings.Contains(body, fmt.Sprintf("hamlet_learner_active{model=%q,partition=\"0\"} 0\n", o.model)) {
				t.Error("the metrics do not say that no learner is active")
			}
			p.stopWith(1)
		})
	}
}

// page returns the status and the body of an address.
func page(t *testing.T, url string) (code int, body string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(b)
}
