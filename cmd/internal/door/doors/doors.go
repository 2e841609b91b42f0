// Package doors opens the doors that flags ask for. `hamlet gateway` and `hamlet up` have
// the same flags. What the doors share, such as the fields that they write into mail, is package
// gateway's.
//
//	opened, err := flags.Open(gateway.Config{Asker: client, Registerer: registry, Log: log})
//	defer opened.Close()
//	err = opened.Run(ctx)
package doors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/cmd/internal/door/milter"
	"hamlet/cmd/internal/door/spamd"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/settings"
	"hamlet/stream"
)

// Flags say which doors there are, and what goes through them.
type Flags struct {
	Tenants    string        `help:"YAML of tenants: who they are, and when their mail is spam; read again when it changes." type:"existingfile" placeholder:"FILE" group:"Doors" rare:"up"`
	Deadline   time.Duration `help:"After so long without a verdict a message passes unmarked." default:"2s" placeholder:"D" group:"Doors" rare:"up"`
	Memory     int64         `help:"MiB for the messages under way." default:"256" placeholder:"MIB" group:"Doors" rare:"up"`
	Remote     bool          `help:"Doors may listen on addresses that other machines reach." group:"Doors" rare:"up"`
	SocketMode string        `help:"Who may open a door's socket, octal." default:"0660" placeholder:"MODE" group:"Doors" rare:"up"`
	AllowLearn bool          `help:"Clients may say what is spam and ham, which the model learns." group:"Doors" rare:"up"`
	TagSubject string        `help:"Put this before the subject of spam." placeholder:"TAG" group:"Doors" rare:"up"`
	SpamFields bool          `help:"Add X-Spam-Flag and X-Spam-Status too." group:"Doors" rare:"up"`
	FieldWords int           `help:"Add X-Hamlet-Words, the N words that counted most." default:"0" placeholder:"N" group:"Doors" rare:"up"`

	Milter       []string `help:"Speak the milter protocol of Postfix and Sendmail at host:port or unix:PATH." placeholder:"ADDR" group:"Doors" rare:"up"`
	RejectAt     float64  `help:"Milter: refuse spam of this probability and more; 0 means never." default:"0" placeholder:"P" group:"Doors" rare:"up"`
	QuarantineAt float64  `help:"Milter: hold spam of this probability and more; 0 means never." default:"0" placeholder:"P" group:"Doors" rare:"up"`

	Spamd []string `help:"Speak the protocol of SpamAssassin's spamd at host:port or unix:PATH, for spamc and Exim." placeholder:"ADDR" group:"Doors" rare:"up"`

	RspamdFlags
	SelfLabelFlags
	OracleFlags
	settings.Asking
}

// A door is one protocol: its flag's value and what serves it. Another door is one more
// entry of [Flags.doors].
type door struct {
	flag    string
	addrs   []string
	name    string // as the metrics and the scoring service see it
	handler func(*gateway.Door) handler
}

// A handler serves one connection.
type handler func(ctx context.Context, conn net.Conn)

// doors are all doors, also those without an address.
func (f *Flags) doors() []door {
	return slices.Concat([]door{
		{"--milter", f.Milter, "milter", func(d *gateway.Door) handler {
			return milter.New(d, milter.Config{RejectAt: f.RejectAt, QuarantineAt: f.QuarantineAt}).Handle
		}},
		{"--spamd", f.Spamd, "spamd", func(d *gateway.Door) handler {
			return spamd.New(d).Handle
		}},
	}, f.RspamdFlags.doors())
}

// Any reports whether a door is asked for.
func (f *Flags) Any() bool {
	for _, d := range f.doors() {
		if len(d.addrs) > 0 {
			return true
		}
	}
	return false
}

// Check reports every mistake in the flags.
func (f *Flags) Check() error {
	var errs []error
	for _, d := range f.doors() {
		for _, addr := range d.addrs {
			errs = append(errs, checkAddr(d.flag, addr, f.Remote))
		}
	}
	if !f.Any() && (f.TagSubject != "" || f.SpamFields || f.FieldWords != 0) {
		errs = append(errs, cli.Usagef(
			"--tag-subject, --spam-fields and --field-words mark what passes a door, and none is open"))
	}
	if f.Deadline <= 0 {
		errs = append(errs, cli.Usagef("--deadline: %v is not above zero", f.Deadline))
	}
	if err := f.marks().Check(); err != nil {
		errs = append(errs, &cli.UsageError{Err: err})
	}
	_, err := f.mode()
	errs = append(errs, err, f.Asking.Check(), f.RspamdFlags.check(), f.SelfLabelFlags.check(f.Any()),
		f.OracleFlags.check(f.Any()), cli.Range("--memory", f.Memory, 1, 1<<20), f.checkMilter())
	return errors.Join(errs...)
}

// checkAddr reports what is wrong with a door's address: host:port or unix:PATH. A host
// other than this machine's loopback is refused, unless remote: spamd's, rspamd's and
// the milter protocol know no passwords.
func checkAddr(flag, addr string, remote bool) error {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		if path == "" {
			return cli.Usagef("%s: unix: wants a path, such as unix:/run/hamlet/door.sock", flag)
		}
		return nil
	}
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return cli.Usagef("%s: %q is neither host:port nor unix:PATH", flag, addr)
	}
	if remote || settings.Loopback(addr) {
		return nil
	}
	return cli.Usagef("%s: %s can be reached from other machines, and this protocol asks nobody for a password; "+
		"listen on 127.0.0.1 or unix:PATH, or say --remote if only your mail servers can reach it", flag, addr)
}

// checkMilter reports probabilities that cannot be.
func (f *Flags) checkMilter() error {
	err := cmp.Or(cli.Range("--reject-at", f.RejectAt, 0, 1), cli.Range("--quarantine-at", f.QuarantineAt, 0, 1))
	if err == nil && f.RejectAt > 0 && f.QuarantineAt >= f.RejectAt {
		err = cli.Usagef("--quarantine-at: spam of %v is refused already, from --reject-at %v on",
			f.QuarantineAt, f.RejectAt)
	}
	return err
}

func (f *Flags) marks() gateway.Marks {
	return gateway.Marks{SpamFields: f.SpamFields, Tag: f.TagSubject, Words: f.FieldWords}
}

func (f *Flags) mode() (os.FileMode, error) {
	mode, err := strconv.ParseUint(f.SocketMode, 8, 32)
	if err != nil || mode > 0o777 {
		return 0, cli.Usagef("--socket-mode: %q is not an octal mode such as 0660", f.SocketMode)
	}
	return os.FileMode(mode), nil
}

// Doors are open doors. They take connections during Run.
type Doors struct {
	gateway *gateway.Gateway
	tenants *gateway.Tenants
	told    []Listener
	open    []openDoor
}

type openDoor struct {
	door     *gateway.Door
	listener net.Listener
	handle   handler
}

// A Listener is told each verdict about a mail server's message, as [gateway.Config] says of Answered,
// and works while the doors are open.
type Listener interface {
	Answered(tenant string, message []byte, verdict *stream.Verdict)
	Run(ctx context.Context)
}

// Open takes the addresses of the doors. The flags decide Marks, Deadline and Memory of cfg, and
// Tenants unless those are open already. Run also runs the listeners.
func (f *Flags) Open(cfg gateway.Config, listeners ...Listener) (_ *Doors, err error) {
	mode, err := f.mode()
	if err != nil {
		return nil, err
	}
	if f.Tenants != "" && cfg.Tenants == nil {
		if cfg.Tenants, err = gateway.OpenTenants(f.Tenants, cfg.Log); err != nil {
			return nil, err
		}
	}
	cfg.Marks, cfg.Deadline, cfg.Memory = f.marks(), f.Deadline, f.Memory<<20
	cfg.Hints = gateway.Hints{Learn: "--allow-learn", Token: "--token or --tokens"}
	if len(listeners) > 0 {
		cfg.Answered = func(tenant string, message []byte, verdict *stream.Verdict) {
			for _, l := range listeners {
				l.Answered(tenant, message, verdict)
			}
		}
	}
	g, err := gateway.New(cfg)
	if err != nil {
		return nil, err
	}
	all := &Doors{gateway: g, tenants: cfg.Tenants, told: listeners}
	defer func() {
		if err != nil {
			all.Close()
		}
	}()
	for _, d := range f.doors() {
		if len(d.addrs) == 0 {
			continue
		}
		at := g.Door(d.name)
		handle := d.handler(at)
		for _, addr := range d.addrs {
			l, err := gateway.Listen(addr, mode)
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", d.flag, addr, err)
			}
			all.open = append(all.open, openDoor{door: at, listener: l, handle: handle})
		}
	}
	return all, nil
}

// Gateway returns what the doors ask.
func (d *Doors) Gateway() *gateway.Gateway { return d.gateway }

// Addrs returns the addresses of the open doors, by name.
func (d *Doors) Addrs() map[string][]string {
	addrs := map[string][]string{}
	for _, o := range d.open {
		addrs[o.door.Name()] = append(addrs[o.door.Name()], address(o.listener))
	}
	return addrs
}

func address(l net.Listener) string {
	if l.Addr().Network() == "unix" {
		return "unix:" + l.Addr().String()
	}
	return l.Addr().String()
}

// Ready returns nil if the scoring service answers; messages pass unmarked otherwise.
func (d *Doors) Ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	_, err := d.gateway.Info(ctx)
	return err
}

const readyTimeout = 5 * time.Second

// Run serves until ctx ends or a door fails.
func (d *Doors) Run(ctx context.Context) error {
	stopped, stop := context.WithCancel(context.WithoutCancel(ctx)) // listeners end behind the last answer
	var listening sync.WaitGroup
	for _, l := range d.told {
		listening.Go(func() { l.Run(stopped) })
	}
	defer listening.Wait()
	defer stop()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return d.tenants.Watch(ctx) })
	g.Go(func() error { return d.gateway.Tokens.Watch(ctx) })
	for _, o := range d.open {
		g.Go(func() error { return o.door.Serve(ctx, o.listener, o.handle) })
	}
	return g.Wait()
}

// Close closes doors that never ran. It may follow Run.
func (d *Doors) Close() {
	for _, o := range d.open {
		_ = o.listener.Close()
	}
}
