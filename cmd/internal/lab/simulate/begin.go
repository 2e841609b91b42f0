package simulate

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"hamlet/stream"
)

// A Beginning is where all worlds begin: a log of some history, a store with its model, and
// labels that clients will send. All seeds share it.
type Beginning struct {
	records []stream.Record
	more    []stream.Event             // labels to come; half of 90 are wrong, which raises alarms
	store   string                     // a directory
	sums    map[[sha256.Size]byte]bool // of the models in it
}

// settled is after how many labels a model soon raises an alarm where labels are wrong. A model keeps what it
// needs to withdraw each of the last 2,500, which is most of its bytes: with more labels all that reads and
// writes models is slower.
const settled = 1000

// NewBeginning makes a beginning in an empty directory. It is called in a bubble of
// testing/synctest.
func NewBeginning(dir string) (*Beginning, error) {
	b := &Beginning{store: filepath.Join(dir, "empty")}
	r := rand.New(rand.NewPCG(11, 12))
	for i := range settled + 300 {
		spam := r.IntN(2) == 1
		e := stream.Event{
			ID: fmt.Sprint("e", i), Source: "s", Tenant: "t", Label: stream.Ham,
			Body: stream.Body{Kind: stream.Vector},
		}
		for j, name := range config.Dense {
			x := r.NormFloat64()
			if j < 2 && spam {
				x += 2.26
			}
			e.Body.Vector = append(e.Body.Vector, stream.Number{Name: name, Value: x})
		}
		wrong := i >= settled+170 && i < settled+260 && r.Float64() < .5
		if spam != wrong {
			e.Label = stream.Spam
		}
		if i%4 == 3 {
			e.Source = doubtful
		}
		if i >= settled {
			b.more = append(b.more, e)
			continue
		}
		value, headers, err := e.EncodeRecord()
		if err != nil {
			return nil, err
		}
		b.records = append(b.records, stream.Record{Value: value, Headers: headers, Time: time.Now()})
	}
	w := &World{plan: Plan{}, begin: &Beginning{}}
	return b, w.learn(b, dir)
}

// learn makes the store of a beginning.
func (w *World) learn(b *Beginning, dir string) error {
	vault, err := openVault(dir, keeps)
	if err != nil {
		return err
	}
	if err := vault.close(); err != nil {
		return err
	}
	empty := &Beginning{store: vault.current(), sums: map[[sha256.Size]byte]bool{}}
	blank, err := newWorld(Plan{}, empty, filepath.Join(dir, "blank"))
	if err != nil {
		return err
	}
	c, err := blank.calm(b.records, filepath.Join(dir, "begun"))
	if err != nil {
		return err
	}
	b.store, b.sums = c.vault.current(), c.sums
	return blank.vault.close()
}
