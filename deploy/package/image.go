package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// imageUser runs the programs of the image. It is nobody on the machine below.
const imageUser = 65532

// imageFolders are the folders of the image that the user may write. All else is root's.
var imageFolders = []struct {
	path string
	mode fs.FileMode
}{{"run/hamlet", 0o750}, {"tmp", 0o777}, {"var/lib/hamlet", 0o700}}

const (
	imagePasswd = "root:x:0:0:root:/:/sbin/nologin\nhamlet:x:65532:65532:hamlet:/var/lib/hamlet:/sbin/nologin\n"
	imageGroup  = "root:x:0:\nhamlet:x:65532:\n"
)

// newImage returns the image of an architecture. It has the programs, a user and nothing
// else: no shell, no libraries, no certificates of authorities.
func newImage(r *Release, tree []File, arch string) (v1.Image, error) {
	text, err := imageLayer(r, tree)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer),
		tarball.WithCompressionLevel(gzip.DefaultCompression), tarball.WithCompressedCaching)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{
		Created: v1.Time{Time: r.Time}, CreatedBy: "deploy/package", Comment: "the programs of hamlet",
	}}); err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.Architecture, config.OS, config.Created = arch, "linux", v1.Time{Time: r.Time}
	config.Config = v1.Config{
		User:       fmt.Sprintf("%d:%[1]d", imageUser),
		Entrypoint: []string{"/usr/bin/hamlet"},
		Env:        []string{"PATH=/usr/bin", "XDG_RUNTIME_DIR=/run/hamlet"},
		WorkingDir: "/",
		StopSignal: "SIGTERM",
		Labels: map[string]string{
			"org.opencontainers.image.title":       "hamlet",
			"org.opencontainers.image.description": summary,
			"org.opencontainers.image.version":     r.Version,
			"org.opencontainers.image.created":     r.Time.Format("2006-01-02T15:04:05Z"),
		},
	}
	return mutate.ConfigFile(image, config)
}

// imageLayer returns the files of the image as a tar archive.
func imageLayer(r *Release, tree []File) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	made := map[string]bool{".": true}
	folder := func(path string, mode fs.FileMode, owner int) error {
		made[path] = true
		h := tar.Header{Typeflag: tar.TypeDir, Name: path + "/", Mode: int64(mode), Uid: owner, Gid: owner}
		return r.entry(w, h, nil)
	}
	// above makes the folders above a path that are not there.
	above := func(path string) error {
		var missing []string
		for dir := filepath.Dir(path); !made[dir]; dir = filepath.Dir(dir) {
			missing = append(missing, dir)
		}
		slices.Reverse(missing)
		for _, dir := range missing {
			if err := folder(dir, 0o755, 0); err != nil {
				return err
			}
		}
		return nil
	}
	file := func(path string, mode fs.FileMode, text []byte) error {
		if err := above(path); err != nil {
			return err
		}
		return r.entry(w, tar.Header{Name: path, Mode: int64(mode)}, text)
	}
	for _, f := range imageFolders {
		if err := errors.Join(above(f.path), folder(f.path, f.mode, imageUser)); err != nil {
			return nil, err
		}
	}
	passwd, group := file("etc/passwd", 0o644, []byte(imagePasswd)), file("etc/group", 0o644, []byte(imageGroup))
	if err := errors.Join(passwd, group); err != nil {
		return nil, err
	}
	documents := []string{"usr/share/doc/hamlet/modules", "usr/share/doc/hamlet/copyright"}
	for _, f := range tree {
		path := strings.TrimPrefix(f.Path, "/")
		switch {
		case !slices.Contains(documents, path) && !strings.HasPrefix(path, "usr/bin/"):
		case f.Link != "":
			h := tar.Header{Typeflag: tar.TypeSymlink, Name: path, Linkname: f.Link, Mode: 0o777}
			if err := errors.Join(above(path), r.entry(w, h, nil)); err != nil {
				return nil, err
			}
		default:
			text, err := os.ReadFile(f.Source)
			if err != nil {
				return nil, err
			}
			if err := file(path, f.Mode, text); err != nil {
				return nil, err
			}
		}
	}
	return b.Bytes(), w.Close()
}

// newIndex returns the images of several architectures as one.
func newIndex(ctx context.Context, r *Release, archs []string) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range archs {
		tree, err := r.Tree(ctx, arch)
		if err != nil {
			return nil, err
		}
		image, err := newImage(r, tree, arch)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: "linux", Architecture: arch},
		}})
	}
	return index, nil
}

// writeImage writes the index in the layout of OCI, packed by tar, and returns its path.
// `podman load`, `skopeo copy oci-archive:…` and `ctr images import` read it.
func writeImage(ctx context.Context, r *Release, archs []string, out string) (path string, err error) {
	index, err := newIndex(ctx, r, archs)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(r.work, "image")
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	name := map[string]string{"org.opencontainers.image.ref.name": "hamlet:" + r.Version}
	whole := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex),
		mutate.IndexAddendum{Add: index, Descriptor: v1.Descriptor{Annotations: name}})
	if _, err := layout.Write(dir, whole); err != nil {
		return "", err
	}
	path = filepath.Join(out, "hamlet_"+r.debVersion()+".oci.tar")
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := tar.NewWriter(f)
	err = filepath.WalkDir(dir, func(at string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(at)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, at)
		if err != nil {
			return err
		}
		return r.entry(w, tar.Header{Name: name, Mode: 0o644}, text)
	})
	if err := errors.Join(err, w.Close()); err != nil {
		return "", err
	}
	digest, err := index.Digest()
	if err != nil {
		return "", err
	}
	fmt.Println("hamlet:"+r.Version, digest)
	return path, nil
}
