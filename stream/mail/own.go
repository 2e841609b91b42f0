package mail

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxTag bounds a tag, in bytes.
const maxTag = 32

// ValidTag returns an error if tag cannot be put before a subject and found there again. A
// tag has 1 to 32 bytes of printable ASCII, one that is not a blank among them, and not
// the "=?" that begins an encoded word.
func ValidTag(tag string) error {
	unprintable := func(r rune) bool { return r < ' ' || r > '~' }
	switch {
	case strings.Trim(tag, " ") == "":
		return errors.New("tag: empty")
	case len(tag) > maxTag:
		return fmt.Errorf("tag: %d bytes, more than %d", len(tag), maxTag)
	case strings.ContainsFunc(tag, unprintable):
		return errors.New("tag: a character is not printable ASCII")
	case strings.Contains(tag, "=?"):
		return errors.New(`tag: "=?" begins an encoded word`)
	}
	return nil
}

const ownName = "x-hamlet"

// spamNames are fields that many filters write. A gateway of ours writes them beside
// X-Hamlet, and removes those from outside. So beside X-Hamlet they are our own verdict,
// and a model that read them would learn what it said itself.
var spamNames = []string{"x-spam-flag", "x-spam-status", "x-spam-level", "x-spam-score"}

// isOwn reports whether we wrote the field of this name. The message is scored if it has
// an X-Hamlet field.
func isOwn(name []byte, scored bool) bool {
	if hasPrefixFold(name, ownName) && (len(name) == len(ownName) || name[len(ownName)] == '-') {
		return true
	}
	return scored && slices.ContainsFunc(spamNames, func(own string) bool { return equalFold(name, own) })
}

// topValue returns the value of a known field of the message itself.
func (s *scanner) topValue(k knownField) (value []byte, found bool) {
	fields := s.entities[0].fields
	for _, f := range s.fields[fields.start:fields.end] {
		if f.known == k {
			return s.raw[f.colon+1 : f.end], true
		}
	}
	return nil, false
}

// tag returns what a gateway of ours has put before the subject, without blanks around
// it, or nothing.
func (s *scanner) tag() []byte {
	value, found := s.topValue(tagField)
	if !found {
		return nil
	}
	tag := appendUnfolded(nil, value)
	if ValidTag(string(tag)) != nil {
		return nil
	}
	return tag
}

// cutTag returns an unfolded subject without the tag at its start and the blanks after it.
// An unfolded subject starts with no blank, so these were the tag's.
func cutTag(subject, tag []byte) (rest []byte, found bool) {
	if len(tag) == 0 {
		return subject, false
	}
	rest, found = bytes.CutPrefix(subject, tag)
	if found {
		rest = bytes.TrimLeft(rest, " \t")
	}
	return rest, found
}
