package main

import (
	"errors"
	"os"
	"path/filepath"
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

// writeDeb writes a Debian package of the files and returns its path.
func writeDeb(r *Release, tree []File, arch, out string) (path string, err error) {
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "hamlet", Arch: arch, Platform: "linux", Version: r.debVersion(), VersionSchema: "none",
		Section: "mail", Priority: "optional", Maintainer: "The authors of hamlet <hamlet@localhost>",
		Description: description, MTime: r.Time, DisableGlobbing: true,
		Overridables: nfpm.Overridables{
			Depends: []string{"systemd"}, Recommends: []string{"ca-certificates"},
			// Debian 12 reads zstd.
			Deb: nfpm.Deb{Compression: "zstd"},
			Scripts: nfpm.Scripts{
				PostInstall: r.script("postinst"), PreRemove: r.script("prerm"), PostRemove: r.script("postrm"),
			},
		},
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
	path = filepath.Join(out, "hamlet_"+info.Version+"_"+arch+".deb")
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
