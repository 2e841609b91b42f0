package bench

import (
	"strings"
	"testing"
)

// A program that prints something else is an error that shows it, whatever its status.
func TestProgramWithAnotherAnswer(t *testing.T) {
	for script, want := range map[string]string{
		"echo other":         "",
		"echo other; exit 3": "exit status 3",
	} {
		err := program("/bin/sh", []string{"-c", script}, "p = ")(t.Context(), nil)
		if err == nil || !strings.Contains(err.Error(), "other") || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "%!") {
			t.Errorf("%s: %v", script, err)
		}
	}
	if err := program("/bin/sh", []string{"-c", "echo 'p = 1'; exit 1"}, "p = ")(t.Context(), nil); err != nil {
		t.Errorf("a status that says what is spam: %v", err)
	}
}
