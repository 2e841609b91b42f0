package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"hamlet/stream"
)

func TestShownWords(t *testing.T) {
	for in, want := range map[string]string{
		"prize": "prize", "gr\xfc\xdfe": "gr\ufffd\ufffde", "größe": "größe", "a\x1b[31m": "a\ufffd[31m", "a\u202eb": "a\ufffdb", "": "",
		strings.Repeat("x", 64): strings.Repeat("x", 64), strings.Repeat("x", 65): strings.Repeat("x", 61) + "…",
		strings.Repeat("ü", 40): strings.Repeat("ü", 30) + "…",
	} {
		got := ShownWord(in)
		if got != want || len(got) > stream.MaxWordLength || !utf8.ValidString(got) {
			t.Errorf("ShownWord(%q) = %q, want %q", in, got, want)
		}
	}
	b, err := json.Marshal(stream.Word{Text: "prize", Where: "text", Contribution: 1.5})
	if want := `{"text":"prize","where":"text","contribution":1.5}`; err != nil || string(b) != want {
		t.Errorf("%s, %v; want %s", b, err, want)
	}
}
