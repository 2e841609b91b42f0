package ingest

import (
	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/data/synthetic"
)

// An Input is where labelled events come from: a source, the generator of synthetic mail, or a log that is replayed.
type Input struct {
	Items     func() (Items, error) // from the beginning; nil: there are none
	Once      bool                  // it can be read only once
	Synthetic bool                  // it is the generator
	Dense     []string              // names of numbers that are inputs of the head
	Total     func() int            // how many events there are; 0 while unknown
	Close     func() error
}

// OpenSource opens a source of labelled events. It may hold standings too.
func OpenSource(cfg source.Config) (*Input, error) {
	cfg.Standing = true
	s, err := source.Open(cfg)
	if err != nil {
		return nil, err
	}
	return &Input{
		Items: func() (Items, error) { return s.Events(), nil },
		Once:  s.Once(), Dense: s.Dense(), Close: s.Close,
		Total: func() int { total, _ := s.Total(); return total },
	}, nil
}

// OpenSynthetic returns n synthetic mails, or mail without end for n = 0, with flip's labels flipped.
func OpenSynthetic(cfg synthetic.Config, n int, flip source.FlipConfig, dense []string) *Input {
	return &Input{
		Items:     func() (Items, error) { return synthetic.Items(cfg, n, flip) },
		Synthetic: true, Dense: dense, Close: func() error { return nil },
		Total: func() int { return n },
	}
}
