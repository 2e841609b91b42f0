package doors

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/cmd/internal/door/oracle"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/process/secretfile"
	"hamlet/cmd/internal/service/settings"
	"hamlet/stream"
	"hamlet/stream/nats"
)

// OracleFlags are those of a machine that labels doubtful mail.
type OracleFlags struct {
	Oracle          string   `help:"Ask this HTTP endpoint about doubtful mail, and learn what it says while people's labels show that it is mostly right." placeholder:"URL" group:"Doors" rare:"up"`
	OracleFile      string   `help:"File that keeps how often it was wrong, and how often it was asked today." type:"path" placeholder:"FILE" group:"Doors" rare:"up"`
	OracleTokenFile string   `help:"File with the bearer token for it." type:"existingfile" placeholder:"FILE" group:"Doors" rare:"up"`
	OracleSends     string   `help:"What it is shown: headers (subject, sender's domain), text (the beginning of the text too, without addresses) or mail." enum:"headers,text,mail" default:"headers" placeholder:"WHAT" group:"Doors" rare:"up"`
	OracleQuestions int      `help:"Questions a day, UTC." default:"200" placeholder:"N" group:"Doors" rare:"up"`
	OracleNot       []string `help:"Tenants whose mail it is never asked about." placeholder:"TENANT" group:"Doors" rare:"up"`
	OracleNATS      string   `name:"oracle-nats" help:"NATS with the journal of decisions, with user and password; default: that of --nats." placeholder:"URL" group:"Doors" rare:"up"`
}

func (f *OracleFlags) check(mail bool) error {
	if f.Oracle == "" {
		if f.OracleFile != "" || f.OracleTokenFile != "" || f.OracleNATS != "" || len(f.OracleNot) > 0 {
			return cli.Usagef("--oracle-file, --oracle-token-file, --oracle-not and --oracle-nats are for --oracle, " +
				"and there is none")
		}
		return nil
	}
	for _, tenant := range f.OracleNot {
		if err := stream.ValidateTenant(tenant); err != nil || tenant == "" {
			return cli.Usagef("--oracle-not: %q is no tenant; the first one's name is %s", tenant, stream.DefaultName)
		}
	}
	u, err := url.Parse(f.Oracle)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return cli.Usagef("--oracle wants a URL such as http://127.0.0.1:8080/label or https://oracle.example.org/")
	case u.User != nil:
		return cli.Usagef("--oracle: a URL is no place for a password; give a token with --oracle-token-file")
	case u.Scheme == "http" && !settings.Loopback(hostPort(u)):
		return cli.Usagef("--oracle: %s is another machine, and mail goes there over https only", u.Host)
	case f.OracleFile == "":
		return cli.Usagef("--oracle wants --oracle-file: a restart must not forget how often it was wrong")
	case !mail:
		return cli.Usagef("--oracle is for mail that passes a door for mail servers, and none is open")
	}
	return cli.Range("--oracle-questions", f.OracleQuestions, 1, 1<<20)
}

func hostPort(u *url.URL) string {
	if u.Port() == "" {
		return u.Host + ":80"
	}
	return u.Host
}

// Connect returns the connection to the NATS that has the journal. It is conn, which asks for scores,
// without --oracle-nats or --oracle; else a new one, which the caller closes too.
func (f *OracleFlags) Connect(
	conn *natsgo.Conn, access settings.NATSAccess, log *slog.Logger,
) (*natsgo.Conn, error) {
	if f.Oracle == "" || f.OracleNATS == "" {
		return conn, nil
	}
	return settings.ConnectApart("--oracle-nats", f.OracleNATS, "hamlet-oracle", access, log)
}

// mostToken bounds the file of the token, in bytes.
const mostToken = 4 << 10

// Service returns what asks the oracle, or nil without --oracle. conn is Connect's.
func (f *OracleFlags) Service(
	conn *natsgo.Conn, model string, teacher gateway.Teacher, registry prometheus.Registerer, log *slog.Logger,
) (*oracle.Service, error) {
	if f.Oracle == "" {
		return nil, nil
	}
	token := ""
	if f.OracleTokenFile != "" {
		b, err := secretfile.Read(f.OracleTokenFile, mostToken)
		if err != nil {
			return nil, fmt.Errorf("token for the oracle: %w", err)
		}
		token = strings.TrimSpace(string(b))
	}
	return oracle.New(oracle.Config{
		URL: f.Oracle, Token: token, Sends: oracle.Sends(f.OracleSends), Questions: f.OracleQuestions,
		Not: slices.Clone(f.OracleNot), File: f.OracleFile, Teacher: teacher, Labels: labels(conn, model),
		Registerer: registry, Log: log,
	})
}

// labelsTime bounds one look at the journal.
const labelsTime = 20 * time.Second

// labels reads a model's labels from the journal. A line that cannot be read is passed over. All are read before
// the first is handed on: whoever takes them may ask the oracle meanwhile.
func labels(conn *natsgo.Conn, model string) oracle.Labels {
	return func(ctx context.Context, since time.Time) iter.Seq2[stream.JournalEntry, error] {
		return func(yield func(stream.JournalEntry, error) bool) {
			all, err := readLabels(ctx, conn, model, since)
			for _, e := range all {
				if !yield(e, nil) {
					return
				}
			}
			if err != nil {
				yield(stream.JournalEntry{}, err)
			}
		}
	}
}

func readLabels(ctx context.Context, conn *natsgo.Conn, model string, since time.Time) (
	all []stream.JournalEntry, err error,
) {
	if !conn.IsConnected() {
		return nil, fmt.Errorf("read the journal: %w", nats.ErrNoServer)
	}
	ctx, cancel := context.WithTimeout(ctx, labelsTime)
	defer cancel()
	for e, err := range nats.ReadJournalLabels(ctx, conn, model, since) {
		switch {
		case err == nil:
			all = append(all, e)
		case !errors.As(err, new(*nats.MessageError)):
			return all, err
		}
	}
	return all, nil
}
