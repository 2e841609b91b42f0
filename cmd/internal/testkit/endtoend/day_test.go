package endtoend

import (
	"encoding/json"
	"strconv"
	"testing"
)

// A measured day answers every question, learns every label, and says what they cost.
func TestDay(t *testing.T) {
	if real && len(passwords) > 0 {
		t.Skip("bench day wants servers without passwords")
	}
	const scores, labels = 400, 120
	out := mustOutput(t, "hamlet-lab", "bench", "day", "--json", "--kafka", kafkaAddr, "--nats", natsURL, "--redis", redisAddr,
		"--scores", strconv.Itoa(scores), "--labels", strconv.Itoa(labels), "--save-every", "200ms", "--table-bits", "12")
	var day struct {
		Scores, Refused, Labels int
		Costs                   map[string]float64
		Demand                  map[string]float64
	}
	if err := json.Unmarshal([]byte(out), &day); err != nil {
		t.Fatal(err)
	}
	if day.Scores != scores || day.Refused != 0 || day.Labels != labels {
		t.Errorf("%d answers, %d refusals, %d labels; want %d, 0 and %d", day.Scores, day.Refused, day.Labels, scores, labels)
	}
	for _, name := range []string{"score_cpu_s", "gateway_cpu_s", "journal_bytes", "model_bytes", "scorer_bytes", "learner_bytes"} {
		if day.Costs[name] <= 0 {
			t.Errorf("%s is %v", name, day.Costs[name])
		}
	}
	if got := day.Demand["scorer_cores"]; got <= 0 {
		t.Errorf("the scorers need %v cores", got)
	}
}
