package ingest

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"hamlet/stream"
)

// recipientHeaders name the recipient of a message, the most reliable first.
var recipientHeaders = []string{"delivered-to", "x-original-to", "envelope-to", "to"}

// Key returns the Kafka key of an event: its tenant and, for a mail, a hash of its
// recipient. So the events of one mailbox keep their order, and no key shows an
// address.
func Key(e *stream.Event) []byte {
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
