package help

import (
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	for args, title := range map[string]string{
		"--help": "hamlet", "-h": "hamlet", "up --help": "hamlet up", "up -h": "hamlet up", "model pin --help": "hamlet model pin",
	} {
		text, ok := of(strings.Fields(args))
		if !ok || !strings.HasPrefix(text, "Usage: "+title+" ") || strings.Count(text, "Usage: ") != 1 {
			t.Errorf("%s: %v, %.60q", args, ok, text)
		}
	}
	for _, args := range []string{"", "up", "--help up", "up --help --json", "up -- --help", "up --help-all", "nobody --help", "model  --help --help"} {
		if text, ok := of(strings.Fields(args)); ok {
			t.Errorf("%s: %.60q, want none", args, text)
		}
	}
	if text, ok := of([]string{"model pin", "--help"}); ok {
		t.Errorf("one word with a space: %.60q, want none", text)
	}
}

func TestSection(t *testing.T) {
	const all = "-- hamlet --\na\n-- hamlet b --\nx -- hamlet c --\n-- y --\n-- hamlet d --\n"
	for title, want := range map[string]string{
		"-- hamlet --\n": "a\n", "-- hamlet b --\n": "x -- hamlet c --\n-- y --\n", "-- hamlet d --\n": "",
	} {
		if text, ok := section(all, title); !ok || text != want {
			t.Errorf("%q: %v, %q, want %q", title, ok, text, want)
		}
	}
	if text, ok := section(all, "-- hamlet c --\n"); ok {
		t.Errorf("a section that is not there: %q", text)
	}
}

// Under the names of the services the program is another one; so is a test.
func TestIsHamlet(t *testing.T) {
	for path, want := range map[string]bool{
		"hamlet": true, "./hamlet": true, "/usr/bin/hamlet": true, "hamlet-scorer": false, "/usr/bin/hamlet-learner": false, "hamlet.test": false, "xhamlet": false, "": false,
	} {
		if isHamlet(path) != want {
			t.Errorf("%q: %v", path, !want)
		}
	}
}

func TestConfigured(t *testing.T) {
	for want, environment := range map[bool][]string{
		true:  {"HOME=/", "HAMLET_SPAM_AT=x"},
		false: {"HOME=/HAMLET_", "", "HAMLET", "XHAMLET_A=1", "COLUMNSX=1"},
	} {
		if configured(environment) != want {
			t.Errorf("%q: %v", environment, !want)
		}
	}
	if !configured([]string{"COLUMNS=60"}) {
		t.Error("COLUMNS sets a width, and the kept texts have another")
	}
}
