package source

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// formatOf returns the format of all inputs: the given one, or that of their names and
// contents.
func formatOf(inputs []*input, given string) (string, error) {
	if given != "" {
		return given, nil
	}
	format := ""
	for _, in := range inputs {
		f := formatOfName(in.path)
		if f == "" {
			head, err := in.head()
			if err != nil {
				return "", err
			}
			if f = formatOfContent(head); f == "" {
				return "", usagef("%s: neither its name nor its content says what it is: use --format with one of %s",
					in.name, strings.Join(formats, ", "))
			}
		}
		if format != "" && f != format {
			return "", usagef("%s is %s and %s is %s: read one format at a time, or say --format",
				inputs[0].name, format, in.name, f)
		}
		format = f
	}
	return format, nil
}

func formatOfName(path string) string {
	switch formatExt(path) {
	case ".csv":
		return FormatCSV
	case ".svm", ".svmlight", ".libsvm":
		return FormatSVMLight
	case ".jsonl", ".ndjson":
		return FormatJSONL
	case ".mbox", ".mbx", ".eml", ".tar", ".tgz":
		return FormatMail
	}
	return ""
}

// formatExt returns a file's extension in lower case. It ignores .gz and .zst.
func formatExt(name string) string {
	name = strings.ToLower(name)
	return filepath.Ext(strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst"))
}

// formatOfContent returns the format of a file by its first bytes, or "".
func formatOfContent(head []byte) string {
	if isTar(head) || bytes.HasPrefix(head, []byte("From ")) {
		return FormatMail
	}
	rows := firstLines(head, 20)
	if len(rows) == 0 {
		return ""
	}
	switch {
	case rows[0][0] == '{':
		return FormatJSONL
	case all(rows, isTextLine):
		return FormatText
	case all(rows, isSVMLightLine) && slices.ContainsFunc(rows, func(s string) bool { return strings.Contains(s, ":") }):
		return FormatSVMLight
	case isTable(rows):
		return FormatCSV
	case isHeaderLine(rows[0]):
		return FormatMail
	}
	return ""
}

// isTar reports whether a file begins like a tar archive (POSIX or GNU).
func isTar(head []byte) bool {
	return len(head) >= 512 && bytes.Equal(head[257:262], []byte("ustar"))
}

// firstLines returns the first complete lines that are not blank, at most n. A single
// line may be incomplete.
func firstLines(head []byte, n int) (rows []string) {
	text := strings.TrimPrefix(string(head), "\ufeff")
	for len(rows) < n && text != "" {
		line, rest, complete := strings.Cut(text, "\n")
		if text = rest; !complete && len(rows) > 0 && len(head) >= headSize {
			break
		}
		if line = strings.TrimSuffix(line, "\r"); strings.TrimSpace(line) != "" {
			rows = append(rows, line)
		}
	}
	return rows
}

func all(rows []string, is func(string) bool) bool {
	return !slices.ContainsFunc(rows, func(s string) bool { return !is(s) })
}

func isTextLine(s string) bool {
	label, _, ok := strings.Cut(s, "\t")
	return ok && (label == "ham" || label == "spam")
}

func isSVMLightLine(s string) bool {
	s, _, _ = strings.Cut(s, "#")
	fields := strings.Fields(s)
	if len(fields) == 0 {
		return true // a comment
	}
	for _, f := range fields[1:] {
		index, value, ok := strings.Cut(f, ":")
		if _, err := strconv.ParseUint(index, 10, 64); !ok || err != nil || !isNumber(value) {
			return false
		}
	}
	return isNumber(fields[0])
}

// isTable reports whether rows look like numbers in columns. The second or only row must
// have a number, and as many fields as the first, at least two.
func isTable(rows []string) bool {
	split := newSplitter(separatorOf(rows[0])).split
	row, err := split(rows[0])
	columns := len(row)
	if len(rows) > 1 && err == nil {
		row, err = split(rows[1])
	}
	return err == nil && columns >= 2 && len(row) == columns && slices.ContainsFunc(row, isNumber)
}

// isHeaderLine reports whether s begins like a header field of RFC 5322.
func isHeaderLine(s string) bool {
	name, _, ok := strings.Cut(s, ":")
	return ok && name != "" && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

func isNumber(s string) bool {
	_, err := parseNumber(s)
	return err == nil
}

// parseNumber reads a decimal number. It accepts NaN and ±Inf; the event's validation
// refuses them with the name of the column.
func parseNumber(s string) (float64, error) {
	if strings.ContainsAny(s, "xX_") {
		return 0, fmt.Errorf("%s is not a number", word(s))
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil && !strings.Contains(err.Error(), "out of range") {
		return 0, fmt.Errorf("%s is not a number", word(s))
	}
	return v, nil
}

// word quotes s for an error if it is a word, a number or at most three bytes. For other
// values it tells only their size: they may be mail or addresses, and errors are logged.
func word(s string) string {
	const least, most = 3, 16
	odd := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' && r != '_' }
	if len(s) > most || len(s) > least && strings.ContainsFunc(s, odd) && strings.Trim(s, "0123456789+-.,eE") != "" {
		return fmt.Sprintf("a value of %d bytes", len(s))
	}
	return strconv.Quote(s)
}

// clip shortens a name that an error quotes.
func clip(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
