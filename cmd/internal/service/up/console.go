package up

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"hamlet/cmd/internal/operate/console"
	"hamlet/cmd/internal/process/credentials"
	"hamlet/cmd/internal/process/wholefile"
	"hamlet/cmd/internal/service/parts"
	"hamlet/cmd/internal/show/progress"
	"hamlet/cmd/internal/web/access"
	"hamlet/cmd/internal/web/page"
)

// console opens the web console, or returns nil without --console.
func (c *Command) console(ctx context.Context, s *parts.Set, cfg console.Config, w io.Writer) (*console.Served, error) {
	if c.Console == "" {
		return nil, nil
	}
	url := ""
	var link *consoleLink
	guarding := access.Config{Addr: c.Console, Style: page.StyleURL(), Log: cfg.Log}
	if c.ConsoleUsers != "" {
		users, err := access.OpenUsers(c.ConsoleUsers)
		if err != nil {
			return nil, err
		}
		guarding.Users = users
	} else {
		guarding.Links = true
		guarding.LinkUser = access.User{Name: "up", Role: access.Look | access.Label | access.Operate}
		var err error
		if link, err = newConsoleLink(w, c.Data); err != nil {
			return nil, err
		}
		s.OnClose(link.remove)
		guarding.Print = func(path string) {
			if err := link.show(url, path); err != nil {
				cfg.Log.Error("nobody can log in", "error", err)
			}
		}
	}
	guard, err := access.New(guarding)
	if err != nil {
		return nil, err
	}
	cfg.Guard = guard
	served, err := console.Listen(ctx, console.Listener{Addr: c.Console, Flag: "--console", Services: s, Log: cfg.Log},
		cfg)
	if err != nil {
		return nil, err
	}
	url = served.URL()
	if link == nil {
		fmt.Fprintf(w, "  console %s\n", url)
		return served, nil
	}
	return served, link.show(url, guard.NewLink(guarding.LinkUser))
}

// A consoleLink shows the link that logs in to the console. Who reads it is in: it goes to a
// terminal, or else into a file of the user, since others may read the journal of a service.
type consoleLink struct {
	w    io.Writer
	path string // of the file; empty: w is a terminal
}

// newConsoleLink returns where links are shown. dir is the data directory; without one a file is
// in the user's runtime folder.
func newConsoleLink(w io.Writer, dir string) (*consoleLink, error) {
	if progress.IsTerminal(w) {
		return &consoleLink{w: w}, nil
	}
	name := "console-link"
	if dir == "" {
		folder, err := credentials.Folder()
		if err != nil {
			return nil, err
		}
		dir, name = folder, fmt.Sprintf("%d-%s", os.Getpid(), name)
	}
	return &consoleLink{w: w, path: filepath.Join(dir, name)}, nil
}

// show shows the link at url+path.
func (l *consoleLink) show(url, path string) error {
	const once = "once, within 15 minutes"
	if l.path == "" {
		fmt.Fprintf(l.w, "  console %s%s\n          that link logs you in, %s\n", url, path, once)
		return nil
	}
	err := wholefile.Write(l.path, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, url+path)
		return err
	})
	if err != nil {
		return fmt.Errorf("the link to the console: %w", err)
	}
	fmt.Fprintf(l.w, "  console %s\n          the link in %s logs you in, %s\n", url, l.path, once)
	return nil
}

// remove removes the file.
func (l *consoleLink) remove() {
	if l.path != "" {
		_ = os.Remove(l.path)
	}
}
