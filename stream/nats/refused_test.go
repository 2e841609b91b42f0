package nats_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"hamlet/stream/nats"
)

// A service that may not listen for requests ends and says so; one that may not be
// discovered serves.
func TestServiceThatMayNotListen(t *testing.T) {
	for name, c := range map[string]struct {
		deny []string
		want string // in the error; empty: it serves
	}{
		"nothing":   {[]string{"hamlet.>", "$SRV.>"}, "the user may not listen on hamlet.info"},
		"score":     {[]string{"hamlet.score"}, "the user may not listen on hamlet.score: allow it to subscribe to hamlet.> and $SRV.>, and to publish to _INBOX.>"},
		"discovery": {[]string{"$SRV.>"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := server.NewServer(&server.Options{
				Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
				Users: []*server.User{{Username: "scorer", Password: "pw", Permissions: &server.Permissions{
					Subscribe: &server.SubjectPermission{Deny: c.deny},
				}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			s.Start()
			t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
			if !s.ReadyForConnections(30 * time.Second) {
				t.Fatal("the nats server doesn't listen")
			}
			conn, err := nats.Connect(nats.Config{URL: s.ClientURL(), User: "scorer", Password: "pw"})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(conn.Close)
			service, err := nats.NewService(conn, nats.ServiceConfig{})
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- service.Serve(patience(t), scorer{}, nil) }()
			if c.want == "" {
				select {
				case err := <-done:
					t.Fatalf("it ended: %v", err)
				case <-service.Ready():
				}
				conn.Close()
				<-done
				return
			}
			if err := <-done; err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
