package model

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"sync"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/process/wholefile"
	"hamlet/state"
)

// A file of `hamlet backup --model M FILE` is a tar archive with two entries:
//
//	0/manifest   a state.Manifest: position in the log, configuration, hashes
//	0/model      the model's bytes, as `hamlet eval --save` writes them
//
// Equal checkpoints make equal files. `hamlet model export` of hamlet 0.1.0 wrote the same. A file of
// its may have entries of other numbers: those of partitions. It is refused.

// schema is the version of the layout of a model's bytes that learners write.
const schema = 1

const manifestEntry, modelEntry = "0/manifest", "0/model"

// ofPartitions matches the entries of a file of hamlet 0.1.0 that has models of partitions.
var ofPartitions = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[1-9][0-9]*/`)
})

func writeArchive(w io.Writer, c *state.Checkpoint) error {
	archive := tar.NewWriter(w)
	manifest, _ := state.Split(c)
	b, err := manifest.AppendBinary(nil)
	if err != nil {
		return err
	}
	for _, entry := range []struct {
		name string
		data []byte
	}{{manifestEntry, b}, {modelEntry, c.Model}} {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: entry.name, Mode: 0o600, Size: int64(len(entry.data)),
			ModTime: manifest.Saved.Truncate(time.Second)}
		if err := archive.WriteHeader(h); err != nil {
			return err
		}
		if _, err := archive.Write(entry.data); err != nil {
			return err
		}
	}
	return archive.Close()
}

// WriteFile writes a checkpoint to a file. Only its owner may read it: a model is a statistic of mail.
func WriteFile(path string, c *state.Checkpoint) error {
	return wholefile.Write(path, func(w io.Writer) error { return writeArchive(w, c) })
}

func isArchive(b []byte) bool { return len(b) >= 512 && string(b[257:262]) == "ustar" }

// ReadFile reads a file of [WriteFile], or one of `hamlet eval --save`, which has no position. It
// verifies every hash.
func ReadFile(path string) (*state.Checkpoint, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if isArchive(b) {
		c, err := readArchive(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return c, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	m, err := model.Restore(b)
	if err != nil {
		return nil, fmt.Errorf("%s is neither a model's file of hamlet backup nor one of hamlet eval --save: %w", path, err)
	}
	return &state.Checkpoint{
		Schema: schema, Numerics: m.Numerics(), Config: m.Config().JSON(), Events: m.Events(), Model: b,
		Saved:       info.ModTime().UTC(),
		ModelSHA256: sha256.Sum256(b),
	}, nil
}

// readArchive reads what writeArchive wrote. It believes no length.
func readArchive(b []byte) (*state.Checkpoint, error) {
	entries := map[string][]byte{}
	archive := tar.NewReader(bytes.NewReader(b))
	for {
		h, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%w: read the archive: %w", state.ErrCorrupt, err)
		}
		if ofPartitions().MatchString(h.Name) {
			return nil, fmt.Errorf("its entry %s: %w: learn the log again, made with \"hamlet log merge\"",
				h.Name, state.ErrPartitions)
		}
		if h.Name != manifestEntry && h.Name != modelEntry || entries[h.Name] != nil || h.Typeflag != tar.TypeReg ||
			h.Size > int64(len(b)) {
			return nil, fmt.Errorf("%w: the entry %q does not belong in a model's file, or is there twice",
				state.ErrCorrupt, h.Name)
		}
		if entries[h.Name], err = io.ReadAll(archive); err != nil {
			return nil, fmt.Errorf("%w: read %s: %w", state.ErrCorrupt, h.Name, err)
		}
	}
	manifest, body := entries[manifestEntry], entries[modelEntry]
	if manifest == nil || body == nil {
		return nil, fmt.Errorf("%w: the archive lacks its manifest or its model", state.ErrCorrupt)
	}
	var m state.Manifest
	if err := m.UnmarshalBinary(manifest); err != nil {
		return nil, err
	}
	return state.Join(&m, slices.Collect(slices.Chunk(body, state.ChunkSize)))
}
