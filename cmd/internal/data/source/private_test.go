package source

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Text in place of a label or a number may be mail. A rejection quotes only single words.
func TestRejectionsTellNoMail(t *testing.T) {
	for _, c := range []struct{ name, text, says string }{
		{"a.txt", "joe.doe@example.org\tlunch\n", "a value of 19 bytes is neither spam nor ham"},
		{"b.txt", "Dear Joe, your password is hunter2\tbye\n", "a value of 34 bytes is neither spam nor ham"},
		{"c.txt", "Spam\tlunch\n", `"Spam" is neither spam nor ham`},
		{"d.csv", "1,2,spam\njoe.doe@example.org,2,spam\n", "a value of 19 bytes is not a number"},
		{"e.csv", "1,2,spam\n1,2,joe.doe@example.org\n", "a value of 19 bytes is neither spam"},
		{"f.csv", "1,2,spam\n1,0x10,ham\n", `"0x10" is not a number`},
		{"g.svmlight", "joe.doe@example.org 3:1\n", "a value of 19 bytes must be"},
		{"h.svmlight", "1 joe.doe@example.org:1\n", "a value of 21 bytes: index:value"},
		{"i.svmlight", "1 3:joe.doe@example.org\n", "a value of 19 bytes is not a number"},
		{"j.svmlight", "1 3:1.5e-7.2\n", `"1.5e-7.2" is not a number`},
	} {
		path := filepath.Join(t.TempDir(), c.name)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		format := map[string]string{".txt": FormatText, ".csv": FormatCSV, ".svmlight": FormatSVMLight}[filepath.Ext(c.name)]
		s, err := Open(Config{Paths: []string{path}, Format: format})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		said := ""
		for _, err := range s.Events() {
			if err != nil {
				said += err.Error()
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		for _, secret := range []string{"joe", "doe", "Joe", "hunter2"} {
			if strings.Contains(said, secret) {
				t.Errorf("%s: %q tells %q", c.name, said, secret)
			}
		}
		if !strings.Contains(said, c.says) {
			t.Errorf("%s: %q, want %q", c.name, said, c.says)
		}
	}
}
