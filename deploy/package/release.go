package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// laboratory is a program of its own Debian package.
const laboratory = "hamlet-lab"

// links are further names of hamlet, under which it is a service.
var links = []string{"hamlet-ingest", "hamlet-learner", "hamlet-scorer"}

// configurations are the files of /etc/hamlet: the command that each is for, and the settings
// that a service needs beside those that an operator must make.
var configurations = map[string][]string{
	"hamlet.yaml":  {"hamlet", "up", "--http=127.0.0.1:9104", "--spamd=unix:/run/hamlet/spamd.sock"},
	"gateway.yaml": {"hamlet", "gateway", "--http=127.0.0.1:9104", "--spamd=unix:/run/hamlet/spamd.sock"},
	"console.yaml": {"hamlet", "console", "serve", "--users=/etc/hamlet/users.txt"},
	"learner.yaml": {"hamlet-learner"},
	"scorer.yaml":  {"hamlet-scorer"},
}

// unitFiles are the files of deploy/systemd and where they are installed. Units are below
// /usr/lib/systemd/system under their own names.
var unitFiles = map[string][]string{
	"service.conf": {"/usr/lib/systemd/system/hamlet.service.d/service.conf",
		"/usr/lib/systemd/system/hamlet-.service.d/service.conf"},
	"task.conf":     {"/usr/lib/systemd/system/hamlet-backup.service.d/task.conf"},
	"sysusers.conf": {"/usr/lib/sysusers.d/hamlet.conf"},
	"tmpfiles.conf": {"/usr/lib/tmpfiles.d/hamlet.conf"},
}

// examples are the folders of deploy that a package has as examples.
var examples = []string{"contracts", "dovecot", "examples", "grafana", "kafka", "mail", "nats", "prometheus",
	"redis", "rspamd"}

// A Release builds the files of one commit. It is for one goroutine.
type Release struct {
	Version string    // as the programs print it
	Commit  string    // as they print it: "unknown" outside a clone, "… with changes" where files differ
	Time    time.Time // of the commit; all files have it

	repository string
	work       string          // directory of what is built
	built      map[string]bool // architectures that have their programs in work
	documents  []File          // made once, by the programs of this machine
}

// A File is one of a release.
type File struct {
	Path   string // where it is installed
	Source string // where it is now; empty for a link
	Link   string // what a link names
	Mode   fs.FileMode
	Config bool // an upgrade leaves it alone where an operator has changed it
}

// versionLine is the first line of what hamlet --version prints.
var versionLine = regexp.MustCompile(`^hamlet (\S+) \(commit (.*)\)\n`)

// NewRelease returns a release of the sources in a repository.
func NewRelease(ctx context.Context, repository, work string) (*Release, error) {
	repository, err := filepath.Abs(repository)
	if err != nil {
		return nil, err
	}
	r := &Release{repository: repository, work: work, built: map[string]bool{}}
	epoch := os.Getenv("SOURCE_DATE_EPOCH")
	if epoch == "" {
		if epoch, err = r.run(ctx, nil, "git", "log", "-1", "--format=%ct"); err != nil {
			return nil, fmt.Errorf("the time of the commit: %w", err)
		}
	}
	seconds, err := strconv.ParseInt(strings.TrimSpace(epoch), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("the time of the commit: %w", err)
	}
	r.Time = time.Unix(seconds, 0).UTC()
	if err := r.build(ctx, host); err != nil {
		return nil, err
	}
	version, err := r.run(ctx, nil, r.program(host, "hamlet"), "--version")
	if err != nil {
		return nil, err
	}
	m := versionLine.FindStringSubmatch(version)
	if m == nil {
		return nil, fmt.Errorf("hamlet --version prints %q", version)
	}
	r.Version, r.Commit = m[1], m[2]
	return r, nil
}

// run runs a program in the repository and returns what it prints.
func (r *Release) run(ctx context.Context, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = r.repository
	cmd.Env = append(os.Environ(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, errs.String())
	}
	return out.String(), nil
}

// program returns the path of a program, or of a link to one.
func (r *Release) program(arch, name string) string { return filepath.Join(r.work, arch, name) }

// build makes the programs for an architecture.
func (r *Release) build(ctx context.Context, arch string) error {
	if !isArch(arch) {
		return fmt.Errorf("%s is not an architecture of a release", arch)
	}
	if r.built[arch] {
		return nil
	}
	// Without C the programs need no library of the machine that runs them.
	env := []string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=" + arch, "GOFLAGS=", "GOWORK=off"}
	if _, err := r.run(ctx, env, "go", "build", "-trimpath", "-buildvcs=auto", "-ldflags", "-s -w",
		"-o", filepath.Join(r.work, arch)+"/", "./cmd/hamlet", "./cmd/"+laboratory); err != nil {
		return err
	}
	for _, name := range links {
		if err := os.Symlink("hamlet", r.program(arch, name)); err != nil {
			return err
		}
	}
	r.built[arch] = true
	return nil
}

// Tree returns the files of a release for an architecture, in order of their paths.
func (r *Release) Tree(ctx context.Context, arch string) ([]File, error) {
	if err := r.build(ctx, arch); err != nil {
		return nil, err
	}
	if r.documents == nil {
		if err := r.document(ctx); err != nil {
			return nil, err
		}
	}
	files := append(slices.Clone(r.documents),
		File{Path: "/usr/bin/hamlet", Source: r.program(arch, "hamlet"), Mode: 0o755})
	for _, name := range links {
		files = append(files, File{Path: "/usr/bin/" + name, Link: "hamlet", Mode: 0o777})
	}
	units, err := filepath.Glob(filepath.Join(r.repository, "deploy/systemd/*"))
	if err != nil {
		return nil, err
	}
	for _, unit := range units {
		paths, ok := unitFiles[filepath.Base(unit)]
		if !ok {
			paths = []string{"/usr/lib/systemd/system/" + filepath.Base(unit)}
		}
		for _, path := range paths {
			files = append(files, File{Path: path, Source: unit, Mode: 0o644})
		}
	}
	for _, folder := range examples {
		deploy := os.DirFS(filepath.Join(r.repository, "deploy"))
		err := fs.WalkDir(deploy, folder, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			mode := fs.FileMode(0o644)
			if info.Mode()&0o100 != 0 {
				mode = 0o755
			}
			files = append(files, File{Path: "/usr/share/doc/hamlet/examples/" + path,
				Source: filepath.Join(r.repository, "deploy", path), Mode: mode})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files, nil
}

// document makes manual pages, completions and configuration files of the programs' help.
func (r *Release) document(ctx context.Context) error {
	for _, program := range append([]string{"hamlet"}, links...) {
		help := func(args ...string) ([]byte, error) {
			text, err := r.run(ctx, nil, r.program(host, program), args...)
			return []byte(text), err
		}
		commands, err := help("--help-as=commands")
		if err != nil {
			return err
		}
		for command := range strings.Lines(string(commands)) {
			words := strings.Fields(command)
			page, err := help(append(words, "--help-as=man")...)
			if err != nil {
				return err
			}
			name := strings.Join(append([]string{program}, words...), "-")
			if err := r.add("/usr/share/man/man1/"+name+".1.gz", zipped(page)); err != nil {
				return err
			}
		}
		for shell, path := range map[string]string{
			"bash": "/usr/share/bash-completion/completions/" + program,
			"zsh":  "/usr/share/zsh/vendor-completions/_" + program,
			"fish": "/usr/share/fish/vendor_completions.d/" + program + ".fish",
		} {
			script, err := help("--help-as=" + shell)
			if err != nil {
				return err
			}
			if err := r.add(path, script); err != nil {
				return err
			}
		}
	}
	for name, command := range configurations {
		text, err := r.run(ctx, nil, r.program(host, command[0]), append(slices.Clone(command[1:]), "--help-as=yaml")...)
		if err != nil {
			return err
		}
		if err := r.add("/etc/hamlet/"+name, []byte(text)); err != nil {
			return err
		}
	}
	return r.describe(ctx)
}

// describe makes the files of /usr/share/doc/hamlet.
func (r *Release) describe(ctx context.Context) error {
	list, _, err := r.modules()
	if err != nil {
		return err
	}
	copyright, err := r.copyright(ctx)
	if err != nil {
		return err
	}
	changes, err := os.ReadFile(filepath.Join(r.repository, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	const doc = "/usr/share/doc/hamlet/"
	for name, text := range map[string][]byte{
		"copyright":    []byte(copyright),
		"modules":      []byte(list),
		"changelog.gz": zipped(changes),
	} {
		if err := r.add(doc+name, text); err != nil {
			return err
		}
	}
	return r.pages()
}

// pages adds the pages for people, under their paths of the repository.
func (r *Release) pages() error {
	for _, pattern := range []string{"README.md", "deploy/*.md", "cmd/hamlet/README.md"} {
		paths, err := filepath.Glob(filepath.Join(r.repository, pattern))
		if err != nil {
			return err
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(r.repository, path)
			if err != nil {
				return err
			}
			if err := r.add("/usr/share/doc/hamlet/"+name, text); err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds a file that was made. Those of /etc belong to the operator.
func (r *Release) add(path string, text []byte) error {
	source := filepath.Join(r.work, "documents", path)
	if err := os.MkdirAll(filepath.Dir(source), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(source, text, 0o644); err != nil {
		return err
	}
	config := strings.HasPrefix(path, "/etc/")
	r.documents = append(r.documents, File{Path: path, Source: source, Mode: 0o644, Config: config})
	return nil
}

// zipped returns a text as gzip -9n writes it: without name and time.
func zipped(text []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is one
	_, _ = w.Write(text)                                  // a buffer takes all
	_ = w.Close()
	return b.Bytes()
}
