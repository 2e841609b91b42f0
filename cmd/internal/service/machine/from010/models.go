package from010

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"hamlet/state"
	"hamlet/state/files"
)

// A model is what the Redis of 0.1.0 keeps of one. Package state/redis says which keys there are. Of the
// chunks only the names are here.
type model struct {
	name       string
	pointers   map[string]string
	kept       map[int64]bool // the numbers in the key versions; true: of a lost one
	versions   map[int64][]item
	promotion  []byte
	partitions []string
	chunks     map[[sha256.Size]byte]span
}

// A span is where bytes are in the snapshot.
type span struct{ at, size int64 }

var modelKey = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^hamlet:\{([a-z0-9-]{1,64})\}:([0-9]+):(.*)$`)
})

// readModels scans a snapshot for the models of a database. What it passes over it says in log.
func readModels(s *snapshot, database int, log *slog.Logger, read func(bytes int64) error) ([]*model, error) {
	models := map[string]*model{}
	elsewhere := map[int]map[string]bool{}
	var several []string
	others := 0
	err := s.scan(func(k *key) error {
		is := modelKey().FindStringSubmatch(k.name)
		switch {
		case is == nil:
			others++
			return nil
		case k.database != database:
			if elsewhere[k.database] == nil {
				elsewhere[k.database] = map[string]bool{}
			}
			elsewhere[k.database][is[1]] = true
			return nil
		case is[2] != "0":
			several = append(several, is[1])
			return nil
		}
		m := models[is[1]]
		if m == nil {
			m = &model{
				name: is[1], pointers: map[string]string{}, kept: map[int64]bool{},
				versions: map[int64][]item{}, chunks: map[[sha256.Size]byte]span{},
			}
			models[is[1]] = m
		}
		m.add(is[3], k)
		return nil
	}, read)
	if err != nil {
		return nil, err
	}
	for _, m := range models {
		if len(m.partitions) > 0 && !slices.Equal(m.partitions, []string{"0"}) {
			several = append(several, m.name)
		}
	}
	if len(several) > 0 {
		slices.Sort(several)
		return nil, fmt.Errorf("models %s: %w", strings.Join(slices.Compact(several), ", "), state.ErrPartitions)
	}
	if others > 0 {
		log.Warn("keys of the embedded Redis that are not hamlet's are left out", "keys", others)
	}
	for number, names := range elsewhere {
		list := strings.Join(slices.Sorted(maps.Keys(names)), ", ")
		if len(models) == 0 {
			return nil, fmt.Errorf("database %d of the embedded Redis has no model, and database %d has %s: "+
				"start with --redis-db %d, as with hamlet 0.1.0", database, number, list, number)
		}
		log.Warn("models in another database of the embedded Redis are left out", "database", number, "models", list,
			"converted", database)
	}
	return slices.SortedFunc(maps.Values(models), func(a, b *model) int { return strings.Compare(a.name, b.name) }), nil
}

// add notes a key. One of another type counts as missing, as everywhere.
func (m *model) add(name string, k *key) {
	if text, is := strings.CutPrefix(name, "chunk:"); is {
		sum, err := hex.DecodeString(text)
		if err != nil || k.kind != 's' || len(k.items[0].name) > state.ChunkSize {
			return
		}
		if is := sha256.Sum256(k.items[0].name); bytes.Equal(sum, is[:]) {
			m.chunks[is] = span{k.at, int64(len(k.items[0].name))}
		}
		return
	}
	if text, is := strings.CutPrefix(name, "version:"); is {
		if number := parse(text); number > 0 && k.kind == 'h' {
			m.versions[number] = k.items
		}
		return
	}
	switch {
	case name == "versions" && k.kind == 'z':
		for _, one := range k.items {
			if number := parse(string(one.name)); number > 0 {
				m.kept[number] = one.score < 0
			}
		}
	case name == "partitions" && k.kind == 't':
		for _, one := range k.items {
			m.partitions = append(m.partitions, string(one.name))
		}
	case name == "promotion" && k.kind == 's':
		m.promotion = k.items[0].name
	case k.kind == 's':
		m.pointers[name] = string(k.items[0].name)
	}
}

// parse returns the value of a counter or a version's number, 0 for what is none.
func parse(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > 1e15 {
		return 0
	}
	return n
}

// what returns what a store in files keeps of the model. A version that 0.1.0 could not have loaded is
// left out: so 0.1.0 would go on with the one before, too.
func (m *model) what(log *slog.Logger) (k files.Kept, err error) {
	log = log.With("model", m.name)
	k = files.Kept{Epoch: parse(m.pointers["epoch"]), Last: parse(m.pointers["last"]),
		Pinned: parse(m.pointers["pinned"])}
	head, newest := parse(m.pointers["head"]), int64(0)
	var failed error
	for _, number := range slices.Sorted(maps.Keys(m.kept)) {
		v, err := m.version(number)
		if errors.Is(err, state.ErrPartitions) {
			return k, fmt.Errorf("model %s: version %d: %w", m.name, number, err)
		}
		k.Last = max(k.Last, number)
		if err != nil {
			failed = err
			log.Error("a version is left out: it is not whole in the embedded Redis", "version", number, "head",
				number == head, "pinned", number == k.Pinned, "error", err)
			continue
		}
		k.Versions = append(k.Versions, v)
		if !v.Lost && (head == 0 || number <= head) {
			newest = number
		}
	}
	if (failed != nil || head != 0) && newest == 0 {
		return k, fmt.Errorf("model %s: no version can be read, so it would be lost: %w. "+
			"Start hamlet 0.1.0 once and let its learner save, or move %s away: "+
			"then the learner makes the model again from its log", m.name, cmp.Or(failed, state.ErrNone), snapshotName)
	}
	if head != newest {
		log.Error("the head cannot be read: the newest version before it takes its place, "+
			"and the learner goes on from there", "head", head, "instead", newest)
	}
	k.Head = newest
	if len(m.promotion) > 0 {
		k.Promotion = new(state.Promotion)
		if err := k.Promotion.UnmarshalBinary(m.promotion); err != nil {
			log.Error("which model answers in this one's place cannot be read, and is left out: promote it again",
				"error", err)
			k.Promotion = nil
		}
	}
	return k, nil
}

// version returns a kept version, all of whose chunks are there.
func (m *model) version(number int64) (v files.KeptVersion, err error) {
	fields := map[string]string{}
	for _, one := range m.versions[number] {
		fields[string(one.name)] = string(one.value)
	}
	manifest := new(state.Manifest)
	if err := manifest.UnmarshalBinary([]byte(fields["manifest"])); err != nil {
		return v, err
	}
	manifest.Writer = fields["writer"]
	for i, name := range manifest.Chunks {
		if _, is := m.chunks[name]; !is {
			return v, fmt.Errorf("%w: chunk %d of %d (%x) is missing or wrong", state.ErrCorrupt, i+1,
				len(manifest.Chunks), name)
		}
	}
	return files.KeptVersion{
		Number: number, Manifest: manifest, Day: parse(fields["day"]),
		Replaced: fields["replaced"] != "", Lost: m.kept[number] || fields["lost"] != "",
		Counted: parse(fields["counted"]), Waited: int(min(parse(fields["waited"]), math.MaxInt32)),
	}, nil
}

// room returns about how many bytes a model takes on the disk.
func room(k *files.Kept) (n int64) {
	const file = 4096
	seen := map[[sha256.Size]byte]bool{}
	for i := range k.Versions {
		m := k.Versions[i].Manifest
		for j, name := range m.Chunks {
			if !seen[name] {
				n += min(state.ChunkSize, m.Length-int64(j)*state.ChunkSize) + file
			}
			seen[name] = true
		}
		n += file
	}
	return n
}

// put writes a model into a store in files.
func (m *model) put(ctx context.Context, s *snapshot, k files.Kept, dir *files.Dir,
	read func(bytes int64) error) error {
	store, err := dir.Store(m.name)
	if err != nil {
		return err
	}
	return store.Import(ctx, k, func(yield func(state.Chunk, error) bool) {
		inOrder := func(a, b [sha256.Size]byte) int { return cmp.Compare(m.chunks[a].at, m.chunks[b].at) }
		for _, name := range slices.SortedFunc(maps.Keys(m.chunks), inOrder) {
			data := make([]byte, m.chunks[name].size)
			_, err := s.file.ReadAt(data, m.chunks[name].at)
			if err == nil {
				err = read(m.chunks[name].size)
			}
			if !yield(state.Chunk{Name: name, Data: data}, err) || err != nil {
				return
			}
		}
	})
}
