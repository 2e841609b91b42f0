package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"hamlet/cmd/internal/operate/model"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/machine"
	"hamlet/cmd/internal/show/progress"
)

// A Verify is `hamlet verify`, for kong to fill.
type Verify struct {
	Folder string `arg:"" name:"dir" help:"A directory of hamlet backup, or a model's file."`
	Backup string `help:"Only this backup; the beginning of its name is enough." placeholder:"NAME"`
	JSON   bool   `name:"json" help:"Print one JSON object."`
}

// Help is what kong prints below the flags.
func (Verify) Help() string {
	return `Examples:

  hamlet verify /backup                       all backups of the directory
  hamlet verify /backup --backup 20261123T20
  hamlet verify spam.tar                      of backup, or of eval --save
  hamlet verify /backup --json | jq '.backups[].models[] | select(.error)'

Every checksum is compared. Each model is decoded, and encoded again to the same bytes.
A model of other numerics than this program's is whole, but only a hamlet of its
numerics restores it: the backup says which one took it.

It reads the directory alone, no server. The exit status is 1 if one model is not whole.
Files that no backup names are left by an interrupted one: the next backup deletes them.`
}

// A Verified is what `hamlet verify --json` prints.
type Verified struct {
	Backups []VerifiedBackup `json:"backups"` // the newest first
	Unnamed int              `json:"unnamed"` // files that no backup names
}

// A VerifiedBackup says how one backup is.
type VerifiedBackup struct {
	Backup  string            `json:"backup"`
	Taken   time.Time         `json:"taken,omitzero"`
	Program string            `json:"program,omitempty"`
	Whole   bool              `json:"whole"`
	Error   string            `json:"error,omitempty"` // of the index itself
	Models  []VerifiedVersion `json:"models"`
}

// A VerifiedVersion says how one version is.
type VerifiedVersion struct {
	Model     string `json:"model"`
	Partition int    `json:"partition"`
	Version
	Whole      bool   `json:"whole"`
	Restorable bool   `json:"restorable"`      // by this program
	Error      string `json:"error,omitempty"` // why it is not whole, or why not restorable
}

// Run verifies.
func (c *Verify) Run(ctx context.Context, stdio cli.IO) error {
	if isFile(c.Folder) {
		return c.file(stdio)
	}
	unlock, err := machine.ShareLock(c.Folder) // a backup deletes nothing meanwhile
	if err != nil {
		return err
	}
	defer func() { _ = unlock() }()
	from := folder{c.Folder}
	names, err := from.list()
	if err != nil {
		return err
	}
	if c.Backup != "" || len(names) == 0 {
		x, err := from.choose(c.Backup)
		if err != nil {
			return err
		}
		names = []string{x.name}
	}
	line := progress.NewLine(stdio.Err)
	defer line.Clear()
	all := Verified{Backups: []VerifiedBackup{}}
	known := map[string]VerifiedVersion{} // by what a version depends on
	named := map[string]bool{}
	bad := 0
	for _, name := range names {
		b := VerifiedBackup{Backup: name, Whole: true, Models: []VerifiedVersion{}}
		x, err := from.index(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted meanwhile, from a directory that is not locked
		}
		if err != nil {
			b.Whole, b.Error = false, err.Error()
			bad++
			all.Backups = append(all.Backups, b)
			continue
		}
		b.Taken, b.Program = x.Taken, x.Program
		for _, m := range x.Models {
			_, refused := m.only()
			for _, p := range m.Partitions {
				for i := range p.Versions {
					if err := ctx.Err(); err != nil {
						return err
					}
					line.Draw(fmt.Sprintf("reading %s, version %d", m.Name, p.Versions[i].Version))
					v := verified(from, &p.Versions[i], refused, known)
					v.Model, v.Partition, v.Version = m.Name, p.Partition, p.Versions[i]
					if !v.Whole {
						b.Whole = false
						bad++
					}
					b.Models = append(b.Models, v)
					for _, chunk := range v.Chunks {
						named[chunk] = true
					}
				}
			}
		}
		all.Backups = append(all.Backups, b)
	}
	if c.Backup == "" && bad == 0 {
		err := from.sweep(func(path string) error {
			if !named[filepath.Base(path)] {
				all.Unnamed++
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	line.Clear()
	if err := c.print(&all, stdio.Out); err != nil {
		return err
	}
	if bad > 0 {
		return fmt.Errorf("%d models or indexes of %s are not whole", bad, c.Folder)
	}
	return nil
}

// verified reads a version. One of the same bytes is not read again. Of a refused one the chunks
// alone are compared.
func verified(from folder, v *Version, refused error, known map[string]VerifiedVersion) VerifiedVersion {
	if refused != nil && from.has(v) {
		return VerifiedVersion{Whole: true, Error: refused.Error()}
	} else if refused != nil {
		return VerifiedVersion{Error: "a chunk of it is missing or damaged"}
	}
	key := v.Numerics + " " + v.SHA256
	result, ok := known[key]
	if !ok {
		c, err := from.checkpoint(v)
		result.Whole = err == nil
		if err == nil {
			err = model.Fits(c)
			result.Restorable = err == nil
			result.Whole = err == nil || errors.Is(err, model.ErrOther)
		}
		if err != nil {
			result.Error = err.Error()
		}
		known[key] = result
	}
	return result
}

func (c *Verify) print(all *Verified, w io.Writer) error {
	if c.JSON {
		return cli.PrintJSON(w, all)
	}
	var b strings.Builder
	for _, x := range all.Backups {
		if x.Error != "" {
			fmt.Fprintf(&b, "%s: %s\n", x.Backup, x.Error)
			continue
		}
		fmt.Fprintf(&b, "%s, by %s\n", x.Backup, x.Program)
		for i := range x.Models {
			v := &x.Models[i]
			how := "whole"
			switch {
			case !v.Whole:
				how = "NOT WHOLE: " + v.Error
			case !v.Restorable:
				how = "whole, and not for this program: " + v.Error
			}
			fmt.Fprintf(&b, "  %s, %s: %s\n", v.Model, v.line(), how)
		}
	}
	if all.Unnamed > 0 {
		fmt.Fprintf(&b, "%d files are named by no backup: the next hamlet backup deletes them\n", all.Unnamed)
	}
	return cli.Print(w, b.String())
}
