package source

import (
	"bytes"
	netmail "net/mail"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"hamlet/stream/mail"
)

// deliveryTime returns when a message was delivered, in UTC, by its topmost Received
// header, else its Date header, else an mbox's "From " line, else the zero time.
func deliveryTime(raw []byte) time.Time {
	from, date := string(mail.FromLine(raw)), ""
	header := raw[len(from):]
	for f := range mail.Fields(header[:min(len(header), mail.MaxHead)]) {
		switch {
		case bytes.EqualFold(f.Name(), []byte("Received")):
			value := string(f.Unfolded())
			if i := strings.LastIndexByte(value, ';'); i >= 0 {
				if t := parseDate(value[i+1:]); !t.IsZero() {
					return t
				}
			}
		case bytes.EqualFold(f.Name(), []byte("Date")) && date == "":
			date = string(f.Unfolded())
		}
	}
	if t := parseDate(date); !t.IsZero() {
		return t
	}
	// "From sender Mon Jan  2 15:04:05 2006"
	fields := strings.Fields(from)
	for i, f := range fields {
		if i >= 2 && isDayName(f) {
			return parseDate(strings.Join(fields[i:], " "))
		}
	}
	return time.Time{}
}

var (
	comment = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\([^()]*\)`)
	})
	blanks = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\s+`)
	})
	zoneName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(` [A-Za-z][A-Za-z ]*$`)
	})
)

// dateLayouts are formats of dates in mail that violate RFC 5322.
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

// parseDate reads a date in mail, also a malformed one. A date without a zone is UTC.
// It returns the zero time for other text, and for years outside 1970 to 2100.
func parseDate(s string) time.Time {
	if len(s) > 200 {
		return time.Time{}
	}
	if t, ok := usualDate(s); ok {
		return plausible(t)
	}
	return anyDate(s)
}

// anyDate is parseDate of what is not usual.
func anyDate(s string) time.Time {
	s = withOffset(strings.TrimSpace(s))
	if t, err := netmail.ParseDate(s); err == nil {
		return plausible(t)
	}
	s = comment().ReplaceAllString(s, " ")
	s = strings.TrimSpace(blanks().ReplaceAllString(s, " "))
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
		shorter := zoneName().ReplaceAllString(s, "") // without the zone's name
		if shorter == s {
			return time.Time{}
		}
		s = shorter
	}
}

// usualDate reads what most mail has: "Mon, 2 Jan 2006 15:04:05 -0700", and then perhaps the zone's name as a comment.
// Package net/mail reads the same, after two dozen layouts that fail.
func usualDate(s string) (time.Time, bool) {
	s = strings.TrimSpace(s)
	if date, zone, ok := strings.Cut(s, " ("); ok {
		zone, closed := strings.CutSuffix(zone, ")")
		if !closed || strings.Trim(zone, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
			return time.Time{}, false
		}
		s = date
	}
	t, err := time.Parse("Mon, 2 Jan 2006 15:04:05 -0700", s)
	return t, err == nil
}

// zones are the names that RFC 5322 (§4.3) defines. It reads every other name as +0000.
var zones = map[string]string{
	"EST": "-0500", "EDT": "-0400", "CST": "-0600", "CDT": "-0500",
	"MST": "-0700", "MDT": "-0600", "PST": "-0800", "PDT": "-0700",
}

// lastWord matches a zone's name after the time. A comment may follow.
var lastWord = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[0-9]\s+([A-Za-z][A-Za-z0-9/_]*)(\s*\(.*)?$`)
})

// withOffset replaces the name of a zone by its offset. Package time knows only the names
// of the machine's local zone.
func withOffset(s string) string {
	m := lastWord().FindStringSubmatchIndex(s)
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
	return len(s) >= 3 &&
		slices.Contains([]string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}, strings.ToLower(s[:3]))
}

func plausible(t time.Time) time.Time {
	t = t.UTC()
	if y := t.Year(); y < 1970 || y > 2100 {
		return time.Time{}
	}
	return t
}
