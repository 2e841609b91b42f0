package source

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"hamlet/stream"
)

// An indexLine is a line "label,path" of an index.
type indexLine struct {
	place  string
	label  stream.Label
	path   string
	member bool // of an archive; otherwise path is a file
	err    error
}

// parseIndexLine reads "label,path". The path may hold commas, and may be quoted.
func parseIndexLine(line string) (label stream.Label, path string, err error) {
	name, path, ok := strings.Cut(line, ",")
	if !ok {
		return 0, "", errors.New("label,path is wanted")
	}
	if label, err = parseLabel(strings.TrimSpace(name)); err != nil {
		return 0, "", err
	}
	path = strings.TrimSpace(path)
	if strings.HasPrefix(path, `"`) {
		fields, err := newSplitter(',').split(path)
		if err != nil || len(fields) > 1 {
			return 0, "", errors.New("the closing quote is not at the end of the path")
		}
		path = fields[0]
	}
	if path == "" || strings.ContainsRune(path, 0) {
		return 0, "", errors.New("the path is missing")
	}
	return label, path, nil
}

func (s *Source) openIndex() error {
	list, err := readIndex(s.cfg.Index)
	if err != nil {
		return fmt.Errorf("--index %w", err)
	}
	var (
		archives []*input
		folders  = []string{filepath.Dir(s.cfg.Index)}
		errs     []error
	)
	for _, path := range s.cfg.Paths {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			folders = append(folders, path)
			continue
		}
		found, err := s.inputsOf(path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		archives = append(archives, found...)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	members, err := memberNames(archives)
	if err != nil {
		return err
	}
	if err := resolve(list, members, folders, len(s.once) > 0, s.cfg.Index); err != nil {
		return err
	}
	if s.cfg.Shuffle == nil {
		s.total.Store(int64(len(list)))
	}
	s.drafts = indexed(list, archives)
	return nil
}

// readIndex reads the lines of an index. A malformed line stays in the list with its
// error and becomes a rejection.
func readIndex(name string) ([]indexLine, error) {
	if _, err := filesUnder(name); err != nil {
		return nil, err
	}
	r, closer, err := (&input{name: name, path: name}).open()
	if err != nil {
		return nil, err
	}
	defer closer()
	var list []indexLine
	n := 0
	for line, err := range Lines(r, 64<<10) {
		n++
		if err != nil && !errors.Is(err, ErrLineTooLong) {
			return nil, fmt.Errorf("%s: read line %d: %w", name, n, err)
		}
		entry := indexLine{place: fmt.Sprintf("%s:%d", name, n), err: err}
		if err == nil {
			text := string(bytes.TrimSpace(line))
			if text == "" || n == 1 && text == "label,path" {
				continue
			}
			entry.label, entry.path, entry.err = parseIndexLine(text)
		}
		list = append(list, entry)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: the index is empty: lines label,path are wanted", name)
	}
	return list, nil
}

// memberNames lists the archives' members. It does not list the members of a pipe.
func memberNames(archives []*input) (map[string]bool, error) {
	names := map[string]bool{}
	list := func(in *input) error {
		r, closer, err := in.open()
		if err != nil {
			return err
		}
		defer closer()
		if head, _ := r.Peek(512); !isTar(head) {
			return usagef("%s: not a tar; --index takes a tar of messages or their folder", in.name)
		}
		if in.stream != nil {
			return nil
		}
		for m, err := range members(in.name, r) {
			if err != nil {
				return err
			}
			names[m.name] = true
		}
		return nil
	}
	for _, in := range archives {
		if err := list(in); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// resolve finds the member or the file of each line of the index. Another path may be a
// member of a pipe.
func resolve(list []indexLine, members map[string]bool, folders []string, piped bool, index string) error {
	missing, first := 0, ""
	for i := range list {
		entry := &list[i]
		if entry.err != nil {
			continue
		}
		name, file := memberName(entry.path), ""
		if filepath.IsAbs(entry.path) {
			name, file = "", existing(entry.path)
		} else if !members[name] {
			for _, folder := range folders {
				if file = existing(filepath.Join(folder, entry.path)); file != "" {
					break
				}
			}
		}
		switch {
		case file != "":
			entry.path = file
		case name != "" && (members[name] || piped):
			entry.path, entry.member = name, true
		default:
			if missing++; missing == 1 {
				first = fmt.Sprintf("%s names %s", entry.place, clip(entry.path))
			}
		}
	}
	if missing == 0 {
		return nil
	}
	more := ""
	if missing > 1 {
		more = fmt.Sprintf(" (and %d more lines)", missing-1)
	}
	where := strings.Join(folders, " or ") + more
	if len(members) == 0 {
		return fmt.Errorf("%s, which is no file under %s: give the tar that holds it as SOURCE", first, where)
	}
	return fmt.Errorf("%s, which is neither a member of the tar nor a file under %s: correct %s, "+
		"or give the tar that belongs to it", first, where, index)
}

// existing returns path if it is a file, else "".
func existing(path string) string {
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return ""
	}
	return path
}

func indexed(list []indexLine, archives []*input) drafts {
	return func(yield func(draft, error) bool) {
		reader := newMemberReader(list, archives)
		defer reader.close()
		for i := range list {
			entry := &list[i]
			var (
				d   draft
				err error
			)
			switch {
			case entry.err != nil:
				d, err = rejected(entry.place, entry.err)
			case entry.member:
				d, err = reader.find(entry)
			default:
				d, err = readFileDraft(entry)
			}
			if !yield(d, err) || err != nil && !isRejection(err) {
				return
			}
		}
	}
}

func readFileDraft(entry *indexLine) (draft, error) {
	in := input{name: entry.path, path: entry.path}
	r, closer, err := in.open()
	if err != nil {
		return rejected(entry.place, err)
	}
	defer closer()
	raw, err := readMessage(r)
	if err != nil {
		return draft{}, fmt.Errorf("%s: %w", in.name, plain(err))
	}
	return mailDraft(Message{in.name, raw}, entry.label)
}

// A memberReader finds members of archives in any order, in one pass. It spools members
// that come before their turn, which archives in the order of the index do not have.
type memberReader struct {
	next    func() (member, error, bool) // the archives' members in their order
	stop    func()
	wanted  map[string]int // how often find will still return each member
	spooled map[string]spooledMember
	spool   *spool
}

// A spooledMember is a number in the spool, or the reason for a rejection.
type spooledMember struct {
	place int
	err   error
}

func newMemberReader(list []indexLine, archives []*input) *memberReader {
	m := &memberReader{spool: newSpool(), wanted: map[string]int{}, spooled: map[string]spooledMember{}}
	for _, entry := range list {
		if entry.member {
			m.wanted[entry.path]++
		}
	}
	m.next, m.stop = iter.Pull2(func(yield func(member, error) bool) {
		for _, in := range archives {
			r, closer, err := in.open()
			if err != nil {
				yield(member{}, err)
				return
			}
			for e, err := range members(in.name, r) {
				if !yield(e, err) {
					closer()
					return
				}
			}
			closer()
		}
	})
	return m
}

// find returns the message of an index's line. Of members with the same name it takes
// the first.
func (m *memberReader) find(entry *indexLine) (draft, error) {
	m.wanted[entry.path]--
	for {
		if s, ok := m.spooled[entry.path]; ok {
			if s.err != nil {
				return rejected(entry.place, s.err)
			}
			e, err := m.spool.at(s.place)
			e.Label = entry.label
			return draft{event: e, place: entry.place}, err
		}
		e, err, ok := m.next()
		if err != nil {
			return draft{}, err
		}
		if !ok {
			return draft{}, fmt.Errorf("%s names %s, which the archive does not hold: correct the index, "+
				"or give the tar that belongs to it", entry.place, clip(entry.path))
		}
		if _, ok := m.spooled[e.name]; ok || m.wanted[e.name] == 0 && e.name != entry.path {
			continue
		}
		message, err := e.message()
		if err != nil {
			return draft{}, err
		}
		d, err := mailDraft(message, entry.label)
		if m.wanted[e.name] == 0 {
			return d, err
		}
		if err := m.put(e.name, &d.event, err); err != nil {
			return draft{}, err
		}
	}
}

func (m *memberReader) put(name string, e *stream.Event, err error) error {
	var r *Rejection
	switch {
	case errors.As(err, &r):
		m.spooled[name] = spooledMember{err: r.Err}
		return nil
	case err != nil:
		return err
	}
	m.spooled[name] = spooledMember{place: m.spool.len()}
	return m.spool.add(e)
}

func (m *memberReader) close() {
	m.stop()
	m.spool.close()
}
