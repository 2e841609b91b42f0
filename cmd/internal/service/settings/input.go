package settings

import (
	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/data/synthetic"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/ingest"
)

// OpenSource opens a labelled source. No flag about synthetic mail may be given.
func OpenSource(cfg source.Config, f *synthetic.Flags) (*ingest.Input, error) {
	if flag := f.Given(); flag != "" {
		return nil, cli.Usagef("%s is about synthetic mail, which --generate N gives in place of a source", flag)
	}
	return ingest.OpenSource(cfg)
}

// OpenSynthetic returns n synthetic mails, or mail without end for n = 0, with flip's labels flipped. No flag
// about a source may be given.
func OpenSynthetic(f *synthetic.Flags, n int, flip source.FlipConfig, of *source.Flags) (*ingest.Input, error) {
	if flag := of.Given(); flag != "" {
		return nil, cli.Usagef("%s is about a source, and there is none: synthetic mail comes in its order and with "+
			"its own sources, user-reports among them", flag)
	}
	cfg, err := f.Config()
	if err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	if err := source.CheckSampled(of.Sampled); err != nil {
		return nil, err
	}
	in := ingest.OpenSynthetic(cfg, n, flip, of.Dense)
	if plain := in.Items; of.Sampled != nil {
		in.Items = func() (ingest.Items, error) {
			items, err := plain()
			return sampled(items, *of.Sampled), err
		}
	}
	return in, nil
}

// sampled returns the items with labels that were asked for.
func sampled(items ingest.Items, share float64) ingest.Items {
	return func(yield func(source.Item, error) bool) {
		for item, err := range items {
			source.Sample(&item.Event, &share)
			if !yield(item, err) {
				return
			}
		}
	}
}
