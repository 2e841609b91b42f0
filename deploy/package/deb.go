package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
)

const (
	summary     = "streaming Bayesian spam classifier that says how sure it is"
	description = summary + `
hamlet learns from labelled messages, one at a time. It answers with a
probability of spam, an interval around it, and reasons. It estimates how
often labels are wrong, and raises an alarm when labels or mail change.
.
The package has services for a single machine (hamlet.service) and for
servers of Kafka, NATS and Redis. None is started by the installation.`
	labDescription = `laboratory of hamlet, the Bayesian spam classifier
hamlet-lab compares hamlet with other filters on your own mail, runs each
of its algorithms on a few rows, computes the tables and figures of its
sources again, and breaks what hamlet runs on.`
)

// debVersion returns the version of the package. A tilde sorts before nothing, so 0.1.0~dev
// is older than 0.1.0. The time of the commit orders builds of one version.
func (r *Release) debVersion() string {
	number, pre, _ := strings.Cut(r.Version, "-")
	if pre == "" {
		return number
	}
	return number + "~" + pre + "." + r.Time.Format("20060102150405")
}

// writeDeb writes the Debian package hamlet of the files and returns its path.
func writeDeb(r *Release, tree []File, arch, out string) (path string, err error) {
	// A recipe of 0.1.0 goes on delivering mail. This goes with the release after the next.
	tree = append(slices.Clone(tree), File{Path: "/usr/bin/hamlet-filter", Source: r.script("hamlet-filter"), Mode: 0o755})
	return r.writeDebian("hamlet", description, nfpm.Overridables{
		Depends: []string{"systemd"}, Recommends: []string{"ca-certificates"}, Suggests: []string{"spamc"},
		Scripts: nfpm.Scripts{
			PostInstall: r.script("postinst"), PreRemove: r.script("prerm"), PostRemove: r.script("postrm"),
		},
	}, tree, arch, out)
}

// writeLabDeb writes the Debian package of the laboratory and returns its path.
func writeLabDeb(r *Release, arch, out string) (path string, err error) {
	tree := []File{{Path: "/usr/bin/" + laboratory, Source: r.program(arch, laboratory), Mode: 0o755}}
	return r.writeDebian(laboratory, labDescription, nfpm.Overridables{Recommends: []string{"hamlet"}}, tree, arch, out)
}

// writeDebian writes a Debian package and returns its path.
func (r *Release) writeDebian(name, description string, about nfpm.Overridables, tree []File,
	arch, out string) (path string, err error) {
	about.Deb.Compression = "zstd" // Debian 12 reads it
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: name, Arch: arch, Platform: "linux", Version: r.debVersion(), VersionSchema: "none",
		Section: "mail", Priority: "optional", Maintainer: "The authors of hamlet <hamlet@localhost>",
		Description: description, MTime: r.Time, DisableGlobbing: true, Overridables: about,
	})
	for _, f := range tree {
		content := &files.Content{
			Source: f.Source, Destination: f.Path,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: f.Mode, MTime: r.Time},
		}
		switch {
		case f.Config:
			content.Type = files.TypeConfig
		case f.Link != "":
			content.Type, content.Source = files.TypeSymlink, f.Link
		}
		info.Contents = append(info.Contents, content)
	}
	path = filepath.Join(out, name+"_"+info.Version+"_"+arch+".deb")
	w, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	return path, deb.Default.Package(info, w)
}

// script returns the path of a script that dpkg runs.
func (r *Release) script(name string) string {
	return filepath.Join(r.repository, "deploy/package/debian", name)
}
