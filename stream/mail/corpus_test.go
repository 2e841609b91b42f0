package mail

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// A sample is one message of the SpamAssassin corpus.
type sample struct {
	name string
	raw  []byte
}

var readCorpus = sync.OnceValues(func() ([]sample, error) {
	path, err := corpusPath()
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	var samples []sample
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return samples, nil
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		raw, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		samples = append(samples, sample{h.Name, raw})
	}
})

// corpusPath finds the corpus beside the module's root.
func corpusPath() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no go.mod above the test")
		}
	}
	return filepath.Join(dir, "..", "shared", "data", "spamassassin", "spamassassin.tar.gz"), nil
}

// corpus returns the 6,046 messages of SpamAssassin.
func corpus(t testing.TB) []sample {
	t.Helper()
	samples, err := readCorpus()
	if errors.Is(err, os.ErrNotExist) {
		t.Skipf("the data set is not here; put the shared data folder beside the checkout: %v", err)
	}
	if err != nil {
		t.Fatalf("read the corpus: %v", err)
	}
	return samples
}
