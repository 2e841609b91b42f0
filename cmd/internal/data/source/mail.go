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

// maxMessage is one byte more than mail.Reduce accepts, so that it can refuse larger
// messages.
const maxMessage = mail.MaxSize + 1

// A Message is a mail as a mailbox stores it.
type Message struct {
	Place string // file, "mbox:message n" or "archive:member"
	Raw   []byte // at most the first 25 MiB and a byte
}

// Messages reads the mail in path: an mbox file, a Maildir, a directory of messages, a
// tar of messages or one message. "-" is one message or an mbox on stdin. All may be
// compressed. A *[Rejection] is about one message; any other error is the last.
func Messages(path string, stdin io.Reader) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		s := &Source{cfg: Config{Stdin: stdin}}
		defer s.Close()
		box, err := s.openMailbox(path)
		if err != nil {
			yield(Message{}, err)
			return
		}
		box.messages(yield)
	}
}

// A mailbox is a set of files that hold messages.
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
	return &mailbox{files: files(names), single: true}, nil
}

// maildirOrTree returns the files in new and cur of a Maildir, sorted by name. Of any
// other directory it returns all files.
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
	// A name begins with the time of delivery.
	slices.SortFunc(names, func(a, b string) int {
		return strings.Compare(filepath.Base(a), filepath.Base(b))
	})
	return names, nil
}

// messages yields all messages of b. A [*Rejection] is about one message; any other
// error is the last.
func (b *mailbox) messages(yield func(Message, error) bool) {
	for _, in := range b.files {
		for m, err := range b.file(in) {
			if !yield(m, err) || err != nil && !isRejection(err) {
				return
			}
		}
	}
}

func (b *mailbox) file(in *input) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		// An unreadable message among many does not stop the others.
		fail := func(err error) {
			if b.single && ownFault(err) {
				yield(Message{}, &Rejection{Place: in.name, Err: err})
				return
			}
			yield(Message{}, fmt.Errorf("%s: %w", in.name, err))
		}
		r, closer, err := in.unpacked()
		for b.single && errors.Is(err, fs.ErrNotExist) {
			path, lookErr := movedTo(in.path)
			if lookErr != nil {
				fail(lookErr)
				return
			}
			if path == "" || path == in.path {
				break
			}
			in = &input{name: path, path: path}
			r, closer, err = in.unpacked()
		}
		if err != nil {
			fail(err)
			return
		}
		defer closer()
		head, _ := r.Peek(512)
		switch ext := formatExt(in.path); {
		case isTar(head):
			for e, err := range members(in.name, r) {
				var m Message
				if err == nil {
					m, err = e.message()
				}
				if !yield(m, err) {
					return
				}
			}
		case bytes.HasPrefix(head, []byte("From ")) && (!b.single || ext == ".mbox" || ext == ".mbx"):
			eachOfMbox(in.name, r, yield)
		default:
			raw, err := readMessage(r)
			if err != nil {
				fail(plain(err))
				return
			}
			yield(Message{in.name, raw}, nil)
		}
	}
}

// ownFault reports whether a message fails in every run: it is gone, permission is
// denied, or its compression is broken. Other errors of the system (too many open files,
// a disk, a network file system) may pass. They must not reject the message, because
// later runs would skip it as done.
func ownFault(err error) bool {
	var system syscall.Errno
	return !errors.As(err, &system) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)
}

// movedTo finds a message of a Maildir that is no longer at path. Mail programs move it
// from new to cur and change the flags after ":2," in its name. It returns "" if the
// message is gone, or path is in no Maildir.
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

func readMessage(r io.Reader) ([]byte, error) { return readSized(r, 0) }

// readSized reads a message that is said to have size bytes. What is said is not trusted: the memory
// for more than 1 MiB is taken as it comes.
func readSized(r io.Reader, size int64) ([]byte, error) {
	b := bytes.NewBuffer(make([]byte, 0, min(max(size, 0), 1<<20)+bytes.MinRead))
	_, err := b.ReadFrom(io.LimitReader(r, maxMessage))
	return b.Bytes(), err
}

func eachOfMbox(name string, r *bufio.Reader, yield func(Message, error) bool) {
	n := 0
	for raw, err := range mail.Mbox(r) {
		n++
		m := Message{fmt.Sprintf("%s:message %d", name, n), raw}
		switch {
		case errors.Is(err, mail.ErrTooLarge):
			err = &Rejection{Place: m.Place, Err: err}
		case err != nil:
			err = fmt.Errorf("%s: %w", m.Place, err)
		}
		if !yield(m, err) {
			return
		}
	}
}

// A member is a regular file of a tar.
type member struct {
	archive, name string
	size          int64
	content       io.Reader // until the next member
}

func (m *member) message() (Message, error) {
	place := m.archive + ":" + m.name
	raw, err := readSized(m.content, m.size)
	if err != nil {
		return Message{}, fmt.Errorf("%s: read the tar: %w", place, err)
	}
	return Message{place, raw}, nil
}

// members yields the members of a tar. An error is the last.
func members(archive string, r io.Reader) iter.Seq2[member, error] {
	return func(yield func(member, error) bool) {
		t := tar.NewReader(r)
		for {
			header, err := t.Next()
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(member{}, fmt.Errorf("%s: read the tar: %w", archive, err))
				return
			case header.Typeflag == tar.TypeReg && !yield(member{archive, memberName(header.Name), header.Size, t}, nil):
				return
			}
		}
	}
}

// memberName normalises a member's name, as an index may write it.
func memberName(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }

// mailDraft reduces a message to an event without an id.
func mailDraft(m Message, label stream.Label) (draft, error) {
	e := stream.Event{Label: label, Time: deliveryTime(m.Raw)}
	reduced, err := mail.Reduce(m.Raw)
	if err != nil {
		return rejected(m.Place, err)
	}
	e.Body = stream.Body{Kind: stream.Mail, Mail: reduced}
	return draft{event: e, place: m.Place}, nil
}

func (s *Source) openMail() error {
	if s.cfg.Index != "" {
		if len(s.cfg.Spam)+len(s.cfg.Ham) > 0 {
			return usagef("--index labels mail by itself: leave out --spam and --ham")
		}
		return s.openIndex()
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
	s.drafts = s.merged(boxes)
	return errors.Join(errs...)
}

type labelledBox struct {
	*mailbox
	label stream.Label
}

// merged reads all boxes and yields their messages by time of delivery. A message
// without a time gets that of its predecessor in the box. Equal times stay in the order
// of the command line. Rejections come first.
func (s *Source) merged(boxes []labelledBox) drafts {
	return func(yield func(draft, error) bool) {
		all := newSpool()
		defer all.close()
		type entry struct {
			time   time.Time
			place  string
			number int // in the spool
		}
		var entries []entry
		rejections := 0
		for _, box := range boxes {
			var last time.Time
			for m, err := range box.messages {
				var d draft
				if err == nil {
					d, err = mailDraft(m, box.label)
				}
				if err == nil {
					err = all.add(&d.event)
				}
				if err != nil {
					rejections++
					if !yield(d, err) || !isRejection(err) {
						return
					}
					continue
				}
				if !d.event.Time.IsZero() {
					last = d.event.Time
				}
				entries = append(entries, entry{last, d.place, len(entries)})
			}
		}
		if s.cfg.Shuffle == nil {
			s.total.Store(int64(len(entries) + rejections))
		}
		slices.SortStableFunc(entries, func(a, b entry) int { return a.time.Compare(b.time) })
		for _, next := range entries {
			e, err := all.at(next.number)
			if !yield(draft{event: e, place: next.place}, err) || err != nil {
				return
			}
		}
	}
}
