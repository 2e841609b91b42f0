package backup

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"hamlet/cmd/internal/process/secretfile"
	"hamlet/cmd/internal/process/wholefile"
	"hamlet/state"
)

// A folder is a directory of backups:
//
//	20261123T201500.123Z-0123456789abcdef.json   an [Index]: one backup
//	chunks/01/0123…                              up to 1 MiB of a model, named by its SHA-256
//	.new-…                                       a file that is being written
//
// A file has its name once it is whole and on the disk. A chunk is written before the index
// that names it. So a backup that was interrupted leaves the former ones as they were, and
// at most chunks that no index names.
type folder struct{ path string }

const (
	chunkFolder = "chunks"
	unfinished  = ".new-"
	nameTime    = "20060102T150405.000Z" // in the name of an index
)

var indexName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9]{8}T[0-9]{6}\.[0-9]{3}Z-([0-9a-f]{32})\.json$`)
})

func (f folder) chunk(name [sha256.Size]byte) string {
	text := hex.EncodeToString(name[:])
	return filepath.Join(f.path, chunkFolder, text[:2], text)
}

// readChunk returns the bytes of a chunk. The error wraps [state.ErrCorrupt] if they are not
// those that its name says.
func (f folder) readChunk(name [sha256.Size]byte) ([]byte, error) {
	path := f.chunk(name)
	if info, err := os.Stat(path); err == nil && info.Size() > state.ChunkSize {
		return nil, fmt.Errorf("%w: %s has %d bytes, a chunk has %d at most",
			state.ErrCorrupt, path, info.Size(), state.ChunkSize)
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s is missing", state.ErrCorrupt, path)
	}
	if err != nil {
		return nil, err
	}
	if sha256.Sum256(b) != name {
		return nil, fmt.Errorf("%w: %s does not have the hash that names it", state.ErrCorrupt, path)
	}
	return b, nil
}

// writeChunk writes a chunk unless it is there already, and whole.
func (f folder) writeChunk(c *state.Chunk) (written bool, err error) {
	if _, err := f.readChunk(c.Name); err == nil {
		return false, nil
	} else if !errors.Is(err, state.ErrCorrupt) {
		return false, err
	}
	path := f.chunk(c.Name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return false, err
	}
	return true, f.write(path, c.Data)
}

// write makes a file appear as a whole. Only its owner may read it: a model is a statistic of
// mail.
func (f folder) write(path string, data []byte) (err error) {
	file, err := os.CreateTemp(f.path, unfinished+"*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	_, err = file.Write(data)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	return wholefile.SyncFolder(filepath.Dir(path))
}

// checkpoint reads a version, and verifies every hash.
func (f folder) checkpoint(v *Version) (*state.Checkpoint, error) {
	data := make([][]byte, 0, len(v.manifest.Chunks))
	for _, name := range v.manifest.Chunks {
		b, err := f.readChunk(name)
		if err != nil {
			return nil, err
		}
		data = append(data, b)
	}
	return state.Join(&v.manifest, data)
}

// has reports whether all chunks of a version are there, and whole.
func (f folder) has(v *Version) bool {
	for _, text := range v.Chunks {
		b, err := hex.DecodeString(text)
		if err != nil || len(b) != sha256.Size {
			return false
		}
		if _, err := f.readChunk([sha256.Size]byte(b)); err != nil {
			return false
		}
	}
	return true
}

// finish writes an index, and so makes the chunks that it names a backup. It reads the bytes first as
// a restore does: an index that is refused there gets no name, and keeps no chunk from being deleted.
func (f folder) finish(x *Index) error {
	b, err := json.MarshalIndent(x, "", "  ")
	if err != nil {
		return fmt.Errorf("the index in JSON: %w", err)
	}
	b = append(b, '\n')
	if _, err := readIndex(b); err != nil {
		return err
	}
	sum := sha256.Sum256(b)
	x.name = fmt.Sprintf("%s-%x.json", x.Taken.UTC().Format(nameTime), sum[:16])
	if err := wholefile.SyncFolder(filepath.Join(f.path, chunkFolder)); err != nil {
		return err
	}
	return f.write(filepath.Join(f.path, x.name), b)
}

// ours returns an error if root would leave files in a directory of another user, who could
// not read them.
func ours(path string) error {
	info, err := os.Stat(path)
	if err != nil || os.Geteuid() != 0 {
		return nil // who makes the directory owns it; who is not root cannot write to another's
	}
	if secretfile.Ours(info) {
		return nil
	}
	owner := secretfile.Owner(info)
	return fmt.Errorf("%s belongs to %s, who could not read the files of root: run this command as its owner, "+
		"sudo -u %s hamlet …", path, owner, owner)
}

// list returns the names of the backups, the newest first.
func (f folder) list() (names []string, err error) {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if indexName().MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(b, a) })
	return names, nil
}

// index reads a backup's index. The error wraps [state.ErrCorrupt] if its bytes are not those
// that its name says.
func (f folder) index(name string) (*Index, error) {
	b, err := os.ReadFile(filepath.Join(f.path, name))
	if err != nil {
		return nil, err
	}
	want := indexName().FindStringSubmatch(name)
	if sum := sha256.Sum256(b); want == nil || hex.EncodeToString(sum[:16]) != want[1] {
		return nil, fmt.Errorf("%w: the file %s does not have the hash in its name", state.ErrCorrupt, name)
	}
	x, err := readIndex(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	x.name = name
	return x, nil
}

// choose returns the backup whose name begins with prefix, or the newest.
func (f folder) choose(prefix string) (*Index, error) {
	names, err := f.list()
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefix) })
	switch {
	case len(names) == 0 && prefix == "":
		return nil, fmt.Errorf("%s has no backup: hamlet backup makes one", f.path)
	case len(names) == 0:
		return nil, fmt.Errorf("%s has no backup whose name begins with %q: hamlet verify lists those it has", f.path, prefix)
	case len(names) > 1 && prefix != "":
		return nil, fmt.Errorf("%s has %d backups whose names begin with %q: say more of the name",
			f.path, len(names), prefix)
	}
	return f.index(names[0])
}

// takenAfter returns the time of a backup that is taken now. It is after that of the newest of
// names, so that the newest backup has the greatest name even if a clock was wrong.
func takenAfter(names []string, now time.Time) time.Time {
	if len(names) == 0 {
		return now
	}
	text, _, _ := strings.Cut(names[0], "-")
	newest, err := time.Parse(nameTime, text)
	if err != nil || newest.Before(now.Truncate(time.Millisecond)) {
		return now
	}
	if after := newest.Add(time.Millisecond); after.After(now) {
		return after
	}
	return now
}

// prune deletes all backups but the newest keep, and then what no backup names. It never
// deletes just, the one that was just taken. Where an index cannot be read it deletes no
// chunk, because that backup may need it.
func (f folder) prune(keep int, just string) (gone int, err error) {
	names, err := f.list()
	if err != nil {
		return 0, err
	}
	if !slices.Contains(names, just) {
		return 0, fmt.Errorf("nothing is deleted: %s is not among the backups of %s", just, f.path)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == just })
	names = slices.Insert(names, 0, just)
	if keep > 0 && len(names) > keep {
		for _, name := range names[keep:] {
			if err := os.Remove(filepath.Join(f.path, name)); err != nil {
				return gone, err
			}
			gone++
		}
		names = names[:keep]
		if err := wholefile.SyncFolder(f.path); err != nil {
			return gone, err
		}
	}
	named := map[string]bool{}
	for _, name := range names {
		x, err := f.index(name)
		if err != nil {
			return gone, fmt.Errorf("no chunk is deleted: %w", err)
		}
		for v := range x.versions() {
			for _, chunk := range v.Chunks {
				named[chunk] = true
			}
		}
	}
	return gone, f.sweep(func(name string) error {
		if named[filepath.Base(name)] {
			return nil
		}
		return os.Remove(name)
	})
}

// sweep calls each with the paths of all chunks and of all unfinished files.
func (f folder) sweep(each func(path string) error) error {
	begun, err := fs.Glob(os.DirFS(f.path), unfinished+"*")
	if err != nil {
		return err
	}
	chunks, err := fs.Glob(os.DirFS(f.path), chunkFolder+"/*/*")
	if err != nil {
		return err
	}
	for _, path := range slices.Concat(begun, chunks) {
		if err := each(filepath.Join(f.path, path)); err != nil {
			return err
		}
	}
	return nil
}

// versions calls yield with all versions of a backup.
func (x *Index) versions() func(yield func(*Version) bool) {
	return func(yield func(*Version) bool) {
		for i := range x.Models {
			for j := range x.Models[i].Partitions {
				p := &x.Models[i].Partitions[j]
				for k := range p.Versions {
					if !yield(&p.Versions[k]) {
						return
					}
				}
			}
		}
	}
}
