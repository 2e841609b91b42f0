package models

import (
	"archive/tar"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/sequencer"
	"hamlet/state"
)

// A file of `hamlet model export` is a tar archive with two entries a partition, ascending:
//
//	0/manifest   a state.Manifest: position in the log, configuration, hashes
//	0/model      the model's bytes, as `hamlet eval --save` writes them
//
// Equal checkpoints make equal files.

// schema is the version of the layout of a model's bytes that learners write.
const schema = 1

// writeArchive writes checkpoints as a tar archive.
func writeArchive(w io.Writer, all []loaded) error {
	archive := tar.NewWriter(w)
	for i := range all {
		manifest, _ := state.Split(all[i].Checkpoint)
		b, err := manifest.AppendBinary(nil)
		if err != nil {
			return err
		}
		for _, entry := range []struct {
			name string
			data []byte
		}{{"manifest", b}, {"model", all[i].Model}} {
			h := &tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprintf("%d/%s", all[i].partition, entry.name),
				Mode: 0o600, Size: int64(len(entry.data)), ModTime: manifest.Saved.Truncate(time.Second)}
			if err := archive.WriteHeader(h); err != nil {
				return err
			}
			if _, err := archive.Write(entry.data); err != nil {
				return err
			}
		}
	}
	return archive.Close()
}

// writeFile writes a new file as a whole, or leaves the former one as it is. Only its owner
// may read it: a model is a statistic of mail.
func writeFile(path string, all []loaded) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if err := errors.Join(writeArchive(f, all), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// isArchive reports whether b begins a tar archive.
func isArchive(b []byte) bool { return len(b) >= 512 && string(b[257:262]) == "ustar" }

// readFile reads a file of either kind and verifies every hash.
func readFile(path string) ([]loaded, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if isArchive(b) {
		all, err := readArchive(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return all, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	m, err := model.Restore(b)
	if err != nil {
		return nil, fmt.Errorf("%s is neither a file of hamlet model export nor one of hamlet eval --save: %w", path, err)
	}
	return []loaded{{Checkpoint: &state.Checkpoint{
		Schema: schema, Numerics: m.Numerics(), Config: m.Config().JSON(), Events: m.Events(), Model: b, Saved: info.ModTime().UTC(),
	}}}, nil
}

// readArchive reads what writeArchive wrote. It believes no length.
func readArchive(b []byte) ([]loaded, error) {
	type entries struct{ manifest, model []byte }
	parts := map[int]*entries{}
	archive := tar.NewReader(bytes.NewReader(b))
	for {
		h, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%w: read the archive: %w", state.ErrCorrupt, err)
		}
		number, name, _ := strings.Cut(h.Name, "/")
		partition, err := strconv.ParseInt(number, 10, 32)
		if err != nil || partition < 0 || h.Typeflag != tar.TypeReg || h.Size > int64(len(b)) {
			return nil, fmt.Errorf("%w: the entry %q is none of hamlet model export", state.ErrCorrupt, h.Name)
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			return nil, fmt.Errorf("%w: read %s: %w", state.ErrCorrupt, h.Name, err)
		}
		p := parts[int(partition)]
		if p == nil {
			p = &entries{}
			parts[int(partition)] = p
		}
		switch {
		case name == "manifest" && p.manifest == nil:
			p.manifest = data
		case name == "model" && p.model == nil:
			p.model = data
		default:
			return nil, fmt.Errorf("%w: the entry %q is none of hamlet model export, or there twice", state.ErrCorrupt, h.Name)
		}
	}
	var all []loaded
	for partition, p := range parts {
		if p.manifest == nil || p.model == nil {
			return nil, fmt.Errorf("%w: partition %d lacks its manifest or its model", state.ErrCorrupt, partition)
		}
		var m state.Manifest
		if err := m.UnmarshalBinary(p.manifest); err != nil {
			return nil, fmt.Errorf("partition %d: %w", partition, err)
		}
		c, err := state.Join(&m, slices.Collect(slices.Chunk(p.model, state.ChunkSize)))
		if err != nil {
			return nil, fmt.Errorf("partition %d: %w", partition, err)
		}
		offsets, err := sequencer.OffsetsIn(c.Order)
		if err != nil {
			return nil, fmt.Errorf("partition %d: %w: %w", partition, state.ErrCorrupt, err)
		}
		all = append(all, loaded{partition: partition, Checkpoint: c, offsets: offsets})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: the archive has no model", state.ErrCorrupt)
	}
	slices.SortFunc(all, func(a, b loaded) int { return cmp.Compare(a.partition, b.partition) })
	return all, nil
}
