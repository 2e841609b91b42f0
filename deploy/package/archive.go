package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// writeArchive writes a .tar.gz for machines without dpkg: programs, manual pages and
// completions of a release, below one folder. It returns the path.
func writeArchive(r *Release, tree []File, arch, out string) (path string, err error) {
	folder := "hamlet_" + r.Version + "_linux_" + arch
	path = filepath.Join(out, folder+".tar.gz")
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	zip, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return "", err
	}
	w := tar.NewWriter(zip)
	for _, file := range tree {
		name, ok := strings.CutPrefix(file.Path, "/usr/")
		if !ok || strings.HasPrefix(name, "lib/") || strings.Contains(name, "/examples/") {
			continue
		}
		h := tar.Header{Name: folder + "/" + name, Mode: int64(file.Mode.Perm()), Format: tar.FormatPAX}
		var text []byte
		if file.Link != "" {
			h.Typeflag, h.Linkname = tar.TypeSymlink, file.Link
		} else if text, err = os.ReadFile(file.Source); err != nil {
			return "", err
		}
		if err := r.entry(w, h, text); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
	}
	return path, errors.Join(w.Close(), zip.Close())
}

// entry writes an entry of an archive: a file with its text, unless the header says what else.
func (r *Release) entry(w *tar.Writer, h tar.Header, text []byte) error {
	if h.Typeflag == 0 {
		h.Typeflag = tar.TypeReg
	}
	h.ModTime, h.Size = r.Time, int64(len(text))
	if err := w.WriteHeader(&h); err != nil {
		return err
	}
	_, err := w.Write(text)
	return err
}

// flit builds the Python package. Its files have the time of SOURCE_DATE_EPOCH.
const flit = "flit_core==3.12.0"

// writePython writes the wheel and the source archive of the Python package.
func writePython(ctx context.Context, r *Release, out string) ([]string, error) {
	tools := filepath.Join(r.work, "flit")
	if _, err := r.run(ctx, nil, "python3", "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
		"--root-user-action=ignore", "--target", tools, flit); err != nil {
		return nil, err
	}
	out, err := filepath.Abs(out)
	if err != nil {
		return nil, err
	}
	const build = "import os, sys; os.chdir('deploy/python'); from flit_core import buildapi as b; " +
		"print(b.build_wheel(sys.argv[1])); print(b.build_sdist(sys.argv[1]))"
	env := []string{"PYTHONPATH=" + tools, "PYTHONDONTWRITEBYTECODE=1",
		"SOURCE_DATE_EPOCH=" + strconv.FormatInt(r.Time.Unix(), 10)}
	names, err := r.run(ctx, env, "python3", "-c", build, out)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, name := range strings.Fields(names) {
		paths = append(paths, filepath.Join(out, name))
	}
	return paths, nil
}
