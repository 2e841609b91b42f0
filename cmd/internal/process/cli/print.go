package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Print writes a text for people to standard output.
func Print(w io.Writer, text string) error {
	_, err := io.WriteString(w, text)
	return Written(err)
}

// PrintJSON writes a value to standard output, as one line of JSON.
func PrintJSON(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("the output in JSON: %w", err)
	}
	_, err = w.Write(append(b, '\n'))
	return Written(err)
}

// Written says that an error is one of writing to standard output.
func Written(err error) error {
	if err != nil {
		return fmt.Errorf("write to standard output: %w", err)
	}
	return nil
}

// Stamp writes a time as tables and texts have it.
func Stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Megabytes writes a length in bytes as tables and texts have it.
func Megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// Cell returns s as a terminal and a table's column take it: "-" if it is empty, and a
// replacement for what cannot be printed. Senders and clients choose names.
func Cell(s string) string {
	if s == "" {
		return "-"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, s)
}
