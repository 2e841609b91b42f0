package model_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"hamlet/cmd/internal/operate/comparison"
	"hamlet/stream"
	"hamlet/stream/kafka"
	"hamlet/stream/predictions"
	"hamlet/stream/servertest"
)

// predicted writes what a model predicted of 2,500 events from an offset on. With skill s,
// log-odds are calibrated and N(±s²/2, s²).
func predicted(t *testing.T, ctx context.Context, brokers kafka.Config, model string, from int64, skill float64) {
	t.Helper()
	topic := predictions.Topic(model)
	if err := brokers.Ensure(ctx, topic, -1, 0); err != nil {
		t.Fatal(err)
	}
	log, err := kafka.NewLog(brokers, topic)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	labels, r := rand.New(rand.NewPCG(1, 1)), rand.New(rand.NewPCG(2, uint64(skill)))
	b := predictions.Block{Model: model, Events: stream.EventsTopic("default")}
	for offset := range int64(2500) {
		z := r.NormFloat64()*skill - skill*skill/2
		spam := labels.IntN(2) == 1
		if spam {
			z += skill * skill
		}
		if offset >= from {
			b.Predictions = append(b.Predictions, predictions.Prediction{Offset: offset, Spam: spam, LogOdds: float32(z)})
		}
		if len(b.Predictions) == 500 {
			value, err := b.AppendBinary(nil)
			if err == nil {
				err = log.Append(ctx, stream.Record{Value: value})
			}
			if err != nil {
				t.Fatal(err)
			}
			b.Predictions = nil
		}
	}
}

func TestCompareReadsPredictions(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	server, err := servertest.StartKafka(servertest.KafkaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	brokers := kafka.Config{Brokers: []string{server.Addr()}}
	r := newRig(t)
	with := " --kafka " + server.Addr()
	r.fails("compare default cand"+with, 1, "no topic hamlet.predictions.default: start the learner of model default")
	predicted(t, ctx, brokers, "default", 0, 1)
	r.fails("compare default cand"+with, 1, "no topic hamlet.predictions.cand: start the learner of model cand")
	predicted(t, ctx, brokers, "cand", 500, 3)
	r.must("compare default cand"+with,
		`(?m)^the predictions of cand begin at offset 500: 500 events that default predicted before are left out$`,
		`(?m)^1000 events, from offset 1500 to 2499$`,
		`(?m)^ +default +cand$`,
		`(?m)^  log loss +0\.5\d+ +0\.\d+$`,
		`(?m)^difference of the log losses, default − cand: \+0\.\d{5} \[\+0\.\d{5}, \+0\.\d{5}\] nats, at 0\.95 for all times of looking$`,
		`(?m)^cand is better: 0 is left out from event \d+ of these on$`,
		`(?m)^the calibration of cand holds`)
	r.must("compare cand default"+with, `(?m)^default is worse: 0 is left out`)
	r.must("compare default cand --burn-in 1990"+with, `(?m)^neither is shown to be better`)
	r.must("compare default cand --since 2100-01-01T00:00:00Z"+with, `(?m)^no event yet: both have predicted 0, and the first 1000 are left out$`)

	var result comparison.Result
	if err := json.Unmarshal([]byte(r.must("compare default cand --json --burn-in 0"+with)), &result); err != nil {
		t.Fatal(err)
	}
	if !result.Better || result.Events != 2000 || result.A.Before != 500 || result.B.Model != "cand" || result.Difference.Low <= 0 {
		t.Errorf("%+v", result)
	}
	for args, want := range map[string]string{
		"compare default default":           "with itself",
		"compare default C":                 "not a name",
		"compare default cand --level 1":    "--level",
		"compare default cand --burn-in=-1": "--burn-in",
	} {
		r.fails(args+with, 2, want)
	}
}
