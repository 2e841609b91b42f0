package bench

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"hamlet/stream"
)

// recipientHeaders name the recipient of a message, the most reliable first.
var recipientHeaders = []string{"delivered-to", "x-original-to", "envelope-to", "to"}

// recipientKey returns a key of an event's tenant and, for a mail, of a hash of its recipient.
func recipientKey(e *stream.Event) []byte {
	key := []byte(e.Tenant)
	if e.Body.Kind != stream.Mail {
		return key
	}
	if to := recipient(e.Body.Mail); to != "" {
		key = append(key, '/')
		key = strconv.AppendUint(key, xxhash.Sum64String(to), 16)
	}
	return key
}

// recipient returns the value of the most reliable recipient header, in lower case.
func recipient(mail []byte) string {
	best, value := len(recipientHeaders), ""
	for len(mail) > 0 {
		line, rest, _ := bytes.Cut(mail, []byte{'\n'})
		mail = rest
		line = bytes.TrimRight(line, "\r")
		if len(line) == 0 {
			break
		}
		name, v, ok := bytes.Cut(line, []byte{':'})
		if !ok || len(name) > 16 {
			continue
		}
		for i, h := range recipientHeaders[:best] {
			if strings.EqualFold(string(name), h) {
				best, value = i, strings.ToLower(strings.TrimSpace(string(v)))
				break
			}
		}
	}
	return value
}

// isTo reports whether a header of delivery (Delivered-To, X-Original-To,
// Envelope-To, To, Cc) of a message contains the text, in any case.
func isTo(raw []byte, text string) bool {
	text = strings.ToLower(text)
	delivery := false // inside a header of delivery, which may be folded
	for len(raw) > 0 {
		line, rest, _ := bytes.Cut(raw, []byte{'\n'})
		raw = rest
		line = bytes.TrimSuffix(line, []byte{'\r'})
		if len(line) == 0 {
			return false
		}
		if line[0] != ' ' && line[0] != '\t' {
			name, value, _ := bytes.Cut(line, []byte{':'})
			line, delivery = value, delivers(string(name))
		}
		if delivery && strings.Contains(strings.ToLower(string(line)), text) {
			return true
		}
	}
	return false
}

func delivers(header string) bool {
	switch strings.ToLower(strings.TrimSpace(header)) {
	case "delivered-to", "x-original-to", "envelope-to", "to", "cc":
		return true
	}
	return false
}
