package source

// Flags are the flags of a labelled source, for kong to fill. Eval, up and
// ingest embed them.
type Flags struct {
	Format   string       `placeholder:"FORMAT" enum:",mail,text,csv,svmlight,jsonl" default:"" help:"mail, text, csv, svmlight or jsonl (default: guess)." group:"Labelled source"`
	Spam     []string     `placeholder:"PATH" sep:"none" help:"Spam: mbox, Maildir, directory or tar. May repeat." group:"Labelled source"`
	Ham      []string     `placeholder:"PATH" sep:"none" help:"Ham, likewise. All mail is merged in order of time." group:"Labelled source"`
	Index    string       `placeholder:"FILE" help:"File of lines 'label,path', in stream order." group:"Labelled source"`
	Label    string       `placeholder:"last" help:"CSV: the column of the label, name or number." group:"Labelled source"`
	Positive string       `placeholder:"VALUE" help:"The label of spam (default spam, 1 and +1)." group:"Labelled source"`
	Drop     string       `placeholder:"COLUMNS" help:"CSV: columns to leave out, such as an id." group:"Labelled source"`
	Text     string       `placeholder:"COLUMNS" help:"CSV: columns of text. Words are hashed inputs." group:"Labelled source"`
	Missing  string       `placeholder:"COLUMNS" help:"CSV: columns with gaps, or *. A gap is 0, COLUMN? 1." group:"Labelled source"`
	Dense    []string     `placeholder:"NAME" help:"Names that enter the head directly; others hashed." group:"Labelled source"`
	Shuffle  *int64       `placeholder:"SEED" help:"Shuffle the events with this seed." group:"Labelled source"`
	Limit    int          `placeholder:"N" help:"Stop after N events." group:"Labelled source"`
	Sampled  *float64     `placeholder:"SHARE" help:"What is labelled here is this share of all mail, chosen by chance: promises about lost ham may rest on it. 1: all of it." group:"Labelled source"`
	Source   []Assignment `placeholder:"NAME[=SHARE]" sep:"none" help:"Assign sources by a hash of the id. May repeat." group:"Labelled source"`
}

// FlipFlags are the flags that make labels wrong, for kong to fill. Eval and bench embed them.
type FlipFlags struct {
	Flip       *float64 `placeholder:"RATE" help:"Flip this fraction of the labels that are learnt." group:"Labelled source"`
	FlipFrom   *int     `placeholder:"1" help:"Flip from this event on." group:"Labelled source"`
	FlipKind   string   `placeholder:"uniform" enum:",uniform,spam,ham" default:"" help:"uniform, spam (called ham) or ham (called spam)." group:"Labelled source"`
	FlipSource string   `placeholder:"NAME" help:"Flip only this source's labels." group:"Labelled source"`
	Seed       *int64   `placeholder:"0" help:"Seed of the flips." group:"Labelled source"`
}

// Check reports flags about flips that lack --flip; --flip 0 suffices. It allows --seed
// and --flip-kind uniform, so that one command line works with and without --flip.
func (f *FlipFlags) Check() error {
	if f.Flip != nil {
		return nil
	}
	given := firstGiven([]flag{
		{"--flip-from", f.FlipFrom != nil}, {"--flip-kind", f.FlipKind != "" && f.FlipKind != "uniform"},
		{"--flip-source", f.FlipSource != ""},
	})
	if given != "" {
		return usagef("%s: no label is flipped without --flip RATE, such as --flip .1", given)
	}
	return nil
}

type flag struct {
	name  string
	given bool
}

// firstGiven returns the name of the first flag that was given, or "".
func firstGiven(flags []flag) string {
	for _, f := range flags {
		if f.given {
			return f.name
		}
	}
	return ""
}

// Config returns the configuration that f and flip set, for the given paths.
func (f *Flags) Config(paths []string, flip FlipFlags) Config {
	return Config{
		Paths: paths, Format: f.Format,
		Spam: f.Spam, Ham: f.Ham, Index: f.Index,
		Label: f.Label, Positive: f.Positive, Drop: f.Drop, Text: f.Text, Missing: f.Missing, Dense: f.Dense,
		Shuffle: f.Shuffle, Limit: f.Limit, Assign: f.Source, Sampled: f.Sampled,
		Flip: flip.config(),
	}
}

// Given returns the first given flag that only a source takes, or "". Synthetic mail
// also takes --dense, --limit and --sampled.
func (f *Flags) Given() string {
	return firstGiven([]flag{
		{"--format", f.Format != ""}, {"--spam", len(f.Spam) > 0}, {"--ham", len(f.Ham) > 0}, {"--index", f.Index != ""},
		{"--label", f.Label != ""}, {"--positive", f.Positive != ""}, {"--drop", f.Drop != ""}, {"--text", f.Text != ""},
		{"--missing", f.Missing != ""},
		{"--shuffle", f.Shuffle != nil}, {"--source", len(f.Source) > 0},
	})
}

// config returns the flips that f sets.
func (f *FlipFlags) config() FlipConfig {
	cfg := FlipConfig{Kind: f.FlipKind, Source: f.FlipSource}
	if f.Flip != nil {
		cfg.Rate = *f.Flip
	}
	if f.FlipFrom != nil {
		cfg.From = *f.FlipFrom
	}
	if f.Seed != nil {
		cfg.Seed = *f.Seed
	}
	return cfg
}
