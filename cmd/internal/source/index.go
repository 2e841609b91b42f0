package source

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
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
	member bool // of an archive; else path is a file
	err    error
}

// parseIndexLine reads "label,path". The path may hold commas; quotes around it
// are taken off.
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
		rest := ""
		if path, rest, err = unquote(path); err != nil {
			return 0, "", err
		}
		if rest != "" {
			return 0, "", errors.New("something follows the closing quote")
		}
	}
	if path == "" || strings.ContainsRune(path, 0) {
		return 0, "", errors.New("the path is missing")
	}
	return label, path, nil
}

// prepareIndex reads the index and finds every message that it names.
func (s *Source) prepareIndex() error {
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
	members, err := membersOf(archives)
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

// readIndex reads the lines of an index. Those that say nothing remain, with
// their errors, and become rejections.
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
	l := lines{r: r, max: 64 << 10}
	for {
		line, err := l.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, ErrLineTooLong) {
			return nil, fmt.Errorf("%s: read line %d: %w", name, l.n+1, err)
		}
		entry := indexLine{place: fmt.Sprintf("%s:%d", name, l.n), err: err}
		if err == nil {
			text := string(bytes.TrimSpace(line))
			if text == "" || l.n == 1 && text == "label,path" {
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

// membersOf lists the archives' members. Those of a stream are found out later.
func membersOf(archives []*input) (map[string]bool, error) {
	members := map[string]bool{}
	for _, in := range archives {
		r, closer, err := in.open()
		if err != nil {
			return nil, err
		}
		err = func() error {
			defer closer()
			head, _ := r.Peek(512)
			if !isTar(head) {
				return usagef("%s: not a tar; --index takes a tar of messages or their folder", in.name)
			}
			if in.stream != nil {
				return nil
			}
			archive := tar.NewReader(r)
			for {
				header, err := archive.Next()
				if errors.Is(err, io.EOF) {
					return nil
				}
				if err != nil {
					return fmt.Errorf("%s: read the tar: %w", in.name, err)
				}
				if header.Typeflag == tar.TypeReg {
					members[memberName(header.Name)] = true
				}
			}
		}()
		if err != nil {
			return nil, err
		}
	}
	return members, nil
}

// resolve finds what each line of the index names: a member, or a file.
func resolve(list []indexLine, members map[string]bool, folders []string, piped bool, index string) error {
	missing, first := 0, ""
	for i := range list {
		entry := &list[i]
		if entry.err != nil {
			continue
		}
		if filepath.IsAbs(entry.path) {
			if isFile(entry.path) {
				continue
			}
		} else {
			if name := memberName(entry.path); members[name] {
				entry.path, entry.member = name, true
				continue
			}
			found := false
			for _, folder := range folders {
				if path := filepath.Join(folder, entry.path); isFile(path) {
					entry.path, found = path, true
					break
				}
			}
			if found {
				continue
			}
			if piped {
				entry.path, entry.member = memberName(entry.path), true
				continue
			}
		}
		if missing++; missing == 1 {
			first = fmt.Sprintf("%s names %s", entry.place, clip(entry.path))
		}
	}
	if missing == 0 {
		return nil
	}
	more := ""
	if missing > 1 {
		more = fmt.Sprintf(" (and %d more lines)", missing-1)
	}
	if len(members) == 0 {
		return fmt.Errorf("%s, which is no file under %s%s: give the tar that holds it as SOURCE",
			first, strings.Join(folders, " or "), more)
	}
	return fmt.Errorf("%s, which is neither a member of the tar nor a file under %s%s: mend %s, or give the tar that belongs to it",
		first, strings.Join(folders, " or "), more, index)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// indexed yields the messages in the order of the index. Where that is the
// archive's own order nothing is kept; a member that is met before its turn is
// spooled.
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
			var r *Rejection
			if !yield(d, err) || err != nil && !errors.As(err, &r) {
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

// A memberReader finds members of archives in any order, in one pass.
type memberReader struct {
	archives []*input
	wanted   map[string]int // how often each member is still to be read
	kept     map[string]int // places in the spool
	broken   map[string]error
	spool    *spool

	archive *tar.Reader // of archives[0]
	closer  func()
}

func newMemberReader(list []indexLine, archives []*input) *memberReader {
	m := &memberReader{
		archives: archives, spool: newSpool(),
		wanted: map[string]int{}, kept: map[string]int{}, broken: map[string]error{},
	}
	for _, entry := range list {
		if entry.member {
			m.wanted[entry.path]++
		}
	}
	return m
}

func (m *memberReader) find(entry *indexLine) (draft, error) {
	m.wanted[entry.path]--
	if err := m.broken[entry.path]; err != nil {
		return rejected(entry.place, err)
	}
	if i, ok := m.kept[entry.path]; ok {
		e, err := m.spool.at(i)
		e.Label = entry.label
		return draft{e, entry.place}, err
	}
	for {
		name, message, err := m.next()
		if errors.Is(err, io.EOF) {
			return draft{}, fmt.Errorf("%s names %s, which the archive does not hold: mend the index, or give the tar that belongs to it", entry.place, clip(entry.path))
		}
		if err != nil {
			return draft{}, err
		}
		if name == entry.path && m.wanted[name] == 0 {
			return mailDraft(message, entry.label)
		}
		if name != entry.path && m.wanted[name] == 0 {
			continue // not in the index, or a second member of that name
		}
		if err := m.keep(name, message); err != nil {
			return draft{}, err
		}
		if name != entry.path {
			continue
		}
		if err := m.broken[name]; err != nil {
			return rejected(entry.place, err)
		}
		return mailDraft(message, entry.label)
	}
}

// keep spools a message for its turn.
func (m *memberReader) keep(name string, message Message) error {
	if _, ok := m.kept[name]; ok || m.broken[name] != nil {
		return nil // the first of that name counts
	}
	d, err := mailDraft(message, stream.Ham) // the index has its label
	if err != nil {
		var r *Rejection
		if !errors.As(err, &r) {
			return err
		}
		m.broken[name] = r.Err
		return nil
	}
	m.kept[name] = m.spool.len()
	return m.spool.add(&d.event)
}

// next returns the archives' next member that the index still wants, or io.EOF.
func (m *memberReader) next() (string, Message, error) {
	for {
		if m.archive == nil {
			if len(m.archives) == 0 {
				return "", Message{}, io.EOF
			}
			r, closer, err := m.archives[0].open()
			if err != nil {
				return "", Message{}, err
			}
			m.archive, m.closer = tar.NewReader(r), closer
		}
		in := m.archives[0]
		header, err := m.archive.Next()
		if errors.Is(err, io.EOF) {
			m.endArchive()
			m.archives = m.archives[1:]
			continue
		}
		if err != nil {
			return "", Message{}, fmt.Errorf("%s: read the tar: %w", in.name, err)
		}
		name := memberName(header.Name)
		if _, ok := m.wanted[name]; !ok || header.Typeflag != tar.TypeReg {
			continue
		}
		raw, err := readMessage(m.archive)
		if err != nil {
			return "", Message{}, fmt.Errorf("%s:%s: read the tar: %w", in.name, header.Name, err)
		}
		return name, Message{in.name + ":" + name, raw}, nil
	}
}

// endArchive closes the archive that is being read, if there is one.
func (m *memberReader) endArchive() {
	if m.closer != nil {
		m.closer()
	}
	m.archive, m.closer = nil, nil
}

func (m *memberReader) close() {
	m.endArchive()
	m.spool.close()
}
