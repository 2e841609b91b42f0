package embedded

import (
	"crypto/subtle"
	"strings"
	"sync"

	"github.com/alicebob/miniredis/v2/server"
)

// A redisGate refuses every command of a connection but AUTH, HELLO and QUIT until one
// of the first two brought the password. miniredis asks for the password as well, in
// each of its 200 commands by itself; the gate stands before all of them.
//
// miniredis shows its hook a peer: a connection, or the commands of a script, which
// have a context from the beginning. A connection has none at its first command.
type redisGate struct {
	password []byte

	mu          sync.Mutex
	connections map[*server.Peer]bool // those that are open; whether they gave the password
}

func newRedisGate(password string) *redisGate {
	return &redisGate{password: []byte(password), connections: make(map[*server.Peer]bool)}
}

// lets reports whether peer may run the command; if not, it has replied.
func (g *redisGate) lets(peer *server.Peer, cmd string, args []string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	authenticated, known := g.connections[peer]
	switch {
	case !known && peer.Ctx != nil: // in a script, which an authenticated connection runs
		return true
	case !known:
		g.connections[peer] = false
		peer.OnDisconnect(func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			delete(g.connections, peer)
		})
	}
	var user, password string
	switch cmd {
	case "AUTH":
		switch len(args) {
		case 1:
			user, password = defaultUser, args[0]
		case 2:
			user, password = args[0], args[1]
		default:
			return true // miniredis says what is wrong
		}
	case "HELLO":
		var given bool
		if user, password, given = helloAuth(args); !given {
			if !authenticated {
				peer.WriteError("NOAUTH HELLO must be called with the client already authenticated, " +
					"or with the option AUTH")
			}
			return authenticated
		}
	case "QUIT":
		return true
	default:
		if !authenticated {
			peer.WriteError("NOAUTH Authentication required.")
		}
		return authenticated
	}
	if user != defaultUser || subtle.ConstantTimeCompare([]byte(password), g.password) != 1 {
		peer.WriteError("WRONGPASS invalid username-password pair or user is disabled.")
		return false
	}
	g.connections[peer] = true
	return true
}

// defaultUser is the user of Redis' AUTH with a password alone.
const defaultUser = "default"

// helloAuth returns what the option AUTH of HELLO's arguments says:
// version [AUTH user password] [SETNAME name].
func helloAuth(args []string) (user, password string, given bool) {
	for i := 1; i < len(args); i++ {
		switch strings.ToUpper(args[i]) {
		case "AUTH":
			if i+2 >= len(args) {
				return "", "", false
			}
			user, password, given = args[i+1], args[i+2], true
			i += 2
		case "SETNAME":
			i++
		}
	}
	return user, password, given
}
