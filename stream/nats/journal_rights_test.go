package nats_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"

	"hamlet/stream"
	"hamlet/stream/nats"
	"hamlet/stream/questions"
)

// lacking returns learners that lack a right to the journal.
func lacking(t *testing.T, users []*server.User) (out []*server.User) {
	t.Helper()
	i := slices.IndexFunc(users, func(u *server.User) bool { return u.Username == "learner" })
	if i < 0 {
		t.Fatal("there is no learner")
	}
	for _, right := range []string{"$JS.API.CONSUMER.CREATE.", "$JS.API.STREAM.INFO."} {
		all := users[i].Permissions
		subjects := slices.DeleteFunc(slices.Clone(all.Publish.Allow), func(s string) bool { return strings.Contains(s, right) })
		name := "without " + right
		out = append(out, &server.User{Username: name, Password: strings.ToUpper(name) + "_PASSWORD", Account: users[i].Account, Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Allow: subjects}, Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
		}})
	}
	return out
}

// By the rights of deploy/nats/hamlet.conf the scorer answers and writes the journal, and
// the operator reads it. Who asks does neither.
func TestRightsInTheJournal(t *testing.T) {
	t.Parallel()
	file, err := server.ProcessConfigFile("../../deploy/nats/hamlet.conf")
	if err != nil {
		t.Fatal(err)
	}
	s := startJetStream(t, t.TempDir(), -1, func(o *server.Options) {
		o.Accounts, o.Users, o.AuthTimeout = file.Accounts, append(file.Users, lacking(t, file.Users)...), 30
	})
	as := func(user string) *natsgo.Conn {
		t.Helper()
		conn, err := nats.Connect(nats.Config{URL: s.ClientURL(), User: user, Password: strings.ToUpper(user) + "_PASSWORD", Timeout: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Close)
		return conn
	}
	scorerConn := as("scorer")
	_, stop := serve(t, scorerConn, scorer{}, nats.ServiceConfig{})
	c := client(t, as("client"), "")
	if _, err := c.Ask(patience(t), questions.Question{Body: []byte("hello"), ContentType: questions.Text}); err != nil {
		t.Errorf("the client asks: %v", err)
	}
	if err := journal(t, scorerConn, nats.JournalConfig{}).Append(patience(t), "1", []stream.JournalEntry{entry("a")}); err != nil {
		t.Fatal(err)
	}
	// Another age, as after a change of flags.
	if err := journal(t, scorerConn, nats.JournalConfig{Age: time.Hour}).Append(patience(t), "2", []stream.JournalEntry{entry("b")}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(read(t, as("operator"), "default", time.Time{}), " "); got != "a b" {
		t.Errorf("the operator reads %q", got)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	// A refusal takes the whole timeout: the server does not answer.
	t.Run("client writes", func(t *testing.T) {
		t.Parallel()
		if err := journal(t, as("client"), nats.JournalConfig{}).Append(patience(t), "x", []stream.JournalEntry{entry("x")}); !errors.Is(err, nats.ErrRefused) {
			t.Errorf("%v, want a refusal", err)
		}
	})
	// Rights of a learner but for one. It is said once, and nobody asks again for ever.
	for _, without := range []string{"$JS.API.CONSUMER.CREATE.", "$JS.API.STREAM.INFO."} {
		t.Run("follows without "+without, func(t *testing.T) {
			t.Parallel()
			err := nats.FollowJournal(patience(t), as("without "+without), "default", time.Time{}, func(*stream.JournalEntry) {}, func(err error) { t.Error(err) })
			if err == nil || !strings.Contains(err.Error(), "may not read") || !strings.Contains(err.Error(), without) {
				t.Errorf("%v, want a refusal", err)
			}
		})
	}
	for _, user := range []string{"client", "without $JS.API.CONSUMER.CREATE."} {
		t.Run(user+" reads", func(t *testing.T) {
			t.Parallel()
			refused := 0
			for e, err := range nats.ReadJournal(patience(t), as(user), "default", time.Time{}) {
				if refused++; err == nil || !strings.Contains(err.Error(), "may not read decisions") {
					t.Errorf("%+v, %v, want a refusal", e, err)
				}
			}
			if refused != 1 {
				t.Errorf("%d refusals, want one", refused)
			}
		})
	}
}
