package main

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// indexOf builds the image of this machine's architecture.
func indexOf(t *testing.T) (v1.ImageIndex, v1.Image) {
	t.Helper()
	index, err := newIndex(t.Context(), release, []string{host})
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return index, image
}

// The image is what OCI says an image is, has the same digest twice, is small, and its user
// is not root.
func TestImage(t *testing.T) {
	index, image := indexOf(t)
	first, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	again, _ := indexOf(t)
	if second, err := again.Digest(); err != nil || second != first {
		t.Errorf("the digest is %s, and at the second time %s (%v)", first, second, err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" || config.Architecture != host || !config.Created.Time.Equal(release.Time) {
		t.Errorf("user %q, architecture %s, made %v", config.Config.User, config.Architecture, config.Created)
	}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	size := int64(0)
	for _, l := range layers {
		n, err := l.Size()
		if err != nil {
			t.Fatal(err)
		}
		size += n
	}
	const limit = 30e6
	if size > limit {
		t.Errorf("the image has %d bytes, more than %.0f", size, limit)
	}
	t.Logf("%s: %.1f MB", first, float64(size)/1e6)

	path, err := writeImage(t.Context(), release, []string{host}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	command(t, "tar", "xf", path, "-C", dir)
	written, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(written); err != nil {
		t.Errorf("the archive: %v", err)
	}
	if manifest, err := written.IndexManifest(); err != nil || len(manifest.Manifests) != 1 || manifest.Manifests[0].Digest != first {
		t.Errorf("the archive has %+v (%v), want %s", manifest, err, first)
	}
}

// In a root that has the image's layers and nothing else, its program runs as its user.
func TestImageRuns(t *testing.T) {
	_, image := indexOf(t)
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	m := newMachine(t)
	m.root = t.TempDir()
	if err := os.Chmod(m.root, 0o755); err != nil {
		t.Fatal(err)
	}
	m.unpack(image)
	for _, name := range append([]string{"hamlet"}, links...) {
		if out, err := m.command(config.Config.Env, "/usr/bin/"+name, "--version").CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
	web := port(t)
	args := append(config.Config.Entrypoint, "up", "--http", web, "--data", "/var/lib/hamlet", "--listen-nats", port(t), "--table-bits", "12", "--save-every", "100ms")
	cmd := m.command(append(config.Config.Env, "HAMLET_TOKEN=secret"), args...)
	output, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	labelled := false
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		var a answer
		var err error
		if labelled {
			a, err = ask(t, "http://"+web+"/v1/score", "text/plain", "secret", "win a prize")
		} else {
			_, err = ask(t, "http://"+web+"/v1/events", "application/json", "secret", `{"id":"1","source":"desk","label":"spam","text":"win a prize"}`)
			labelled = err == nil
		}
		if a.P > 0 {
			break
		}
		if time.Now().After(end) {
			text, _ := os.ReadFile(output.Name())
			t.Fatalf("no score: %v\n%s", err, text)
		}
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		t.Error("it does not end")
	}
}

// unpack puts the files of an image into the root.
func (m *machine) unpack(image v1.Image) {
	t := m.t
	t.Helper()
	text := mutate.Extract(image)
	defer text.Close()
	r := tar.NewReader(text)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(m.root, h.Name)
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(path, 0o755)
		case tar.TypeSymlink:
			if err = os.Symlink(h.Linkname, path); err == nil {
				continue
			}
		default:
			if h.Mode&0o022 != 0 || h.Uid != 0 || strings.Contains(h.Name, "..") {
				t.Errorf("%s: owner %d, mode %o", h.Name, h.Uid, h.Mode)
			}
			var b []byte
			if b, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(path, b, 0o600)
			}
		}
		if err := errors.Join(err, os.Lchown(path, h.Uid, h.Gid), os.Chmod(path, os.FileMode(h.Mode))); err != nil {
			t.Fatal(err)
		}
	}
}
