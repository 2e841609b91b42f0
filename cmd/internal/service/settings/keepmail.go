package settings

import (
	"errors"
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/cmd/internal/process/cli"
	"hamlet/stream/nats"
)

// KeepMail are the flags of mail that is kept for review.
type KeepMail struct {
	KeepMail     int    `help:"Keep the mail that is scored so many days in NATS, for hamlet review and the console; 0: none." default:"0" placeholder:"DAYS" group:"Journal" rare:"up"`
	KeepMailSize int64  `help:"MiB of mail to keep at most, compressed; the oldest goes first." default:"${keep_mail_size}" placeholder:"MIB" group:"Journal" rare:"up"`
	KeepMailNATS string `name:"keep-mail-nats" help:"NATS that keeps it, with user and password; default: that of --nats." placeholder:"URL" group:"Journal" rare:"up"`
}

// mostMailDays bounds --keep-mail.
const mostMailDays = 366

// Check reports bounds that no store may have.
func (f KeepMail) Check() error {
	return errors.Join(cli.Range("--keep-mail", f.KeepMail, 0, mostMailDays),
		cli.Range("--keep-mail-size", int(f.KeepMailSize), 1, 1<<20))
}

// Open returns what keeps a model's mail, and how to close it; nil without --keep-mail. conn is
// that of --nats. access gives another connection its TLS, and no user: that of the URL has
// another account.
func (f KeepMail) Open(conn *natsgo.Conn, access NATSAccess, model string,
	log *slog.Logger) (kept *nats.MailArchive, done func(), err error) {
	if f.KeepMail == 0 {
		return nil, func() {}, nil
	}
	conn, done, err = orApart(conn, "--keep-mail-nats", f.KeepMailNATS, "hamlet-keep-mail", access, log)
	if err != nil {
		return nil, nil, err
	}
	kept, err = nats.NewMailArchive(conn, nats.MailArchiveConfig{
		Model: model, Age: time.Duration(f.KeepMail) * 24 * time.Hour, Bytes: f.KeepMailSize << 20, Log: log,
	})
	if err != nil {
		done()
	}
	return kept, done, err
}

// ReadMail is the flag of those who read mail that is kept.
type ReadMail struct {
	MailNATS string `name:"mail-nats" help:"NATS that keeps mail, with user and password; default: the same." placeholder:"URL" group:"NATS" rare:"up"`
}

// Open returns a reader of a model's kept mail, and how to close it. conn is the connection
// without --mail-nats. access gives another one the TLS alone.
func (f ReadMail) Open(conn *natsgo.Conn, access NATSAccess, model string,
	log *slog.Logger) (kept *nats.MailArchiveReader, done func(), err error) {
	conn, done, err = orApart(conn, "--mail-nats", f.MailNATS, "hamlet-mail", access, log)
	if err != nil {
		return nil, nil, err
	}
	if kept, err = nats.NewMailArchiveReader(conn, model); err != nil {
		done()
	}
	return kept, done, err
}

// orApart returns conn, or where a flag names another NATS a connection to that, and how to close it.
func orApart(conn *natsgo.Conn, flag, address, name string, access NATSAccess,
	log *slog.Logger) (_ *natsgo.Conn, done func(), err error) {
	if address == "" {
		return conn, func() {}, nil
	}
	if conn, err = ConnectApart(flag, address, name, access, log); err != nil {
		return nil, nil, err
	}
	return conn, conn.Close, nil
}

// plainUser is a name that may stand in a subject.
var plainUser = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
})

// ConnectApart connects to a NATS that a flag names with its user and password, and waits for it
// if it is away. access gives the TLS alone. Answers come below _INBOX.USER.
func ConnectApart(flag, address, name string, access NATSAccess, log *slog.Logger) (*natsgo.Conn, error) {
	access.NATSCreds, access.NATSUser, access.NATSPassword, access.NATSToken = "", "", "", ""
	cfg, err := access.Config(address, name, log)
	if err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	cfg.Wait = true
	first, _, _ := strings.Cut(address, ",")
	if u, err := url.Parse(first); err == nil && plainUser().MatchString(u.User.Username()) {
		cfg.Inbox = natsgo.InboxPrefix + u.User.Username()
	}
	conn, err := nats.Connect(cfg)
	if err != nil {
		return nil, cli.Usagef("%s: %w", flag, err)
	}
	return conn, nil
}
