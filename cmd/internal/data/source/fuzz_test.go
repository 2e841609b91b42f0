package source

import (
	"strings"
	"testing"
	"unicode/utf8"

	"hamlet/stream"
)

// check requires that a parsed line fails only by its missing id or by the validation of
// the body.
func check(t *testing.T, e stream.Event) {
	if e.Label == stream.Unlabelled || e.Body.Kind == stream.NoBody {
		t.Fatalf("parsed without label or body: %+v", e)
	}
	for i := 1; i < len(e.Body.Vector); i++ {
		if e.Body.Vector[i].Name <= e.Body.Vector[i-1].Name {
			t.Fatalf("vector out of order: %+v", e.Body.Vector)
		}
	}
	if !utf8.ValidString(e.Body.Text) {
		t.Fatalf("text is not UTF-8: %q", e.Body.Text)
	}
}

func FuzzTextLine(f *testing.F) {
	for _, s := range []string{"ham\thi", "spam\t\xff", "x", "ham\t", "\t"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if e, err := newLabelling(FormatText, "").parseText(line); err == nil {
			check(t, e)
		}
	})
}

func FuzzSVMLightRow(f *testing.F) {
	for _, s := range []string{"+1 1:2 3:4e5", "-1", "0 9:1 10:2 #x", "1 1:1 1:1", "1 :1", "1 1:0x1p4"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if e, err := newSVMLight([]string{"7", "70", "7"}, newLabelling(FormatSVMLight, "")).parse(line); err == nil {
			check(t, e)
		}
	})
}

func FuzzCSVRow(f *testing.F) {
	for _, s := range []string{"a,b\n1,0", "1;2;1\n3;4;0", "\"x\"\"y\",\"l\"\n\"1\",spam", "1 2  0\n", "1\t2\t1", "a,,\n1,2,3"} {
		head, row, _ := strings.Cut(s, "\n")
		f.Add(head, row, row)
	}
	f.Fuzz(func(t *testing.T, head, first, row string) {
		if strings.ContainsAny(head+first+row, "\r\n") || strings.TrimSpace(head) == "" {
			return // a row is a line that is not blank
		}
		table, err := newTable([]string{head, first}, &Config{}, newLabelling(FormatCSV, ""))
		if err != nil {
			return
		}
		if len(table.dense) != len(table.inputs) || len(table.dense)+1 != len(table.columns) {
			t.Fatalf("table %+v", table)
		}
		if e, err := table.parse([]byte(row)); err == nil {
			check(t, e)
			if len(e.Body.Vector) != len(table.inputs) {
				t.Fatalf("%d numbers of %d", len(e.Body.Vector), len(table.inputs))
			}
		}
	})
}

func FuzzSplitRow(f *testing.F) {
	f.Add(`a,"b ""c"" , d",e`)
	f.Add(`;;`)
	f.Fuzz(func(t *testing.T, row string) {
		if strings.ContainsAny(row, "\r\n") {
			return // a row is a line
		}
		for _, comma := range ",;\t " {
			fields, err := newSplitter(comma).split(row)
			if err != nil {
				continue
			}
			// Written with quotes and read again, the fields are the same.
			var b strings.Builder
			for i, field := range fields {
				if i > 0 {
					b.WriteRune(comma)
				}
				b.WriteString(`"` + strings.ReplaceAll(field, `"`, `""`) + `"`)
			}
			again, err := newSplitter(comma).split(b.String())
			if err != nil || strings.Join(again, "\x00") != strings.Join(fields, "\x00") {
				t.Fatalf("%q splits into %q, written and read again %q, %v", row, fields, again, err)
			}
		}
	})
}

func FuzzIndexLine(f *testing.F) {
	for _, s := range []string{"ham,a/b", "spam,\"x,y\"", "x,y", "ham,", "ham"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		label, path, err := parseIndexLine(line)
		if err == nil && (label == stream.Unlabelled || path == "" || strings.ContainsRune(path, 0)) {
			t.Fatalf("%q gives %v, %q", line, label, path)
		}
	})
}

func FuzzDeliveryTime(f *testing.F) {
	f.Add([]byte("Received: by a; Mon, 2 Sep 2002 12:00:00 +0200\n\n"))
	f.Add([]byte("From a Mon Sep  2 12:00:00 2002\nDate: x\n y\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if at := deliveryTime(raw); !at.IsZero() && (at.Year() < 1970 || at.Year() > 2100) {
			t.Fatalf("time %v", at)
		}
	})
}

func FuzzFormat(f *testing.F) {
	for _, s := range []string{"ham\tx\n", "1 2:3\n", "1,2\n", "{", "From x", "Subject: x\n", "\xef\xbb\xbf{"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, head []byte) { formatOfContent(head) })
}

// A usual date is read at once as it would be by all the layouts.
func FuzzUsualDate(f *testing.F) {
	for s, usual := range map[string]bool{
		"Mon, 02 Sep 2002 12:30:41 -0700 (PDT)": true, " Thu, 1 Aug 2002 00:00:00 +0000": true,
		"Mon,  2 Sep 2002 12:30:41 -0000": true, "Mon, 2 Sep 2002 25:30:41 -0700": false,
		"Mon, 2 Sep 02 12:30:41 -0700": false, "Mon, 2 Sep 2002 12:30:41 PDT": false,
		"Mon, 2 Sep 2002 12:30:41 -0700 (a (b))": false, "Mon, 2 Sep 2002 12:30:41.5 -0700 ()": true,
	} {
		f.Add(s)
		if _, ok := usualDate(s); ok != usual {
			f.Errorf("%q is usual: %v", s, ok)
		}
	}
	f.Fuzz(func(t *testing.T, s string) {
		if at, ok := usualDate(s); ok && len(s) <= 200 {
			if want := anyDate(s); !plausible(at).Equal(want) {
				t.Errorf("%q is %v, and by all layouts %v", s, plausible(at), want)
			}
		}
	})
}
