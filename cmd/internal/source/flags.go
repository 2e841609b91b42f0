package source

// Flags are the flags of a labelled source, for kong to fill. Eval, up and
// ingest embed them.
type Flags struct {
	Format   string       `placeholder:"FORMAT" enum:",mail,text,csv,svmlight,jsonl" default:"" help:"What the source is, where its name and content do not tell: mail (mbox, Maildir, directory or tar of messages), text (label<TAB>text a line), csv (numbers), svmlight, jsonl (one event a line)."`
	Spam     []string     `placeholder:"PATH" sep:"none" help:"Mail that is spam: an mbox file, a Maildir, a directory or a tar of messages. May repeat. All of --spam and --ham is merged by time of delivery."`
	Ham      []string     `placeholder:"PATH" sep:"none" help:"Mail that is ham (not spam). May repeat."`
	Index    string       `placeholder:"FILE" help:"Labels of mail, a line 'label,path' for each message, in the order of the stream; a path is absolute, relative to FILE's folder, or a member of the tar given as SOURCE."`
	Label    string       `placeholder:"COLUMN" help:"CSV: the column of the label, by name or number from 1. The last one unless given."`
	Positive string       `placeholder:"VALUE" help:"CSV: the label that means spam; every other is ham then. Unless given, spam, 1 and +1 are spam, ham, 0 and -1 are ham."`
	Drop     string       `placeholder:"COLUMNS" help:"CSV: columns to leave out, names or numbers with commas between, as an id or a date."`
	Dense    []string     `placeholder:"NAMES" help:"Names of the numbers that enter the model one by one, with commas between; every other is hashed. All columns of a CSV unless given."`
	Shuffle  *int64       `placeholder:"SEED" help:"Reorder the events by a permutation drawn from SEED."`
	Limit    int          `placeholder:"N" help:"Stop after N events."`
	Source   []Assignment `placeholder:"NAME[=SHARE]" sep:"none" help:"Give SHARE of the events that carry no source this one, by a hash of their ids. May repeat; names without a share divide the rest."`
}

// FlipFlags are the flags that make labels wrong, for kong to fill.
type FlipFlags struct {
	Flip       *float64 `placeholder:"RATE" help:"Teach this share of the labels flipped; metrics keep the true ones."`
	FlipFrom   *int     `placeholder:"N" help:"Flip from event N on, counted from 1."`
	FlipKind   string   `placeholder:"KIND" enum:",uniform,spam,ham" default:"" help:"Which labels are flipped: uniform (all, as without it), spam (only spam is called ham), ham (only ham is called spam)."`
	FlipSource string   `placeholder:"NAME" help:"Flip only what this source says."`
	Seed       *int64   `placeholder:"S" help:"Seed of the flips, 0 unless given: whether a label is flipped depends on it and on the event's id alone."`
}

// Check reports a flag that says how labels are flipped without --flip; --flip 0 counts
// as given. --seed and --flip-kind uniform pass: they let one run the same command with
// and without flips.
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

// firstGiven returns the name of the first flag that was given, "" if none was.
func firstGiven(flags []flag) string {
	for _, f := range flags {
		if f.given {
			return f.name
		}
	}
	return ""
}

// Config returns the configuration that f and flip ask for, over the given paths.
func (f *Flags) Config(paths []string, flip FlipFlags) Config {
	return Config{
		Paths: paths, Format: f.Format,
		Spam: f.Spam, Ham: f.Ham, Index: f.Index,
		Label: f.Label, Positive: f.Positive, Drop: f.Drop, Dense: f.Dense,
		Shuffle: f.Shuffle, Limit: f.Limit, Assign: f.Source,
		Flip: flip.config(),
	}
}

// Given returns the first flag that was given of those that only a source follows, ""
// if none was. --dense and --limit are not among them: synthetic mail takes them, too.
func (f *Flags) Given() string {
	return firstGiven([]flag{
		{"--format", f.Format != ""}, {"--spam", len(f.Spam) > 0}, {"--ham", len(f.Ham) > 0}, {"--index", f.Index != ""},
		{"--label", f.Label != ""}, {"--positive", f.Positive != ""}, {"--drop", f.Drop != ""},
		{"--shuffle", f.Shuffle != nil}, {"--source", len(f.Source) > 0},
	})
}

// config returns the flips that f asks for.
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
