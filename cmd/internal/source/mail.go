package source

import (
	"archive/tar"
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"hamlet/stream"
	"hamlet/stream/mail"
)

// maxMessage is one byte more than mail.Reduce takes: enough for it to see that
// a message is too large, and no more of it.
const maxMessage = mail.MaxSize + 1

// A Message is a mail as it lies in a mailbox.
type Message struct {
	Place string // file, "mbox:message n" or "archive:member"
	Raw   []byte // at most the first 25 MiB and a byte
}

// Messages reads the mail in path: an mbox file, a Maildir, a directory of
// messages, a tar of messages, one message, or "-" for one message or an mbox on
// stdin; packed or not. An error about one message is a *[Rejection].
func Messages(path string, stdin io.Reader) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		s := &Source{cfg: Config{Stdin: stdin}}
		defer s.Close()
		box, err := s.openMailbox(path)
		if err != nil {
			yield(Message{}, err)
			return
		}
		box.messages()(yield)
	}
}

// A mailbox is a place where messages lie.
type mailbox struct {
	files  []*input
	single bool // every file is one message
}

func (s *Source) openMailbox(path string) (*mailbox, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		files, err := s.inputsOf(path)
		return &mailbox{files: files}, err
	}
	names, err := maildirOrTree(path)
	if err != nil {
		return nil, err
	}
	box := &mailbox{single: true}
	for _, name := range names {
		box.files = append(box.files, &input{name: name, path: name})
	}
	return box, nil
}

// maildirOrTree returns the messages of a Maildir, delivered and seen ones, by
// name; of any other directory all files under it.
func maildirOrTree(dir string) ([]string, error) {
	subs := []string{filepath.Join(dir, "cur"), filepath.Join(dir, "new")}
	if slices.ContainsFunc(subs, func(sub string) bool { info, err := os.Stat(sub); return err != nil || !info.IsDir() }) {
		return filesUnder(dir)
	}
	var names []string
	for _, sub := range subs {
		entries, err := os.ReadDir(sub)
		if err != nil {
			return nil, fmt.Errorf("%s: cannot be read: %w", sub, plain(err))
		}
		for _, e := range entries {
			if name := filepath.Join(sub, e.Name()); !strings.HasPrefix(e.Name(), ".") && isRegular(name) {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return nil, &EmptyError{dir, "the Maildir is empty"}
	}
	// A name begins with the time of delivery; cur and new together are in order.
	slices.SortFunc(names, func(a, b string) int {
		return strings.Compare(filepath.Base(a), filepath.Base(b))
	})
	return names, nil
}

func (b *mailbox) messages() iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for _, in := range b.files {
			if !b.file(in, yield) {
				return
			}
		}
	}
}

func (b *mailbox) file(in *input, yield func(Message, error) bool) (more bool) {
	// One message among many that cannot be learnt from does not keep the others
	// from being learnt.
	fail := func(err error) bool {
		if b.single && ownFault(err) {
			return yield(Message{}, &Rejection{Place: in.name, Err: err})
		}
		yield(Message{}, fmt.Errorf("%s: %w", in.name, err))
		return false
	}
	r, closer, err := in.unpacked()
	for b.single && errors.Is(err, fs.ErrNotExist) {
		path, lookErr := movedTo(in.path)
		if lookErr != nil {
			return fail(lookErr)
		}
		if path == "" || path == in.path {
			break
		}
		in = &input{name: path, path: path}
		r, closer, err = in.unpacked()
	}
	if err != nil {
		return fail(err)
	}
	defer closer()
	head, _ := r.Peek(512)
	switch ext := formatExt(in.path); {
	case isTar(head):
		return eachMember(in.name, r, func(m Message) bool { return yield(m, nil) }, func(err error) { yield(Message{}, err) })
	case bytes.HasPrefix(head, []byte("From ")) && (!b.single || ext == ".mbox" || ext == ".mbx"):
		return eachOfMbox(in.name, r, yield)
	}
	raw, err := readMessage(r)
	if err != nil {
		return fail(plain(err))
	}
	return yield(Message{in.name, raw}, nil)
}

// ownFault reports whether a message would fail the same way at every reading: it
// is gone, or not ours to read, or its packing is broken. Any other error of the
// system (too many open files, a disk, a network file system) passes, and a
// message rejected for it would be taken for done by the runs that come after.
func ownFault(err error) bool {
	var system syscall.Errno
	return !errors.As(err, &system) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)
}

// movedTo returns where a message of a Maildir lies now that is no longer at path:
// who sees it moves it from new to cur, and flags are part of its name, behind
// ":2,". It returns "" if the message is gone, or path is in no Maildir.
func movedTo(path string) (string, error) {
	dir, name := filepath.Split(path)
	dir = filepath.Clean(dir)
	if sub := filepath.Base(dir); sub != "new" && sub != "cur" {
		return "", nil
	}
	unique, _, _ := strings.Cut(name, ":2,")
	for _, sub := range []string{"cur", "new"} {
		sub = filepath.Join(filepath.Dir(dir), sub)
		entries, err := os.ReadDir(sub)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("look for it in %s: %w", sub, plain(err))
		}
		for _, e := range entries {
			if now, _, _ := strings.Cut(e.Name(), ":2,"); now == unique {
				return filepath.Join(sub, e.Name()), nil
			}
		}
	}
	return "", nil
}

// formatExt returns the extension in lower case, compression put aside.
func formatExt(name string) string {
	name = strings.ToLower(name)
	return filepath.Ext(strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst"))
}

func readMessage(r io.Reader) ([]byte, error) { return io.ReadAll(io.LimitReader(r, maxMessage)) }

func eachOfMbox(name string, r *bufio.Reader, yield func(Message, error) bool) (more bool) {
	n := 0
	for raw, err := range mail.Mbox(r) {
		n++
		place := fmt.Sprintf("%s:message %d", name, n)
		switch {
		case errors.Is(err, mail.ErrTooLarge):
			if !yield(Message{}, &Rejection{Place: place, Err: err}) {
				return false
			}
		case err != nil:
			yield(Message{}, fmt.Errorf("%s: %w", place, err))
			return false
		case !yield(Message{place, raw}, nil):
			return false
		}
	}
	return true
}

// eachMember reads the regular files of a tar.
func eachMember(name string, r io.Reader, each func(Message) bool, fail func(error)) (more bool) {
	archive := tar.NewReader(r)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return true
		}
		if err != nil {
			fail(fmt.Errorf("%s: read the tar: %w", name, err))
			return false
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		raw, err := readMessage(archive)
		if err != nil {
			fail(fmt.Errorf("%s:%s: read the tar: %w", name, header.Name, err))
			return false
		}
		if !each(Message{name + ":" + memberName(header.Name), raw}) {
			return false
		}
	}
}

// memberName is a member's name as an index may have it.
func memberName(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }

// mailDraft reduces a message to an event without an id.
func mailDraft(m Message, label stream.Label) (draft, error) {
	e := stream.Event{Label: label, Time: deliveryTime(m.Raw)}
	reduced, err := mail.Reduce(m.Raw)
	if err != nil {
		return rejected(m.Place, err)
	}
	e.Body = stream.Body{Kind: stream.Mail, Mail: reduced}
	return draft{e, m.Place}, nil
}

// prepareMail opens what --spam, --ham and --index name.
func (s *Source) prepareMail() error {
	if s.cfg.Index != "" {
		if len(s.cfg.Spam)+len(s.cfg.Ham) > 0 {
			return usagef("--index labels mail by itself: leave out --spam and --ham")
		}
		return s.prepareIndex()
	}
	if len(s.cfg.Paths) > 0 {
		return usagef("%s: mail given without its label; put --spam or --ham before it, or use --index", s.cfg.Paths[0])
	}
	var (
		boxes []labelledBox
		errs  []error
	)
	open := func(paths []string, flag string, label stream.Label) {
		for _, path := range paths {
			box, err := s.openMailbox(path)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s %w", flag, err))
				continue
			}
			boxes = append(boxes, labelledBox{box, label})
		}
	}
	open(s.cfg.Spam, "--spam", stream.Spam)
	open(s.cfg.Ham, "--ham", stream.Ham)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	s.drafts = s.merged(boxes)
	return nil
}

type labelledBox struct {
	*mailbox
	label stream.Label
}

// merged reads all boxes and yields their messages by time of delivery. One
// whose time is unknown stays behind the one before it in its box; equal times
// keep the order of the command line. Rejections come first.
func (s *Source) merged(boxes []labelledBox) drafts {
	return func(yield func(draft, error) bool) {
		all := newSpool()
		defer all.close()
		type entry struct {
			time  time.Time
			place string
		}
		var entries []entry
		rejections := 0
		for _, box := range boxes {
			var last time.Time
			for m, err := range box.messages() {
				var d draft
				if err == nil {
					d, err = mailDraft(m, box.label)
				}
				var r *Rejection
				switch {
				case errors.As(err, &r):
					rejections++
					if !yield(d, err) {
						return
					}
					continue
				case err != nil:
					yield(draft{}, err)
					return
				}
				if !d.event.Time.IsZero() {
					last = d.event.Time
				}
				if err := all.add(&d.event); err != nil {
					yield(draft{}, err)
					return
				}
				entries = append(entries, entry{last, d.place})
			}
		}
		if s.cfg.Shuffle == nil {
			s.total.Store(int64(all.len() + rejections))
		}
		order := make([]int, len(entries))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return entries[a].time.Compare(entries[b].time) })
		for _, i := range order {
			e, err := all.at(i)
			if !yield(draft{e, entries[i].place}, err) || err != nil {
				return
			}
		}
	}
}
