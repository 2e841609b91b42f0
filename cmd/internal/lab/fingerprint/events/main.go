// Command events writes small streams with everything switched on, for the command
// fingerprint: a line of JSON for each stream and one for each of its events.
//
//	events ../shared/data > events
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"

	"hamlet/algos/model"
	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/service/example"
	"hamlet/stream"
)

// A run is a stream and the settings of its model.
type run struct {
	name     string
	source   source.Config // paths are below the data folder
	set      string        // "key=value key=value"
	withdraw bool          // withdraw events and change labels in between
}

func shuffled(seed int64) *int64 { return &seed }

// runs together reach every expert, ensemble, site, alarm and kind of withdrawal. Rebuilds
// come early, because the streams are short.
var runs = []run{
	{
		name:   "vectors with every ensemble",
		source: source.Config{Paths: []string{"spambase/spambase.data"}, Shuffle: shuffled(3), Limit: 450},
		set: "vector_ensembles=logit-trees,realadaboost,poeboost.ds,poeboost.cs,adaboost,bhboost,viboost,bblr " +
			"window=300 rebuild=150 second_head=.98",
	},
	{
		name: "vectors, exact sites, labels flipped",
		source: source.Config{Paths: []string{"spambase/spambase.data"}, Shuffle: shuffled(7), Limit: 1200,
			Flip: source.FlipConfig{Rate: .2, From: 500, Seed: 5}},
		set: "vector_ensembles=none vector_head.site=exact-rvga vector_head.half_life=500 vector_head.refresh=400 " +
			"label_trust=all",
	},
	{
		name: "hashed vectors, two ensembles, a second head",
		source: source.Config{Paths: []string{"spam-drift/spam-stream.svm.gz"}, Shuffle: shuffled(2), Limit: 1000,
			Flip: source.FlipConfig{Rate: .1, From: 500, Seed: 1}},
		set: "vector_ensembles=viboost,bblr second_head=.99 window=400 rebuild=200",
	},
	{
		name: "mail, labels flipped, an ensemble",
		source: source.Config{Index: "spamassassin/index.csv", Paths: []string{"spamassassin/spamassassin.tar.gz"},
			Limit: 400, Flip: source.FlipConfig{Rate: .1, Seed: 5}},
		set: "text_ensembles=logit-trees window=200 rebuild=100 spam_share=true second_head=.98 text_head.refresh=150",
	},
	{
		name:     "text with withdrawals",
		source:   source.Config{Paths: []string{"sms/SMSSpamCollection"}, Limit: 1500},
		set:      "text_head.site=jj text_head.half_life=1000 text_head.refresh=500",
		withdraw: true,
	},
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: events DATA")
		os.Exit(2)
	}
	out := bufio.NewWriter(os.Stdout)
	for _, r := range runs {
		if err := r.write(out, os.Args[1]); err != nil {
			fmt.Fprintf(os.Stderr, "events: %s: %v\n", r.name, err)
			os.Exit(1)
		}
	}
	if err := out.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, "events:", err)
		os.Exit(1)
	}
}

// write writes r's settings and events.
func (r *run) write(w io.Writer, data string) error {
	cfg := r.source
	for i := range cfg.Paths {
		cfg.Paths[i] = data + "/" + cfg.Paths[i]
	}
	if cfg.Index != "" {
		cfg.Index = data + "/" + cfg.Index
	}
	src, err := source.Open(cfg)
	if err != nil {
		return err
	}
	defer src.Close()
	m := model.Config{Dense: src.Dense()}
	for setting := range strings.FieldsSeq(r.set) {
		key, value, _ := strings.Cut(setting, "=")
		if err := m.Set(key, value); err != nil {
			return fmt.Errorf("%s: %w", setting, err)
		}
	}
	events := src.Events()
	if r.withdraw {
		events = withdrawing(events)
	}
	var all []model.Example
	for item, err := range events {
		var rejection *source.Rejection
		if errors.As(err, &rejection) {
			continue
		}
		if err != nil {
			return err
		}
		ex, _, err := example.Of(&item.Event)
		if err != nil {
			return err
		}
		all = append(all, ex)
	}
	out := json.NewEncoder(w)
	err = out.Encode(struct {
		Name   string
		Config model.Config
		Events int
	}{r.name, m, len(all)})
	for i := range all {
		err = errors.Join(err, out.Encode(&all[i]))
	}
	return err
}

// withdrawing yields events and, after every seventh, the withdrawal of one of the last
// five or a change of its label.
func withdrawing(events iter.Seq2[source.Item, error]) iter.Seq2[source.Item, error] {
	return func(yield func(source.Item, error) bool) {
		var last []source.Item
		for item, err := range events {
			if !yield(item, err) {
				return
			}
			if err != nil {
				continue
			}
			if last = append(last, item); len(last) < 7 {
				continue
			}
			of := last[2+item.Ordinal%5]
			last = last[:0]
			again := of
			again.Event.ID, again.Event.Of, again.Event.Action = "w"+of.Event.ID, of.Event.ID, stream.Unlearn
			if item.Ordinal%2 == 0 {
				again.Event.Action = stream.Relearn
				again.Event.Label = map[stream.Label]stream.Label{stream.Spam: stream.Ham, stream.Ham: stream.Spam}[of.Event.Label]
			}
			if !yield(again, nil) {
				return
			}
		}
	}
}
