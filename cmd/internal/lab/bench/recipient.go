package bench

import (
	"bytes"
	"strings"
)

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
