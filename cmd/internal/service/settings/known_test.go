package settings

import (
	"crypto/tls"
	"testing"

	"hamlet/cmd/internal/process/credentials"
	"hamlet/stream/nats"
)

// A service that names only the address of its user's up gets a service's user there,
// and score the one who may only ask. What names a user, TLS, several servers or
// another address gets nothing.
func TestKnownServers(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	t.Setenv("TMPDIR", t.TempDir()) // other programs' announcements may be in the usual one
	a, err := credentials.Announce()
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if err := a.Set(credentials.Access{
		NATS:  credentials.Login{Addr: "127.0.0.1:4222", User: "hamlet", Password: "N"},
		Asker: credentials.Login{Addr: "127.0.0.1:4222", User: "client", Password: "A"},
	}); err != nil {
		t.Fatal(err)
	}
	type login struct{ user, password, inbox string }
	for _, c := range []struct {
		flags   NATS
		service login
		asker   login
	}{
		{NATS{NATS: "nats://127.0.0.1:4222"}, login{"hamlet", "N", ServiceInbox}, login{"client", "A", ""}},
		{NATS{NATS: "127.0.0.1"}, login{"hamlet", "N", ServiceInbox}, login{"client", "A", ""}},
		{NATS{NATS: "nats://localhost:4222"}, login{"hamlet", "N", ServiceInbox}, login{"client", "A", ""}},
		{NATS{NATS: "nats://127.0.0.1:4223"}, login{}, login{}},
		{NATS{NATS: "tls://127.0.0.1:4222"}, login{}, login{}},
		{NATS{NATS: "nats://me:mine@127.0.0.1:4222"}, login{}, login{}},
		{NATS{NATS: "nats://127.0.0.1:4222,nats://127.0.0.1:4223"}, login{}, login{}},
		{NATS{NATS: "nats://127.0.0.1:4222", NATSAccess: NATSAccess{NATSUser: "me", NATSPassword: "mine"}}, login{"me", "mine", ""}, login{"me", "mine", ""}},
		{NATS{NATS: "nats://127.0.0.1:4222", NATSAccess: NATSAccess{NATSToken: "t"}}, login{}, login{}},
		{EmbeddedNATS("nats://127.0.0.1:4222", "N"), login{"hamlet", "N", ServiceInbox}, login{"hamlet", "N", ""}},
	} {
		service, err := c.flags.Config("", nil)
		if got := (login{service.User, service.Password, service.Inbox}); err != nil || got != c.service {
			t.Errorf("service %+v: %v, %v, want %v", c.flags, got, err, c.service)
		}
		cfg, err := c.flags.NATSAccess.Config(c.flags.NATS, "", nil)
		asker := KnownAsker(cfg)
		if got := (login{asker.User, asker.Password, asker.Inbox}); err != nil || got != c.asker {
			t.Errorf("asker %+v: %v, %v, want %v", c.flags, got, err, c.asker)
		}
	}
}

// Only who says nothing of itself is a service of the up that runs at that address, and hears
// answers where that user does.
func TestWithServiceLogin(t *testing.T) {
	for _, cfg := range []nats.Config{{URL: "nats://n:4222", User: "gateway"}, {URL: "nats://n:4222", TLS: &tls.Config{}}, {URL: "nats://u:p@n:4222"}} {
		if got := WithServiceLogin(cfg); got.Login != nil || got.Inbox != "" {
			t.Errorf("%+v became %+v", cfg, got)
		}
	}
	got := WithServiceLogin(nats.Config{URL: "nats://n.invalid:4222"})
	if got.Login == nil || got.Inbox != ServiceInbox {
		t.Fatalf("%+v", got)
	}
	if user, password := got.Login(); user != "" || password != "" {
		t.Errorf("nobody's server gets the login %q", user)
	}
}
