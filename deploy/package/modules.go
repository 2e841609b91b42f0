package main

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
)

// modules returns what hamlet's programs were built of: the version of Go, hamlet's commit, and
// each module with its version and the hash that sum.golang.org has of it.
func (r *Release) modules() (text string, deps []*debug.Module, err error) {
	info, err := buildinfo.ReadFile(r.program(host, "hamlet"))
	if err != nil {
		return "", nil, err
	}
	commit := "unknown"
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			commit = s.Value
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s %s commit %s\n", info.GoVersion, info.Main.Path, r.Version, commit)
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		fmt.Fprintf(&b, "%s %s %s\n", m.Path, m.Version, m.Sum)
		deps = append(deps, m)
	}
	return b.String(), deps, nil
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|authors)([.-].*)?$`)

// copyright returns Debian's file of that name: whose the program is, and the licences of all
// modules that it holds. Files of equal text stand there once.
func (r *Release) copyright(ctx context.Context) (string, error) {
	_, deps, err := r.modules()
	if err != nil {
		return "", err
	}
	goroot, err := r.run(ctx, nil, "go", "env", "GOROOT")
	if err != nil {
		return "", err
	}
	folders := [][2]string{{"Go's standard library", strings.TrimSpace(goroot)}}
	args := []string{"list", "-m", "-json"}
	for _, m := range deps {
		args = append(args, m.Path)
	}
	list, err := r.run(ctx, nil, "go", args...)
	if err != nil {
		return "", err
	}
	for modules := json.NewDecoder(strings.NewReader(list)); ; {
		var m struct{ Path, Version, Dir string }
		if err := modules.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return "", fmt.Errorf("go list: %w", err)
		}
		folders = append(folders, [2]string{m.Path + " " + m.Version, m.Dir})
	}
	var order []string              // texts as they first come
	owners := map[string][]string{} // of each text
	for _, folder := range folders {
		names, err := os.ReadDir(folder[1])
		if err != nil {
			return "", fmt.Errorf("%s: %w", folder[0], err)
		}
		found := false
		for _, name := range names {
			if name.IsDir() || !licenceFile.MatchString(name.Name()) || strings.HasSuffix(name.Name(), ".go") {
				continue
			}
			text, err := os.ReadFile(filepath.Join(folder[1], name.Name()))
			if err != nil {
				return "", err
			}
			found = true
			if owners[string(text)] == nil {
				order = append(order, string(text))
			}
			owners[string(text)] = append(owners[string(text)], folder[0]+": "+name.Name())
		}
		if !found {
			return "", fmt.Errorf("%s has no licence", folder[0])
		}
	}
	var b strings.Builder
	b.WriteString(`hamlet is the work of its authors. They have not stated a licence for it yet.

The programs hold the modules below, whose licences follow. /usr/share/doc/hamlet/modules
lists them with their versions and hashes.
`)
	for _, text := range order {
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", strings.Repeat("-", 80), strings.Join(owners[text], "\n"),
			strings.TrimSpace(text))
	}
	return b.String(), nil
}

// checksums writes SHA256SUMS of the files that were built, as sha256sum reads it.
func checksums(paths []string, out string) (string, error) {
	slices.SortFunc(paths, func(a, b string) int { return strings.Compare(filepath.Base(a), filepath.Base(b)) })
	var b strings.Builder
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return "", err
		}
		sum := sha256.New()
		_, err = io.Copy(sum, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
		fmt.Fprintf(&b, "%x  %s\n", sum.Sum(nil), filepath.Base(path))
	}
	path := filepath.Join(out, "SHA256SUMS")
	return path, os.WriteFile(path, []byte(b.String()), 0o644)
}
