package rspamd

import (
	"bytes"
	"runtime"
	"slices"
	"strings"
	"testing"

	"hamlet/cmd/internal/door/gateway"
)

// What is read of a header before it is scored takes little memory, however the message
// was made.
func TestFactsTakeLittleMemory(t *testing.T) {
	const size = 8 << 20
	for name, message := range map[string][]byte{
		"one name":          append(bytes.Repeat([]byte("A"), size), ":x\r\n\r\nhi\r\n"...),
		"one value":         append([]byte("Subject: "), bytes.Repeat([]byte("A"), size)...),
		"one folded value":  append([]byte("Subject: x\n"), bytes.Repeat([]byte(" y\n"), size/3)...),
		"short fields":      bytes.Repeat([]byte("A:\n"), size/3),
		"fields of ours":    bytes.Repeat([]byte("X-Hamlet-:\n"), size/11),
		"empty message ids": bytes.Repeat([]byte("Message-ID:\n"), size/12),
		"no fields":         bytes.Repeat([]byte("A\n"), size/2),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		found := factsOf(message, gateway.Marks{})
		runtime.ReadMemStats(&after)
		if taken := after.TotalAlloc - before.TotalAlloc; taken > 8<<20 {
			t.Errorf("%s: %d KiB for a message of %d MiB", name, taken>>10, len(message)>>20)
		}
		if len(found.subject) > maxSubject+1 || len(found.removed) > maxRemoved {
			t.Errorf("%s: a subject of %d bytes, %d names", name, len(found.subject), len(found.removed))
		}
	}
}

// A field that the bound of the header cuts is not taken: a part of a subject must not
// replace the whole.
func TestFactsOfALongHeader(t *testing.T) {
	early := "X-Hamlet-Early: 1\r\nMessage-ID: <a@b>\r\n"
	long := early + "X: " + strings.Repeat("x", factsHeader-len(early)-19) + "\r\n"
	for name, rest := range map[string]string{
		"cut":            "Subject: hello, this is long\r\n",
		"cut at its end": "Subject: 789\r\n and more\r\n",
		"beyond":         "Y: 12345678901\r\nSubject: hello\r\n",
	} {
		found := factsOf([]byte(long+rest+"X-Hamlet-Late: 1\r\n\r\nbuy now\r\n"), gateway.Marks{})
		if found.subject != "" || found.messageID != "a@b" || !slices.Equal(found.removed, []string{"X-Hamlet-Early"}) {
			t.Errorf("%s: %+v", name, found)
		}
	}
	whole := factsOf([]byte("subject : hello\r\n"+strings.Repeat("n", 257)+": x\r\nx-hamlet-a \t: 1\r\nMESSAGE-id: <c@d>"), gateway.Marks{})
	if whole.subject != "hello" || whole.messageID != "c@d" || !slices.Equal(whole.removed, []string{"x-hamlet-a"}) {
		t.Errorf("%+v", whole)
	}
}
