package redis

import (
	"bytes"
	"strings"
	"testing"

	resp "github.com/alicebob/miniredis/v2/server"
)

// A policy that may evict the model is refused. A server that does not name its policy
// is not.
func TestAPolicyThatEvictsTheModelIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, info string // what INFO answers; "": it is forbidden
		refused    string
		logged     bool
	}{
		{name: "noeviction", info: "# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n"},
		{name: "only keys with a time to live", info: "maxmemory_policy:volatile-lru\r\n"},
		{name: "all keys", info: "# Memory\r\nmaxmemory_policy:allkeys-lru\r\n", refused: "maxmemory-policy is allkeys-lru"},
		{name: "all keys at random", info: "maxmemory_policy:allkeys-random\r\n", refused: "maxmemory-policy is allkeys-random"},
		{name: "forbidden", logged: true},
		{name: "not said", info: "# Memory\r\nused_memory:1\r\n", logged: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv, err := resp.NewServer("127.0.0.1:0") // miniredis has no memory section
			if err != nil {
				t.Fatal(err)
			}
			defer srv.Close()
			err = srv.Register("INFO", func(peer *resp.Peer, _ string, args []string) {
				switch {
				case len(args) != 1 || args[0] != "memory":
					peer.WriteError("ERR another section than memory")
				case c.info == "":
					peer.WriteError("NOPERM this user has no permissions to run the 'info' command")
				default:
					peer.WriteBulk(c.info)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			var said bytes.Buffer
			s, err := New(Config{Addr: srv.Addr().String(), Log: logTo(&said)})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			err = s.CheckPolicy(t.Context())
			switch {
			case c.refused == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.refused != "" && err == nil:
				t.Error("not refused")
			case c.refused != "":
				mustContain(t, err.Error(), c.refused, "noeviction", srv.Addr().String())
			}
			if logged := strings.Contains(said.String(), "does not say"); logged != c.logged {
				t.Errorf("logged %v, want %v: %s", logged, c.logged, &said)
			}
		})
	}
}
