package score

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"strings"

	"hamlet/cmd/internal/data/source"
	"hamlet/stream"
	"hamlet/stream/mail"
	"hamlet/stream/questions"
)

// A question is one request as it goes out.
type question struct {
	place string // the file, or where in the file
	questions.Question
}

func newQuestion(place, contentType string) question {
	return question{place, questions.Question{ContentType: contentType}}
}

// nothing says what it means that a file is empty.
const nothing = "there is nothing to score"

// A skippedError is about one message or one file; the next may be well.
type skippedError struct{ err error }

func (e *skippedError) Error() string { return e.err.Error() }
func (e *skippedError) Unwrap() error { return e.err }

func skipped(format string, args ...any) error { return &skippedError{fmt.Errorf(format, args...)} }

// read yields what the files hold, in order. Every error that it yields is
// a *skippedError, with the place in the question.
func read(files []string, format string, stdin io.Reader) iter.Seq2[question, error] {
	return func(yield func(question, error) bool) {
		for _, file := range files {
			var found iter.Seq2[question, error]
			switch format {
			case "text":
				found = texts(file, stdin)
			case "jsonl":
				found = lines(file, stdin)
			default:
				found = mails(file, stdin)
			}
			for q, err := range found {
				if !yield(q, err) {
					return
				}
			}
		}
	}
}

// mails yields the messages of one mailbox, reduced as they are before any wire.
func mails(file string, stdin io.Reader) iter.Seq2[question, error] {
	return func(yield func(question, error) bool) {
		none := true
		for m, err := range source.Messages(file, stdin) {
			none = false
			q := newQuestion(m.Place, questions.Mail)
			var rejected *source.Rejection
			var empty *source.EmptyError
			switch {
			case errors.As(err, &empty):
				q.place, err = nameOf(file), skipped("%s, %s", empty.What, nothing)
			case errors.As(err, &rejected):
				q.place, err = rejected.Place, &skippedError{rejected.Err}
			case err != nil:
				q.place, err = nameOf(file), skipped("%s", strings.TrimPrefix(err.Error(), nameOf(file)+": "))
			default:
				if q.Body, err = mail.Reduce(m.Raw); err != nil {
					err = &skippedError{err}
				}
			}
			if !yield(q, err) {
				return
			}
		}
		if none {
			yield(question{place: nameOf(file)}, skipped("the mailbox is empty, "+nothing))
		}
	}
}

func texts(file string, stdin io.Reader) iter.Seq2[question, error] {
	return func(yield func(question, error) bool) {
		q := newQuestion(nameOf(file), questions.Text)
		r, err := open(file, stdin)
		if err == nil {
			q.Body, err = io.ReadAll(io.LimitReader(r, stream.MaxEventSize+1))
			err = errors.Join(err, r.Close())
		}
		switch {
		case err != nil:
			err = skipped("cannot be read: %w", bare(err))
		case len(bytes.TrimSpace(q.Body)) == 0:
			err = skipped("the file is empty, " + nothing)
		case len(q.Body) > stream.MaxEventSize:
			err = skipped("the text has more than %d bytes; send a part of it", stream.MaxEventSize)
		}
		yield(q, err)
	}
}

// lines yields a file's lines, each a request in JSON. Empty ones don't count.
func lines(file string, stdin io.Reader) iter.Seq2[question, error] {
	return func(yield func(question, error) bool) {
		r, err := open(file, stdin)
		if err != nil {
			yield(question{place: nameOf(file)}, skipped("cannot be read: %w", bare(err)))
			return
		}
		defer r.Close()
		none := true
		n := 0
		for line, err := range source.Lines(r, stream.MaxEventSize) {
			n++
			line = bytes.TrimSpace(line)
			if err == nil && len(line) == 0 {
				continue
			}
			none = false
			q := newQuestion(fmt.Sprintf("%s:%d", nameOf(file), n), questions.JSON)
			switch {
			case errors.Is(err, source.ErrLineTooLong):
				err = skipped("the line has more than %d bytes", stream.MaxEventSize)
			case err != nil:
				err = skipped("cannot be read: %w", bare(err))
			case line[0] == '[':
				err = skipped("an array; one event a line is wanted")
			default:
				q.Body = bytes.Clone(line)
			}
			if !yield(q, err) {
				return
			}
		}
		if none {
			yield(question{place: nameOf(file)}, skipped("the file is empty, "+nothing))
		}
	}
}

func open(file string, stdin io.Reader) (io.ReadCloser, error) {
	if file == "-" {
		return io.NopCloser(stdin), nil
	}
	return os.Open(file)
}

func nameOf(file string) string {
	if file == "-" {
		return "standard input"
	}
	return file
}

// bare takes the operation and the path off an error of package os: the place
// names the file.
func bare(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
