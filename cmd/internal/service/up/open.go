package up

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"hamlet/cmd/internal/process/credentials"
	"hamlet/cmd/internal/service/machine"
	"hamlet/cmd/internal/service/parts"
	"hamlet/cmd/internal/service/settings"
	"hamlet/stream/embedded"
	"hamlet/stream/nats"
)

// openPatience is how long up waits for who has its folder: a command, or an up that is about to end.
const openPatience = 3 * time.Second

// open opens what no flag names, for s to close, and says where it is. It returns the folder of the log and the
// models; nil: both are elsewhere.
func (c *Command) open(ctx context.Context, s *parts.Set, w io.Writer) (*machine.Dir, error) {
	ownFiles, ownNATS := len(c.Kafka.Kafka) == 0 || c.Redis.Redis == "", c.NATS.NATS == ""
	if !ownFiles && !ownNATS {
		return nil, nil
	}
	path, where := c.Data, "in "+c.Data
	if path == "" {
		temporary, remove, err := machine.Temporary()
		if err != nil {
			return nil, err
		}
		s.OnClose(remove)
		path, where = temporary, "in a temporary folder: all is gone when it ends; --data DIR keeps it"
	}
	dir, err := c.openFolder(ctx, s, path)
	if err != nil {
		return nil, err
	}
	s.Closes(dir)
	access := credentials.Access{PID: os.Getpid()}
	said := ""
	if ownFiles {
		access.Data = dir.Path()
		serve(s, dir)
		said += "  log    " + filepath.Join(dir.Path(), "logs") + "\n"
	}
	if ownNATS {
		url, err := c.startNATS(s, dir.Path(), &access)
		if err != nil {
			return nil, err
		}
		said += "  nats   " + url + "\n"
	}
	switch err := announce(s, access); {
	case c.Open:
		s.Log.Warn("because of --open everybody who reaches NATS can read the mail that is asked about, and answer requests")
		said += "  open   to everybody on this machine, because of --open\n"
	case err != nil:
		s.Log.Warn("other programs do not find the folder and the passwords", "error", err)
	case ownNATS:
		said += "  for other programs: eval \"$(hamlet env)\" sets address and password\n"
	}
	fmt.Fprintf(w, "on this machine, %s\n%s", where, said)
	if !ownFiles {
		return nil, nil
	}
	return dir, nil
}

// openFolder opens the folder at path. It waits a while for who has it.
func (c *Command) openFolder(ctx context.Context, s *parts.Set, path string) (*machine.Dir, error) {
	cfg := machine.Config{
		Keep: c.KeepVersions, Daily: cmp.Or(c.KeepDaily, new(7)), Log: s.Log, Database: c.RedisDB, Patience: openPatience,
	}
	if c.Generate != nil && *c.Generate == 0 { // a stream without end must not fill the disk
		cfg.MaxBytes = endlessBytes
	}
	defer s.WaitFor(ctx, "the conversion of "+path)() // of 0.1.0; else it is short
	return machine.Open(ctx, path, cfg)
}

// serve lets other programs of this user use the directory until s is closed.
func serve(s *parts.Set, dir *machine.Dir) {
	ctx, stop := context.WithCancel(context.Background())
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := dir.Serve(ctx); err != nil {
			s.Log.Error("operators' commands cannot reach this program", "error", err)
		}
		return nil
	})
	s.OnClose(func() {
		stop()
		_ = g.Wait()
	})
}

// startNATS starts a NATS in this process, and puts its address into the flags.
func (c *Command) startNATS(s *parts.Set, path string, access *credentials.Access) (url string, err error) {
	var passwords credentials.Passwords
	switch {
	case c.Open:
	case c.Data == "":
		passwords = credentials.New()
	default:
		if passwords, err = credentials.InDir(c.Data); err != nil {
			return "", err
		}
	}
	n, err := embedded.StartNATS(embedded.NATSOptions{
		Dir: filepath.Join(path, "nats"), Addr: c.natsAddr(), Log: s.Log, Users: natsUsers(passwords),
	})
	if err != nil {
		return "", err
	}
	s.Closes(n)
	c.NATS = settings.EmbeddedNATS(n.URL(), passwords.NATS)
	c.NATS.InProcess = n // no TCP for ourselves, and no file
	at := strings.TrimPrefix(n.URL(), "nats://")
	access.NATS = credentials.Login{Addr: at, User: credentials.ServiceUser, Password: passwords.NATS}
	access.Asker = credentials.Login{Addr: at, User: credentials.AskerUser, Password: passwords.Asker}
	if c.Open {
		access.NATS, access.Asker = credentials.Login{}, credentials.Login{}
	}
	return n.URL(), nil
}

// natsUsers returns the users of the NATS in this process: a service may do everything, an
// asker may not answer. Without passwords there are none.
func natsUsers(p credentials.Passwords) []embedded.NATSUser {
	if p.NATS == "" {
		return nil
	}
	publish, subscribe := nats.AskerSubjects()
	return []embedded.NATSUser{
		{Name: credentials.ServiceUser, Password: p.NATS},
		{Name: credentials.AskerUser, Password: p.Asker, Publish: publish, Subscribe: subscribe},
	}
}

// announce lets the user's other programs find the folder and the servers until s is closed.
func announce(s *parts.Set, access credentials.Access) error {
	a, err := credentials.Announce()
	if err != nil {
		return err
	}
	s.OnClose(func() { _ = a.Close() })
	return a.Set(access)
}

// natsAddr is where the embedded NATS listens: what the flag says, else the port
// that `hamlet score` asks, else any.
func (c *Command) natsAddr() string {
	const usual, any = "127.0.0.1:4222", "127.0.0.1:0"
	if c.ListenNATS != "" {
		return c.ListenNATS
	}
	if c.Once { // nobody asks
		return any
	}
	l, err := net.Listen("tcp", usual)
	if err != nil {
		return any
	}
	_ = l.Close()
	return usual
}
