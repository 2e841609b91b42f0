package source

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hamlet/stream"
)

// letter writes a message that was delivered at this hour.
func letter(subject string, hour int) string {
	return fmt.Sprintf("Received: from a by b; Mon, 2 Sep 2002 %02d:00:00 +0000\nSubject: %s\n\nhello\n", hour, subject)
}

// tarOf packs pairs of name and content.
func tarOf(t *testing.T, files ...string) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		if err := w.WriteHeader(&tar.Header{Name: files[i], Size: int64(len(files[i+1])), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		w.Write([]byte(files[i+1]))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// subjects describes mail events by label and subject.
func subjects(items []Item) (out []string) {
	for _, item := range items {
		_, rest, _ := strings.Cut(string(item.Event.Body.Mail), "Subject: ")
		subject, _, _ := strings.Cut(rest, "\n")
		out = append(out, item.Truth.String()+" "+subject)
	}
	return out
}

func TestMailIsMergedByDelivery(t *testing.T) {
	dir := t.TempDir()
	box := write(t, dir, "spam.mbox", "From x Mon Sep  2 02:00:00 2002\n"+letter("two", 2)+"\nFrom y Mon Sep  2 05:00:00 2002\n"+letter("five", 5)+"\n")
	write(t, dir, "maildir/cur/1030928400.a:2,S", letter("one", 1))
	write(t, dir, "maildir/new/1030939200.b", letter("four", 4))
	write(t, dir, "maildir/tmp/1.c", letter("unfinished", 0))
	write(t, dir, "plain/1", letter("three", 3))
	write(t, dir, "plain/2", "Subject: undated\n\nstays behind the one before it\n")
	write(t, dir, "plain/sub/3", "Date: Mon, 2 Sep 2002 08:00:00 +0200\nSubject: six by its date\n\nhi\n")
	write(t, dir, "plain/sub/4", " \n")
	archive := write(t, dir, "spam.tar.gz", gzipped(t, tarOf(t, "./a", letter("seven", 7), "b", letter("zero", 0))))
	cfg := Config{
		Spam: []string{box, archive},
		Ham:  []string{filepath.Join(dir, "maildir"), filepath.Join(dir, "plain")},
	}
	items, rejections := read(t, cfg)
	want := []string{"spam zero", "ham one", "spam two", "ham three", "ham undated", "ham four", "spam five", "ham six by its date", "spam seven"}
	if d := cmp.Diff(want, subjects(items)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if len(rejections) != 1 || !strings.Contains(rejections[0], "empty") {
		t.Errorf("rejected %q", rejections)
	}
	if at := items[2].Event.Time; !at.Equal(time.Date(2002, 9, 2, 2, 0, 0, 0, time.UTC)) {
		t.Errorf("time %v", at)
	}
	if e := items[4].Event; !e.Time.IsZero() || e.Body.Kind != stream.Mail {
		t.Errorf("undated: %+v", e)
	}
}

func TestIndex(t *testing.T) {
	dir := t.TempDir()
	archive := write(t, dir, "corpus/mail.tar", tarOf(t, "spam/1", letter("a", 1), "ham/1", letter("b", 2), "ham/2", letter("c", 3), "other", letter("d", 4), "void", "\n"))
	write(t, dir, "corpus/beside", letter("beside", 9))
	far := write(t, dir, "elsewhere/far", letter("far", 9))
	write(t, dir, "folder/inside", letter("inside", 9))
	index := write(t, dir, "corpus/index.csv", strings.Join([]string{
		"ham,ham/2", "spam,./spam/1", "ham,beside", "spam," + far, "good,ham/1", "ham,inside", "ham,void", "ham,ham/2", "", "spam,\"ham/1\"", "spam",
	}, "\r\n"))
	s, err := Open(Config{Index: index, Paths: []string{archive, filepath.Join(dir, "folder")}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"ham c", "spam a", "ham beside", "spam far", "ham inside", "ham c", "spam b"}
	for range 2 { // it can be read again
		items, rejections := drain(t, s)
		if d := cmp.Diff(want, subjects(items)); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		if len(rejections) != 3 || !strings.Contains(rejections[0], `index.csv:5: label: "good"`) ||
			!strings.Contains(rejections[1], "mail.tar:void: reduce mail") || !strings.Contains(rejections[2], "index.csv:11: label,path is wanted") {
			t.Errorf("rejected %q", rejections)
		}
	}
	if n, known := s.Total(); n != 10 || !known {
		t.Errorf("Total() = %d, %v", n, known)
	}

	piped := Config{Index: write(t, dir, "p.csv", "ham,ham/2\nspam,spam/1\n"), Paths: []string{"-"}}
	piped.Stdin = strings.NewReader(gzipped(t, tarOf(t, "spam/1", letter("a", 1), "ham/2", letter("c", 3))))
	items, _ := read(t, piped)
	if d := cmp.Diff([]string{"ham c", "spam a"}, subjects(items)); d != "" {
		t.Errorf("a tar from standard input (-want +got):\n%s", d)
	}

	for _, tt := range []struct {
		cfg  Config
		want string
	}{
		{Config{Index: write(t, dir, "i1", "ham,no/such\nham,neither\n"), Paths: []string{archive}}, "names no/such, which is neither a member of the tar nor a file"},
		{Config{Index: write(t, dir, "i2", "ham,no/such\n")}, "give the tar that holds it as SOURCE"},
		{Config{Index: write(t, dir, "i3", "")}, "the file is empty"},
		{Config{Index: write(t, dir, "i4", "\n\n")}, "the index is empty"},
		{Config{Index: filepath.Join(dir, "i5")}, "no such file"},
		{Config{Index: index, Paths: []string{index}}, "not a tar"},
		{Config{Index: index, Spam: []string{far}}, "leave out --spam and --ham"},
		{Config{Index: index, Format: "csv"}, "--spam, --ham and --index label mail"},
		{Config{Spam: []string{far}, Paths: []string{far}}, "put --spam or --ham before it"},
		{Config{Spam: []string{dir + "/x"}, Ham: []string{write(t, dir, "none.mbox", "")}}, "none.mbox: the file is empty"},
	} {
		if _, err := Open(tt.cfg); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %q", err, tt.want)
		}
	}
}

func TestMessages(t *testing.T) {
	dir := t.TempDir()
	places := func(path, stdin string) (out []string) {
		for m, err := range Messages(path, strings.NewReader(stdin)) {
			var r *Rejection
			if err != nil && !errors.As(err, &r) {
				t.Fatal(err)
			}
			out = append(out, fmt.Sprintf("%s %d", strings.TrimPrefix(m.Place, dir+"/"), len(m.Raw)))
		}
		return out
	}
	one := letter("x", 1)
	box := "From a Mon Sep  2 02:00:00 2002\n" + one + "\nFrom a Mon Sep  2 02:00:00 2002\n" + one
	full := len("From a Mon Sep  2 02:00:00 2002\n") + len(one)
	for _, tt := range []struct {
		path, stdin string
		want        []string
	}{
		{"-", one, []string{fmt.Sprintf("standard input %d", len(one))}},
		{"-", box, []string{fmt.Sprintf("standard input:message 1 %d", full), fmt.Sprintf("standard input:message 2 %d", full)}},
		{write(t, dir, "m.eml", one), "", []string{fmt.Sprintf("m.eml %d", len(one))}},
		// In a directory a file is one message, even where a body begins a line with From.
		{filepath.Dir(write(t, dir, "d/1", box)), "", []string{fmt.Sprintf("d/1 %d", len(box))}},
		{write(t, dir, "t.tar", tarOf(t, "x", one)), "", []string{fmt.Sprintf("t.tar:x %d", len(one))}},
	} {
		if d := cmp.Diff(tt.want, places(tt.path, tt.stdin)); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.path, d)
		}
	}
}

// ~/Mail/Junk is often a link to a directory on another disk.
func TestMessagesBehindALink(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real"), filepath.Join(dir, "Junk")
	if err := os.MkdirAll(filepath.Join(real, ".hidden"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"1", "2", ".hidden/3"} {
		if err := os.WriteFile(filepath.Join(real, name), []byte("Subject: a\n\nb\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(real, link); err != nil {
		t.Skip(err)
	}
	names, err := filesUnder(link)
	if want := []string{filepath.Join(link, "1"), filepath.Join(link, "2")}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%q, %v; want %q", names, err, want)
	}
}

// A message beyond mail's limit is rejected; it isn't read into memory whole.
func TestHugeMessage(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "box/huge", letter("huge", 1)+strings.Repeat("line of text\n", 30<<20/13))
	write(t, dir, "box/small", letter("small", 2))
	items, rejections := read(t, Config{Ham: []string{filepath.Join(dir, "box")}})
	if len(items) != 1 || len(rejections) != 1 || !strings.Contains(rejections[0], "larger than 25 MiB") {
		t.Errorf("%d items, rejected %q", len(items), rejections)
	}
}

// The time of delivery orders merged mail, so it must not depend on the machine's zone,
// in which package time looks up names of zones.
func TestDeliveryTime(t *testing.T) {
	local := time.Local
	defer func() { time.Local = local }()
	for _, time.Local = range []*time.Location{time.UTC, time.FixedZone("EST", -5*3600), time.FixedZone("CEST", 2*3600)} {
		testDeliveryTime(t)
	}
}

func testDeliveryTime(t *testing.T) {
	for _, tt := range []struct{ raw, want string }{
		{"Received: by a; Mon, 2 Sep 2002 12:00:00 +0200 (CEST)\nReceived: by b; Mon, 2 Sep 2002 01:00:00 +0000\n\n", "2002-09-02T10:00:00Z"},
		{"Received: from x (y; z)\n\tby a with SMTP id 1;\n\tMon,  2 Sep 2002 12:00:00 -0700 (PDT)\n\n", "2002-09-02T19:00:00Z"},
		{"Received: no date here\nDate: 2 Sep 2002 12:00 GMT\n\n", "2002-09-02T12:00:00Z"},
		{"Date: Mon, 02 Sep 02 12:00:00 EST5EDT\n\n", "2002-09-02T12:00:00Z"},
		{"Date: Mon, 2 Sep 2002 12:00:00 EST\n\n", "2002-09-02T17:00:00Z"},
		{"Date: Mon, 2 Sep 2002 12:00:00 pdt (summer)\n\n", "2002-09-02T19:00:00Z"},
		{"Date: Mon, 2 Sep 2002 12:00:00 CEST\n\n", "2002-09-02T12:00:00Z"},
		{"Date: Mon, 2 Sep 2002 12:00:00 Pacific Standard Time\n\n", "2002-09-02T12:00:00Z"},
		{"Date: Monday, 2 Sep 2002 12:00:00 -0000\n\n", "2002-09-02T12:00:00Z"},
		{"Date: Mon Sep  2 12:00:00 2002\n\n", "2002-09-02T12:00:00Z"},
		{"Date: Mon, 2 Sep 0102 12:00:00 +0000\n\n", ""},
		{"From a@b Mon Sep  2 12:00:00 2002\nSubject: x\n\nDate: Mon, 2 Sep 1999 12:00:00 +0000\n", "2002-09-02T12:00:00Z"},
		{"Subject: x\n\n", ""},
		{"", ""},
	} {
		got := ""
		if at := deliveryTime([]byte(tt.raw)); !at.IsZero() {
			got = at.Format(time.RFC3339)
		}
		if got != tt.want {
			t.Errorf("deliveryTime(%q) = %q, want %q", tt.raw, got, tt.want)
		}
	}
}

// A Maildir may hold other files, and lose messages while it is read. The other messages
// are learnt, also those that a mail program moves meanwhile.
func TestMaildirWithWhatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	for _, sub := range []string{"cur", "new", "tmp"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string) string {
		path := filepath.Join(dir, "cur", name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const message = "Subject: lunch\n\nat noon\n"
	write("1:2,S", message)
	moved := write("2:2,", message)
	packed := write("3:2,S", "\x1f\x8bno gzip")
	gone := write("4:2,S", message)
	write("4a:2,S", message)
	arrived := filepath.Join(dir, "new", "4b")
	if err := os.WriteFile(arrived, []byte(message), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "cur", "5"), 0o600); err != nil { // nobody ever writes to it
		t.Fatal(err)
	}
	for link, to := range map[string]string{"6": "/nowhere", "7": "/dev/zero", "8": dir} {
		if err := os.Symlink(to, filepath.Join(dir, "new", link)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Open(Config{Ham: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := errors.Join(
		os.Rename(moved, moved+"S"), // somebody read the message meanwhile
		os.Rename(arrived, filepath.Join(dir, "cur", "4b:2,S")),
		os.Remove(gone),
	); err != nil {
		t.Fatal(err)
	}
	events, places := 0, []string{}
	for _, err := range s.Events() {
		var r *Rejection
		switch {
		case err == nil:
			events++
		case errors.As(err, &r):
			places = append(places, r.Place)
			if strings.Count(r.Error(), r.Place) != 1 {
				t.Errorf("it says %q", r)
			}
		default:
			t.Fatal(err)
		}
	}
	if want := []string{packed, gone}; events != 4 || !slices.Equal(places, want) {
		t.Errorf("%d events, rejected %q; want 4, and %q", events, places, want)
	}
}

// An error of the system ends the run. After a rejection the next run would skip the
// message.
func TestMaildirOnAFailingSystem(t *testing.T) {
	for name, fail := range map[string]func(path string) error{ // errors that a test can have, for EMFILE and EIO
		"open": func(path string) error { return os.Symlink(path, path) }, // ELOOP
		"read": func(path string) error { return os.Mkdir(path, 0o700) },  // EISDIR
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, sub := range []string{"cur", "new"} {
				if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			path := filepath.Join(dir, "cur", "1:2,S")
			if err := os.WriteFile(path, []byte("Subject: lunch\n\nat noon\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := Open(Config{Ham: []string{dir}})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := errors.Join(os.Remove(path), fail(path)); err != nil {
				t.Fatal(err)
			}
			for _, err = range s.Events() {
			}
			var r *Rejection
			if err == nil || errors.As(err, &r) || strings.Count(err.Error(), path) != 1 {
				t.Errorf("%v, want an error that ends the run and names %s once", err, path)
			}
		})
	}
}
