package source

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"hamlet/stream"
)

// ID returns the id of an item without one: the first 12 bytes, in hex, of a SHA-256
// over the item's ordinal in its source, its label and its body. Synthetic mail has ids
// by the same rule.
func ID(ordinal int, e *stream.Event) string {
	b := binary.LittleEndian.AppendUint64(nil, uint64(ordinal))
	b = append(b, byte(e.Label), byte(e.Body.Kind))
	b = append(b, e.Body.Text...)
	for _, n := range e.Body.Vector {
		b = binary.AppendUvarint(b, uint64(len(n.Name)))
		b = append(b, n.Name...)
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(n.Value))
	}
	h := sha256.New()
	h.Write(b)
	h.Write(e.Body.Mail)
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// uniform hashes salt, seed and id to [0, 1).
func uniform(salt string, seed int64, id string) float64 {
	var d xxhash.Digest
	d.Reset()
	d.WriteString(salt)
	d.Write(binary.LittleEndian.AppendUint64(nil, uint64(seed)))
	d.WriteString(id)
	return float64(d.Sum64()>>11) / (1 << 53)
}

// A FlipConfig says which labels are flipped. The draw for an event depends only on the
// seed and the event's id.
type FlipConfig struct {
	Rate   float64 // probability in [0, 1]
	From   int     // the first event that may be flipped, counted from 1; 0: the first
	Kind   string  // "uniform" or "": both; "spam": spam called ham; "ham": ham called spam
	Source string  // only this source's events; "": all
	Seed   int64
}

func (f *FlipConfig) check() (errs []error) {
	if !(f.Rate >= 0 && f.Rate <= 1) {
		errs = append(errs, usagef("--flip %v: a share from 0 to 1 is wanted", f.Rate))
	}
	if f.From < 0 {
		errs = append(errs, usagef("--flip-from %d: the number of an event is wanted, from 1", f.From))
	}
	switch f.Kind {
	case "", "uniform", "spam", "ham":
	default:
		errs = append(errs, usagef("--flip-kind %s: uniform, spam or ham is wanted", f.Kind))
	}
	return errs
}

// Check reports every invalid setting.
func (f *FlipConfig) Check() error { return errors.Join(f.check()...) }

// Apply flips the label of e, the n-th event counted from 1, if f says so.
func (f *FlipConfig) Apply(e *stream.Event, n int) {
	switch {
	case f.Rate == 0 || n < f.From || e.Label == stream.Unlabelled:
		return
	case f.Source != "" && f.Source != e.Source:
		return
	case f.Kind == "spam" && e.Label != stream.Spam, f.Kind == "ham" && e.Label != stream.Ham:
		return
	case uniform("flip", f.Seed, e.ID) >= f.Rate:
		return
	}
	if e.Label == stream.Spam {
		e.Label = stream.Ham
	} else {
		e.Label = stream.Spam
	}
}

// An Assignment gives a source a fraction of the events that have no source. It is
// written NAME or NAME=SHARE. Names without a share divide the rest equally.
type Assignment struct {
	Name  string
	Share float64 // fraction in (0, 1]; 0: an equal part of the rest
}

// UnmarshalText reads NAME or NAME=SHARE.
func (a *Assignment) UnmarshalText(text []byte) error {
	name, share, given := strings.Cut(string(text), "=")
	a.Name, a.Share = strings.TrimSpace(name), 0
	if a.Name == "" {
		return fmt.Errorf("%q: NAME or NAME=SHARE is wanted", text)
	}
	if !given {
		return nil
	}
	v, err := strconv.ParseFloat(share, 64)
	if err != nil || !(v > 0 && v <= 1) {
		return fmt.Errorf("%q: the share must be a number above 0 and up to 1, as in %s=0.25", text, a.Name)
	}
	a.Share = v
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (a Assignment) MarshalText() ([]byte, error) {
	if a.Share == 0 {
		return []byte(a.Name), nil
	}
	return []byte(a.Name + "=" + strconv.FormatFloat(a.Share, 'g', -1, 64)), nil
}

const shareRounding = 1e-9

func checkAssignments(list []Assignment) (errs []error) {
	sum, seen := 0.0, map[string]bool{}
	for _, a := range list {
		sum += a.Share
		if seen[a.Name] {
			errs = append(errs, usagef("--source %s: given twice", a.Name))
		}
		seen[a.Name] = true
		probe := stream.Event{ID: "x", Source: a.Name, Label: stream.Ham, Body: stream.Body{Kind: stream.Text, Text: "x"}}
		if err := probe.Validate(); err != nil {
			errs = append(errs, usagef("--source %s: %w", a.Name, err))
		}
	}
	if sum > 1+shareRounding {
		errs = append(errs, usagef("--source: the shares sum to %.4g, more than 1", sum))
	}
	return errs
}

// assign returns the source of the event with this id, or the default name if no share
// covers it.
func assign(list []Assignment, id string) string {
	if len(list) == 0 {
		return stream.DefaultName
	}
	given, open := 0.0, 0
	for _, a := range list {
		given += a.Share
		if a.Share == 0 {
			open++
		}
	}
	rest := 0.0
	if open > 0 {
		rest = max(0, 1-given) / float64(open)
	}
	u := uniform("source", 0, id)
	upTo := 0.0
	for _, a := range list {
		share := a.Share
		if share == 0 {
			share = rest
		}
		upTo += share
		if u < upTo {
			return a.Name
		}
	}
	if upTo > 1-shareRounding {
		return list[len(list)-1].Name
	}
	return stream.DefaultName
}
