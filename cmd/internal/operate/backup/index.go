package backup

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"hamlet/cmd/internal/service/settings"
	"hamlet/state"
)

// format is the version of the layout of an [Index].
const format = 1

// An Index says what one backup has. It is a file of JSON. Its name has the time of the
// backup and the first half of the SHA-256 of its bytes.
type Index struct {
	Format  int       `json:"format"`
	Taken   time.Time `json:"taken"`
	Program string    `json:"program"` // the version of the hamlet that took it
	Models  []Model   `json:"models"`  // by name
	Missing []string  `json:"not_included"`

	name string // of the file
}

// A Model is what a backup has of one model.
type Model struct {
	Name       string          `json:"model"`
	Promotion  json.RawMessage `json:"promotion,omitempty"` // which model answers in its place, a [state.Promotion]
	Partitions []Partition     `json:"partitions"`          // one; of hamlet 0.1.0 perhaps several, ascending
}

// promotion returns which model answers in the place of m, nil if none was promoted.
func (m *Model) promotion() (*state.Promotion, error) {
	if len(m.Promotion) == 0 {
		return nil, nil
	}
	var p state.Promotion
	if err := p.UnmarshalBinary(m.Promotion); err != nil {
		return nil, fmt.Errorf("model %s: %w", m.Name, err)
	}
	return &p, nil
}

// A Partition is what a backup has of the model. With hamlet 0.1.0 a model could be one for each
// partition of the log.
type Partition struct {
	Partition int       `json:"partition"`        // 0
	Pinned    int64     `json:"pinned,omitempty"` // the version that an operator pinned: one of Versions
	Versions  []Version `json:"versions"`         // ascending: the last is the newest
}

// A Version is one checkpoint. All but Version and Replaced repeats what Manifest says, for
// people and for scripts.
type Version struct {
	Version  int64           `json:"version"`            // its number in Redis
	Replaced bool            `json:"replaced,omitempty"` // another model took its place
	Saved    time.Time       `json:"saved"`
	Events   uint64          `json:"events"`
	Position int64           `json:"position"` // the next offset
	Numerics string          `json:"numerics"`
	Config   json.RawMessage `json:"config,omitempty"`
	Bytes    int64           `json:"bytes"`
	SHA256   string          `json:"sha256"` // of the model's bytes
	Chunks   []string        `json:"chunks"` // SHA-256 of each MiB of the model, in order: names of files
	Manifest []byte          `json:"manifest"`

	manifest state.Manifest // what Manifest holds; nothing if refused is an error
	refused  error          // it is of several partitions: wraps state.ErrPartitions
}

// describe returns the version that a manifest makes.
func describe(number int64, replaced bool, m *state.Manifest) (Version, error) {
	b, err := m.AppendBinary(nil)
	if err != nil {
		return Version{}, err
	}
	v := Version{
		Version: number, Replaced: replaced, Saved: m.Saved.UTC(), Events: m.Events, Position: m.Position.Next,
		Numerics: m.Numerics, Config: m.Config, Bytes: m.Length, SHA256: hex.EncodeToString(m.Model[:]),
		Chunks: []string{}, Manifest: b,
	}
	for i := range m.Chunks {
		v.Chunks = append(v.Chunks, hex.EncodeToString(m.Chunks[i][:]))
	}
	return v, v.manifest.UnmarshalBinary(b)
}

// readIndex decodes an index and checks that it agrees with itself. The error wraps
// [state.ErrCorrupt], except for a format that this program does not know.
func readIndex(b []byte) (*Index, error) {
	var x Index
	if err := json.Unmarshal(b, &x); err != nil {
		return nil, fmt.Errorf("%w: read the index: %w", state.ErrCorrupt, err)
	}
	if x.Format != format {
		return nil, fmt.Errorf("the backup has format %d, this program reads %d: use the hamlet that wrote it or a newer one",
			x.Format, format)
	}
	if err := x.possible(); err != nil {
		return nil, fmt.Errorf("%w: the index: %w", state.ErrCorrupt, err)
	}
	for i := range x.Models {
		if _, err := x.Models[i].promotion(); err != nil {
			return nil, err
		}
		for j := range x.Models[i].Partitions {
			p := &x.Models[i].Partitions[j]
			for k := range p.Versions {
				v := &p.Versions[k]
				if err := v.decode(); errors.Is(err, state.ErrPartitions) {
					v.refused = err
				} else if err != nil {
					return nil, fmt.Errorf("model %s, partition %d, version %d: %w", x.Models[i].Name, p.Partition, v.Version, err)
				}
			}
		}
	}
	return &x, nil
}

// possible returns an error if the index names what no backup has.
func (x *Index) possible() error {
	names := map[string]bool{}
	for i := range x.Models {
		m := &x.Models[i]
		if err := (settings.ModelName{Model: m.Name}).Validate(); err != nil {
			return fmt.Errorf("model %.40q: %w", m.Name, err)
		}
		if names[m.Name] {
			return fmt.Errorf("it names model %s twice", m.Name)
		}
		names[m.Name] = true
		if len(m.Partitions) == 0 {
			return fmt.Errorf("it names no partition of model %s", m.Name)
		}
		before := -1
		for j := range m.Partitions {
			p := &m.Partitions[j]
			if p.Partition <= before {
				return fmt.Errorf("model %s: partition %d follows %d", m.Name, p.Partition, before)
			}
			before = p.Partition
			if err := p.possible(); err != nil {
				return fmt.Errorf("model %s, partition %d: %w", m.Name, p.Partition, err)
			}
		}
	}
	return nil
}

func (p *Partition) possible() error {
	if len(p.Versions) == 0 {
		return errors.New("it names no version")
	}
	before, pinned := int64(0), p.Pinned == 0
	for i := range p.Versions {
		number := p.Versions[i].Version
		if number <= before {
			return fmt.Errorf("version %d follows %d", number, before)
		}
		before = number
		pinned = pinned || number == p.Pinned
	}
	if !pinned {
		return fmt.Errorf("it does not name the pinned version %d", p.Pinned)
	}
	return nil
}

// only returns what there is of the model, unless that is of several partitions: then the error
// wraps state.ErrPartitions.
func (m *Model) only() (*Partition, error) {
	const how = "restore the backup with hamlet 0.1.0, and then"
	p := &m.Partitions[0]
	if len(m.Partitions) > 1 || p.Partition != 0 {
		return nil, fmt.Errorf("it is a model for each partition: %w: %s make one log of theirs with "+
			"\"hamlet log merge --from %s --to NAME\" and have it learnt with --model NAME", state.ErrPartitions, how, m.Name)
	}
	for i := range p.Versions {
		if err := p.Versions[i].refused; err != nil {
			return nil, fmt.Errorf("version %d: %s: %w", p.Versions[i].Version, how, err)
		}
	}
	return p, nil
}

// decode reads Manifest, and compares it with what stands beside it.
func (v *Version) decode() error {
	var m state.Manifest
	if err := m.UnmarshalBinary(v.Manifest); err != nil {
		return err
	}
	want, err := describe(v.Version, v.Replaced, &m)
	if err != nil {
		return errors.Join(state.ErrCorrupt, err)
	}
	// Indentation is no part of the configuration, nor is the location of a time.
	said := *v
	said.Config, said.Saved, said.manifest = want.Config, said.Saved.UTC(), want.manifest
	want.Manifest = v.Manifest // a manifest of an earlier version is encoded in the newest one
	if !reflect.DeepEqual(said, want) {
		return fmt.Errorf("%w: the index and the manifest in it say different things", state.ErrCorrupt)
	}
	v.manifest = m
	return nil
}

func (p *Partition) newest() *Version { return &p.Versions[len(p.Versions)-1] }
