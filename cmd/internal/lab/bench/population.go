package bench

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"

	"hamlet/algos/feature"
	"hamlet/algos/model"
	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/data/synthetic"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/example"
	"hamlet/cmd/internal/service/settings"
	"hamlet/cmd/internal/show/report"
	"hamlet/stream"
)

// A population gives endless labelled events: from the generator of synthetic mail, or
// by draws with replacement from a data set.
type population struct {
	name    string
	model   model.Config
	set     []model.Example // the data set; nil for the generator
	bad     string          // the source that one of the faults mislabels
	columns []column        // of a set of vectors
}

const generatorName = "generator"

func newGenerator(cfg model.Config) *population {
	return &population{name: generatorName, model: cfg, bad: synthetic.BadFeed}
}

// newSet reads a data set. Like eval it rejects rows that the model refuses.
func newSet(name string, cfg source.Config, modelConfig func(dense []string) (model.Config, error),
	rejected func(error)) (_ *population, err error) {
	src, err := source.Open(cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	w := &population{name: name, bad: synthetic.BadFeed}
	if len(cfg.Assign) > 0 {
		w.bad = cfg.Assign[0].Name
	}
	if w.model, err = modelConfig(src.Dense()); err != nil {
		return nil, err
	}
	m, err := model.New(w.model)
	if err != nil {
		return nil, fmt.Errorf("configuration of the model: %w", err)
	}
	for item, err := range src.Events() {
		var rejection *source.Rejection
		if err != nil && !errors.As(err, &rejection) {
			return nil, err
		}
		if err == nil && item.Event.Action != stream.Learn {
			err = fmt.Errorf("event %d: a data set holds labelled events only, and this one withdraws one",
				item.Ordinal+1)
		}
		var ex model.Example
		if err == nil {
			ex, _, err = example.Of(&item.Event)
		}
		if err == nil {
			if refused := m.Check(&ex.Body); refused != nil {
				err = fmt.Errorf("event %d: %w", item.Ordinal+1, refused)
			}
		}
		if err != nil {
			rejected(err)
			continue
		}
		w.set = append(w.set, ex)
	}
	if len(w.set) == 0 {
		return nil, fmt.Errorf("%s holds no event that can be learnt from", name)
	}
	w.columns = columnsOf(w.set)
	return w, nil
}

// Sets holds the flags of several streams, each of them a population.
type Sets struct {
	Sources []string `arg:"" optional:"" name:"source" help:"Data sets, each drawn from with replacement, beside the generator; .gz and .zst are unpacked."`
	source.Flags
	settings.ResearchModel

	Generator bool `help:"Draw from the generator of synthetic mail." default:"true" negatable:""`
}

// check reports flags that name no stream.
func (c *Sets) check() error {
	if !c.Generator && c.none() {
		return cli.Usagef("--no-generator: name a SOURCE, or mail by --spam, --ham or --index")
	}
	return nil
}

func (c *Sets) none() bool {
	cfg := c.Flags.Config(c.Sources, source.FlipFlags{})
	return cfg.None()
}

// populations opens the generator and every set.
func (c *Sets) populations(stdio cli.IO) (populations []*population, err error) {
	if c.Generator {
		cfg, err := c.ResearchModel.Config(nil)
		if err != nil {
			return nil, err
		}
		populations = append(populations, newGenerator(cfg))
	}
	rejections := report.Rejections{W: stdio.Err}
	defer rejections.Close()
	add := func(name string, cfg source.Config) error {
		cfg.Stdin = stdio.In
		w, err := newSet(name, cfg, c.ResearchModel.Config, rejections.Add)
		if err == nil {
			populations = append(populations, w)
		}
		return err
	}
	paths := c.Sources
	whole := c.Flags.Config(nil, source.FlipFlags{})
	if whole.Index != "" || len(whole.Spam)+len(whole.Ham) > 0 {
		name := "mail"
		if whole.Index != "" && len(paths) > 0 {
			whole.Paths, paths = paths[:1], paths[1:]
			name = setName(whole.Paths[0])
		}
		if err := add(name, whole); err != nil {
			return nil, err
		}
		whole.Index, whole.Spam, whole.Ham = "", nil, nil
	}
	for _, path := range paths {
		cfg := whole
		cfg.Paths = []string{path}
		if err := add(setName(path), cfg); err != nil {
			return nil, err
		}
	}
	distinguish(populations)
	return populations, nil
}

// event returns event i of the set as a label of the honest source.
func (w *population) event(i int) model.Example {
	ex := w.set[i]
	ex.ID, ex.Source, ex.Identity = strconv.Itoa(i), honest, strconv.Itoa(i)
	return ex
}

// setName is a data set's name: its file's name without the usual extensions.
func setName(path string) string {
	name := filepath.Base(path)
	for {
		ext := filepath.Ext(name)
		if !slices.Contains([]string{".gz", ".zst", ".tar", ".data", ".csv", ".svm", ".jsonl", ".txt"}, ext) ||
			ext == name {
			return name
		}
		name = name[:len(name)-len(ext)]
	}
}

// A labeller is a source for events of a data set without one.
type labeller struct {
	name string
	upTo float64 // it labels events whose draw from [0,1) is below upTo
}

// labellers resemble those of the generator.
var labellers = []labeller{{"abuse-desk", 0.45}, {synthetic.BadFeed, 0.7}, {"spam-traps", 1}}

// unnamed reports whether an event of a set has no source.
func unnamed(ex *model.Example) bool { return ex.Source == "" || ex.Source == stream.DefaultName }

// hears reports whether a source labels any event of the population.
func (w *population) hears(name string) bool {
	labels := slices.ContainsFunc(labellers, func(l labeller) bool { return l.name == name })
	return slices.ContainsFunc(w.set, func(ex model.Example) bool {
		return ex.Source == name || labels && unnamed(&ex)
	})
}

// distinguish numbers populations of the same name.
func distinguish(populations []*population) {
	taken := map[string]bool{}
	for _, w := range populations {
		name := w.name
		for n := 2; taken[w.name]; n++ {
			w.name = fmt.Sprintf("%s (%d)", name, n)
		}
		taken[w.name] = true
	}
}

// open returns a function that gives the events of a seed's stream from number from on:
// 0, or where the fault begins. The caller must not change what an event points to. The
// fault may be nil.
func (w *population) open(seed uint64, from int, f *fault) (next func() (model.Example, error), err error) {
	if w.set == nil {
		cfg := synthetic.Config{Seed: seed}
		if f != nil && f.generator != nil {
			f.generator(&cfg, from)
		}
		g, err := synthetic.New(cfg)
		if err != nil {
			return nil, err
		}
		g.Seek(from)
		return func() (model.Example, error) {
			item, err := g.Next()
			if err != nil {
				return model.Example{}, err
			}
			ex, _, err := example.Of(&item.Event)
			return ex, err
		}, nil
	}
	r := rand.New(rand.NewPCG(seed, drawStream+uint64(from)))
	n := from
	return func() (model.Example, error) {
		ex := w.set[r.IntN(len(w.set))]
		ex.ID = strconv.Itoa(n) // so that copies of a row are distinct events
		n++
		u := r.Float64()
		for _, l := range labellers {
			if unnamed(&ex) && u < l.upTo {
				ex.Source = l.name
			}
		}
		return ex, nil
	}, nil
}

// Streams of random numbers of a seed.
const (
	drawStream  = 1 << 32
	faultStream = 2 << 32
)

// A column is one name of the vectors of a set.
type column struct {
	name        string
	present     int // rows in which it is not 0
	least, most float64
}

// columnsOf returns the columns of a set of vectors, the most frequent first.
func columnsOf(set []model.Example) (columns []column) {
	at := map[string]int{}
	for i := range set {
		for _, v := range set[i].Body.Vector {
			k, ok := at[v.Name]
			if !ok {
				k = len(columns)
				at[v.Name] = k
				columns = append(columns, column{name: v.Name})
			}
			c := &columns[k]
			if v.Value != 0 {
				c.present++
			}
			c.least, c.most = min(c.least, v.Value), max(c.most, v.Value)
		}
	}
	slices.SortFunc(columns, func(a, b column) int {
		return cmp.Or(cmp.Compare(b.present, a.present), cmp.Compare(a.name, b.name))
	})
	return columns
}

// number finds a name in a vector, which ascends by name.
func number(v []feature.Number, name string) (int, bool) {
	return slices.BinarySearchFunc(v, name, func(n feature.Number, name string) int {
		return cmp.Compare(n.Name, name)
	})
}
