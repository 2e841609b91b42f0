package embedded

import (
	"fmt"
	"sync"

	"github.com/alicebob/miniredis/v2/server"
)

// A commandLock lets many commands run at once, or one snapshot while no command runs.
// Its run is miniredis's hook, which executes each command and knows when it ends.
//
// The commands within a script come through the hook too. They must not wait for a
// snapshot that waits for the script. So a waiting snapshot blocks no command, unlike a
// waiting writer of a sync.RWMutex.
type commandLock struct {
	server *server.Server

	mu       sync.Mutex // guards the fields below
	changed  sync.Cond
	running  int                   // commands that run, those within scripts included; 0 while snapshot
	peers    map[*server.Peer]bool // the clients whose command run executes
	snapshot bool                  // a snapshot is being collected
	writes   uint64                // commands so far that may have changed data
}

func newCommandLock(s *server.Server) *commandLock {
	l := &commandLock{server: s, peers: make(map[*server.Peer]bool)}
	l.changed.L = &l.mu
	return l
}

// run is miniredis's hook: it executes the command and reports that it is done.
func (l *commandLock) run(peer *server.Peer, cmd string, args ...string) bool {
	if refused[cmd] {
		peer.WriteError(fmt.Sprintf("ERR the embedded Redis does not support %s: use a real one for it", cmd))
		return true
	}
	l.mu.Lock()
	if l.peers[peer] { // called by Dispatch below
		l.mu.Unlock()
		return false
	}
	for l.snapshot {
		l.changed.Wait()
	}
	l.running++
	l.peers[peer] = true
	l.mu.Unlock()

	l.server.Dispatch(peer, append([]string{cmd}, args...))

	l.mu.Lock()
	defer l.mu.Unlock()
	if !readOnly[cmd] && !l.server.IsReadOnlyCommand(cmd) {
		l.writes++
	}
	delete(l.peers, peer)
	l.running--
	l.changed.Broadcast()
	return true
}

// readOnly are commands that change no data and that miniredis does not list. The
// writes of a script are counted command by command.
var readOnly = map[string]bool{
	"PING": true, "HELLO": true, "AUTH": true, "SELECT": true, "CLIENT": true, "ECHO": true, "QUIT": true,
	"COMMAND": true, "INFO": true, "MULTI": true, "WATCH": true, "UNWATCH": true, "DISCARD": true,
	"SCRIPT": true, "EVAL": true, "EVALSHA": true, "EVAL_RO": true, "EVALSHA_RO": true,
}

// exclusive calls f, with the number of writes so far, while no command runs.
func (l *commandLock) exclusive(f func(writes uint64)) {
	l.mu.Lock()
	for l.snapshot || l.running > 0 {
		l.changed.Wait()
	}
	l.snapshot = true
	writes := l.writes
	l.mu.Unlock()

	f(writes)

	l.mu.Lock()
	defer l.mu.Unlock()
	l.snapshot = false
	l.changed.Broadcast()
}
