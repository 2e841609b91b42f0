package doors

import (
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/cmd/internal/service/settings"
	"hamlet/cmd/internal/testkit/await"
	"hamlet/stream/embedded"
	"hamlet/stream/nats"
)

// Mail waits in the NATS of --self-label-nats, with the user that its URL names and no other one.
func TestMailWaitsInItsOwnNATS(t *testing.T) {
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	start := func(user string) *embedded.NATS {
		t.Helper()
		n, err := embedded.StartNATS(embedded.NATSOptions{Users: []embedded.NATSUser{{Name: user, Password: "secret"}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = n.Close() })
		return n
	}
	access := settings.NATSAccess{NATSUser: "client", NATSPassword: "secret"}
	asks, err := nats.Connect(nats.Config{URL: start("client").URL(), User: "client", Password: "secret", Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(asks.Close)
	to := start("waiting").URL()[len("nats://"):]

	for _, f := range []SelfLabelFlags{{SelfLabelNATS: "nats://waiting:secret@" + to}, {SelfLabel: time.Second}} {
		if conn, err := f.Connect(asks, access, log); conn != asks || err != nil {
			t.Errorf("%+v: %v, or another connection", f, err)
		}
	}
	conn, err := (&SelfLabelFlags{SelfLabel: time.Second, SelfLabelNATS: "nats://waiting:secret@" + to}).Connect(asks, access, log)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	await.Until(t, func() bool { return conn.Status() == natsgo.CONNECTED && conn.ConnectedAddr() == to }, func() string {
		return fmt.Sprintf("mail waits at %s: %v, %v", conn.ConnectedAddr(), conn.Status(), conn.LastError())
	})
}
