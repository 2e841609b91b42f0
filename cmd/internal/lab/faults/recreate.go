package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"hamlet/state"
	stateredis "hamlet/state/redis"
	"hamlet/stream"
)

// recreated is the fault at the end of an era: its topic is deleted and created again
// under running learners.
var recreated = fault{Action: recreate, Target: kafka}

// Learners must notice another log within noticeWithin.
const noticeWithin = 2 * time.Minute

// refusals are what a learner says when the log is not the one that it has absorbed.
var refusals = [][]byte{[]byte("another log than the one absorbed"), []byte("log ends before the position")}

// recreateTopic deletes the services' topic, creates it again at once and sends other
// events to it. The learners must end and say why, and the model in Redis must stay as
// it is. The services go on with a model of another name, as that error advises.
func (c *campaign) recreateTopic(ctx context.Context, s *system) error {
	store, err := stateredis.New(stateredis.Config{Addr: s.redis, Model: s.model})
	if err != nil {
		return err
	}
	defer store.Close()
	before, _, err := store.Load(ctx, state.Head)
	if err != nil {
		return err
	}
	requests, err := s.sender.flood(int(before.Position.Next))
	if err != nil {
		return err
	}
	said := s.refusals()
	fmt.Fprintf(c.log, "%s %s\n", time.Now().UTC().Format("15:04:05.000"), recreated)
	if err := replaceTopic(ctx, s.kafka, stream.EventsTopic(s.model)); err != nil {
		return err
	}
	client := &http.Client{Timeout: 30 * time.Second}
	defer client.CloseIdleConnections()
	sending, stop := context.WithTimeout(ctx, noticeWithin)
	defer stop()
	for _, body := range requests {
		for !s.sender.post(sending, client, body) {
			if wait(sending, 50*time.Millisecond); ctx.Err() != nil {
				return ctx.Err()
			} else if sending.Err() != nil {
				return fmt.Errorf("%s: ingest took no event for the topic that was created again within %v", s.model,
					noticeWithin)
			}
		}
	}
	noticed, cancel := context.WithTimeout(ctx, noticeWithin)
	defer cancel()
	c.round.Settled = true
	for s.refusals() == said {
		wait(noticed, 100*time.Millisecond)
		if noticed.Err() != nil {
			c.round.Settled = false
			c.problem("%s: no learner refused the topic that was created again within %v", s.model, noticeWithin)
			break
		}
	}
	wait(ctx, 2*time.Second) // a learner that went on would save now
	now, _, err := store.Load(ctx, state.Head)
	if err != nil {
		return fmt.Errorf("load the model: %w", err)
	}
	if now.Position != before.Position || now.ModelSHA256 != before.ModelSHA256 {
		c.round.Same = false
		c.problem("%s: the topic was created again: the model in Redis went from %v to %v", s.model, before.Position,
			now.Position)
	}
	return ctx.Err()
}

// flood returns requests with one and a half times as many events as the log had: the log
// that is created again passes its end soon.
func (s *sender) flood(learnt int) (requests [][]byte, err error) {
	for sent := 0; sent < learnt*3/2; {
		var body []byte
		for n := 0; n < 1000; {
			some, ids, err := s.next()
			if err != nil {
				return nil, err
			}
			body, n = append(body, some...), n+len(ids)
		}
		requests, sent = append(requests, body), sent+1000
	}
	return requests, nil
}

// refusals counts what the learners have said of another log.
func (s *system) refusals() (n int) {
	for _, name := range []target{learnerA, learnerB} {
		text, _ := os.ReadFile(s.processes[name].log) // it may have said nothing yet
		for _, r := range refusals {
			n += bytes.Count(text, r)
		}
	}
	return n
}

// replaceTopic deletes a topic and creates it again. Faults may have cut Kafka off a moment
// ago, so each request is tried until it is answered, within noticeWithin.
func replaceTopic(ctx context.Context, broker, topic string) error {
	ctx, cancel := context.WithTimeout(ctx, noticeWithin)
	defer cancel()
	// A transport of its own has no connection from before a fault.
	transport := &kafkago.Transport{}
	defer transport.CloseIdleConnections()
	client := &kafkago.Client{Addr: kafkago.TCP(broker), Timeout: 10 * time.Second, Transport: transport}
	try := func(what string, request func() error) error {
		for {
			err := request()
			if err == nil {
				return nil
			}
			if wait(ctx, 20*time.Millisecond); ctx.Err() != nil {
				return fmt.Errorf("%s topic %s: %w", what, topic, err)
			}
		}
	}
	if err := try("delete", func() error {
		res, err := client.DeleteTopics(ctx, &kafkago.DeleteTopicsRequest{Topics: []string{topic}})
		if err == nil {
			err = res.Errors[topic]
		}
		if errors.Is(err, kafkago.UnknownTopicOrPartition) { // by an earlier try, whose answer was lost
			return nil
		}
		return err
	}); err != nil {
		return err
	}
	asked := false                      // a try whose answer was lost
	return try("create", func() error { // the deletion takes a moment
		res, err := client.CreateTopics(ctx, &kafkago.CreateTopicsRequest{
			Topics: []kafkago.TopicConfig{{Topic: topic, NumPartitions: 1, ReplicationFactor: 1}},
		})
		if err != nil {
			asked = true
			return err
		}
		if err = res.Errors[topic]; asked && errors.Is(err, kafkago.TopicAlreadyExists) {
			return nil
		}
		return err
	})
}
