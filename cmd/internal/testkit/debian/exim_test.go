package debian

import (
	"strings"
	"testing"
)

func TestExim(t *testing.T) {
	e := NewExim(t, "127.0.0.1 1", "  warn add_header = X-Seen: ${message_size}\n")
	delivered, said := e.Send("Subject: hello\n\nhello\n", "alice@exim.example", "bob@exim.example")
	if !strings.Contains(string(delivered), "\nX-Seen: 22\n") || !strings.HasSuffix(string(delivered), "\n\nhello\n") {
		t.Errorf("delivered\n%s\nsaid\n%s", delivered, said)
	}
}
