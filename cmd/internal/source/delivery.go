package source

import (
	"bytes"
	netmail "net/mail"
	"regexp"
	"strings"
	"time"
)

// deliveryTime returns when a message was delivered, UTC: what the last hop
// wrote, which is the topmost Received header; else the Date header; else an
// mbox's "From " line; else the zero time.
func deliveryTime(raw []byte) time.Time {
	var from, date string
	rest := raw
	if line, after, _ := bytes.Cut(rest, []byte("\n")); bytes.HasPrefix(line, []byte("From ")) {
		from, rest = string(line), after
	}
	const most = 64 << 10 // of headers, as mail.Reduce keeps them
	rest = rest[:min(len(rest), most)]
	for len(rest) > 0 {
		var name, value string
		name, value, rest = nextHeader(rest)
		if name == "" {
			break
		}
		switch {
		case strings.EqualFold(name, "Received"):
			_, stamp, ok := cutLast(value, ";")
			if t := parseDate(stamp); ok && !t.IsZero() {
				return t
			}
		case strings.EqualFold(name, "Date") && date == "":
			date = value
		}
	}
	if t := parseDate(date); !t.IsZero() {
		return t
	}
	return fromLineTime(from)
}

// nextHeader takes one header, unfolded, from b. The name is empty at the end of
// the headers; a line that is none counts as one with a name of its own.
func nextHeader(b []byte) (name, value string, rest []byte) {
	line, rest, _ := bytes.Cut(b, []byte("\n"))
	line = bytes.TrimSuffix(line, []byte("\r"))
	if len(line) == 0 {
		return "", "", rest
	}
	var folded strings.Builder
	folded.Write(line)
	for len(rest) > 0 && (rest[0] == ' ' || rest[0] == '\t') {
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		folded.WriteByte(' ')
		folded.Write(bytes.TrimSpace(line))
	}
	name, value, ok := strings.Cut(folded.String(), ":")
	if !ok {
		return "?", "", rest
	}
	return strings.TrimSpace(name), value, rest
}

func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

var (
	comment  = regexp.MustCompile(`\([^()]*\)`)
	blanks   = regexp.MustCompile(`\s+`)
	zoneName = regexp.MustCompile(` [A-Za-z][A-Za-z ]*$`)
)

// Dates as mail programs have written them, beside those of RFC 5322.
var dateLayouts = []string{
	"2 Jan 2006 15:04:05 -0700",
	"2 Jan 2006 15:04 -0700",
	"2 Jan 06 15:04:05 -0700",
	"2 Jan 06 15:04 -0700",
	"2 Jan 2006 15:04:05",
	"2 Jan 2006 15:04",
	"2 Jan 06 15:04:05",
	"Jan 2 15:04:05 2006",
	"Jan 2 15:04:05 -0700 2006",
	"Jan 2, 2006 15:04:05 -0700",
	"2006-01-02 15:04:05 -0700",
	"2006-01-02T15:04:05Z07:00",
	"2006-01-02 15:04:05",
}

// parseDate reads a date in mail, also a broken one, without a zone in UTC. It
// returns the zero time for what is none, or lies outside 1970 to 2100.
func parseDate(s string) time.Time {
	if len(s) > 200 {
		return time.Time{}
	}
	s = withOffset(strings.TrimSpace(s))
	if t, err := netmail.ParseDate(s); err == nil {
		return plausible(t)
	}
	s = comment.ReplaceAllString(s, " ")
	s = strings.TrimSpace(blanks.ReplaceAllString(s, " "))
	if day, after, ok := strings.Cut(s, " "); ok && isDayName(strings.TrimSuffix(day, ",")) {
		s = after
	} else if day, after, ok := strings.Cut(s, ","); ok && isDayName(day) {
		s = strings.TrimSpace(after)
	}
	for {
		for _, layout := range dateLayouts {
			if t, err := time.Parse(layout, s); err == nil {
				return plausible(t)
			}
		}
		shorter := zoneName.ReplaceAllString(s, "") // the name of a zone says less than an hour
		if shorter == s {
			return time.Time{}
		}
		s = shorter
	}
}

// zones are the names that RFC 5322 (§4.3) defines; it takes every other for
// +0000, as nothing is known of it.
var zones = map[string]string{
	"EST": "-0500", "EDT": "-0400", "CST": "-0600", "CDT": "-0500",
	"MST": "-0700", "MDT": "-0600", "PST": "-0800", "PDT": "-0700",
}

// lastWord is a zone's name behind a time at the end of a date, maybe before a
// comment.
var lastWord = regexp.MustCompile(`[0-9]\s+([A-Za-z][A-Za-z0-9/_]*)(\s*\(.*)?$`)

// withOffset writes the offset of a zone that is named alone. Package time would
// look the name up in the zone of the machine that it runs on.
func withOffset(s string) string {
	m := lastWord.FindStringSubmatchIndex(s)
	if m == nil {
		return s
	}
	name := strings.ToUpper(s[m[2]:m[3]])
	if name == "AM" || name == "PM" {
		return s
	}
	offset, known := zones[name]
	if !known {
		offset = "+0000"
	}
	return s[:m[2]] + offset
}

func isDayName(s string) bool {
	if len(s) < 3 {
		return false
	}
	switch strings.ToLower(s[:3]) {
	case "mon", "tue", "wed", "thu", "fri", "sat", "sun":
		return true
	}
	return false
}

func plausible(t time.Time) time.Time {
	t = t.UTC()
	if y := t.Year(); y < 1970 || y > 2100 {
		return time.Time{}
	}
	return t
}

// fromLineTime reads the date of "From sender Mon Jan  2 15:04:05 2006".
func fromLineTime(line string) time.Time {
	fields := strings.Fields(line)
	for i, f := range fields {
		if i >= 2 && isDayName(f) {
			return parseDate(strings.Join(fields[i:], " "))
		}
	}
	return time.Time{}
}
