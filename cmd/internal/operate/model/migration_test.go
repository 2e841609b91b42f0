package model

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"hamlet/state"
	"hamlet/stream/nats"
	"hamlet/stream/questions"
)

// ofSeveral makes the model default one that hamlet 0.1.0 learnt from several partitions: of which
// each had a model, or all together the one model.
func (b *beside) ofSeveral(each bool) {
	b.t.Helper()
	const prefix = "hamlet:{default}:0:"
	client := goredis.NewClient(&goredis.Options{Addr: b.redis})
	defer client.Close()
	if each {
		if err := client.SAdd(b.t.Context(), prefix+"partitions", "0", "1").Err(); err != nil {
			b.t.Fatal(err)
		}
		return
	}
	versions, err := client.Keys(b.t.Context(), prefix+"version:*").Result()
	if err != nil || len(versions) == 0 {
		b.t.Fatal(versions, err)
	}
	for _, key := range versions {
		manifest, err := client.HGet(b.t.Context(), key, "manifest").Bytes()
		if err == nil {
			binary.BigEndian.PutUint32(manifest[8:], 3) // the version that 0.1.0 wrote of such a model
			err = client.HSet(b.t.Context(), key, "manifest", manifest).Err()
		}
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

// The last command of the migration from 0.1.0: who asks for the old model gets answers of the new one.
// Its log is another one than that of the old model, and there is no Kafka to compare them at.
func TestPromoteInThePlaceOfAModelOfPartitions(t *testing.T) {
	for what, each := range map[string]bool{"one model of several partitions": false, "a model for each": true} {
		t.Run(what, func(t *testing.T) {
			b := newBeside(t)
			b.write(40)
			b.start("default", b.old, modelConfig())
			b.await(b.old, state.Head)
			b.stop["default"]()
			b.ofSeveral(each)
			if out, err := b.run("promote clean"); err == nil || !strings.Contains(err.Error(), "the store keeps no version of model clean") {
				t.Errorf("without a candidate: %v\n%s", err, out)
			}

			b.start("clean", b.clean, modelConfig())
			b.await(b.clean, state.Head)
			b.serve()
			out, err := b.run("promote clean --promote-when better")
			if err == nil || !strings.Contains(err.Error(), "hamlet 0.1.0 has learnt default from several partitions") {
				t.Errorf("%v\n%s", err, out)
			}
			out, err = b.run("promote clean --nats " + b.url)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, text := range []string{"of default this release reads nothing", "1 of default, all of which read",
				"start all services with --model clean"} {
				if !strings.Contains(out, text) {
					t.Errorf("%q is not in\n%s", text, out)
				}
			}
			client, err := nats.NewClient(b.conn, "")
			if err != nil {
				t.Fatal(err)
			}
			for deadline := time.Now().Add(time.Minute); ; <-time.After(5 * time.Millisecond) {
				v, err := client.Ask(t.Context(), questions.Question{Body: []byte("CHEAP pills order now"), ContentType: questions.Text})
				if err == nil && v[0].Model.Name == "clean" {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("answers come from %+v, %v; want clean", v, err)
				}
			}
			if out, err := b.run("promote --back"); !errors.Is(err, state.ErrPartitions) {
				t.Errorf("back to what no scorer reads: %v\n%s", err, out)
			}
		})
	}
}
