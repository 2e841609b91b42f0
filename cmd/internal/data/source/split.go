package source

import (
	"encoding/csv"
	"errors"
	"fmt"
	"strings"
)

// A splitter cuts rows into fields by RFC 4180, one row per line. The separator may also
// be a blank: a run of blanks and tabs counts as one separator.
type splitter struct {
	separator rune
	row       strings.Reader
	csv       *csv.Reader // of row
}

func newSplitter(separator rune) *splitter {
	s := &splitter{separator: separator}
	s.csv = csv.NewReader(&s.row)
	s.csv.Comma = separator
	s.csv.TrimLeadingSpace = separator != '\t' // a tab counts as space
	s.csv.FieldsPerRecord = -1
	s.csv.ReuseRecord = true
	return s
}

// separatorOf returns a row's separator: the first of ; tab and , that occurs outside
// quotes, else a blank.
func separatorOf(row string) rune {
	outside := ""
	for i, part := range strings.Split(row, `"`) {
		if i%2 == 0 {
			outside += part
		}
	}
	for _, r := range ";\t," {
		if strings.ContainsRune(outside, r) {
			return r
		}
	}
	return ' '
}

// split returns a row's fields without quotes and surrounding blanks. They are valid
// until the next call.
func (s *splitter) split(row string) ([]string, error) {
	if s.separator == ' ' {
		row = strings.TrimRight(strings.ReplaceAll(row, "\t", " "), " ")
	}
	s.row.Reset(row)
	fields, err := s.csv.Read()
	if err != nil {
		var syntax *csv.ParseError
		if errors.As(err, &syntax) { // its line is always 1
			err = fmt.Errorf("byte %d: %w", syntax.Column, syntax.Err)
		}
		return nil, err
	}
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	return fields, nil
}
