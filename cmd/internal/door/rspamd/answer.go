package rspamd

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/stream"
)

// The symbols of hamlet.
const (
	SymbolSpam        = "HAMLET_SPAM"
	SymbolHam         = "HAMLET_HAM"
	SymbolUnsure      = "HAMLET_UNSURE"
	SymbolUnavailable = "HAMLET_UNAVAILABLE"
)

// The actions that hamlet asks for, in rspamd's words.
const (
	actionNone    = "no action"
	actionHeader  = "add header"
	actionSubject = "rewrite subject"
)

// An answer is rspamd's answer to a scan.
type answer struct {
	skipped   bool
	score     json.Number
	action    string
	symbol    symbol
	subject   string // with the action "rewrite subject"
	add       []gateway.AddedField
	remove    []string
	messageID string
	took      time.Duration
}

// A symbol is one of rspamd's results.
type symbol struct {
	Name        string      `json:"name"`
	Score       json.Number `json:"score"`
	MetricScore json.Number `json:"metric_score"`
	Description string      `json:"description"`
	Options     []string    `json:"options"`
}

var descriptions = map[string]string{
	SymbolSpam:        "hamlet is sure that this is spam",
	SymbolHam:         "hamlet takes this for wanted mail",
	SymbolUnsure:      "hamlet is not sure what this is",
	SymbolUnavailable: "hamlet has no verdict",
}

// answer returns the answer to a scan and counts it.
func (s *Server) answer(r result) answer {
	a := answer{
		skipped: true, score: "0.00", action: actionNone,
		messageID: cmp.Or(r.facts.messageID, "undef"), took: r.took,
		remove: s.removed(r.facts.removed),
	}
	name, options := SymbolUnavailable, []string{r.reason}
	if r.decides != nil {
		a.skipped = false
		a.score = scoreOf(r.decides)
		a.action, a.subject = s.action(r)
		a.add = s.added(r, a.action)
		name, options = symbolOf(r.decides.Decision), s.options(r.decides)
	}
	a.symbol = symbol{name, a.score, a.score, descriptions[name], options}
	s.counts.scanned(a.action)
	return a
}

// scoreOf returns a verdict's score, which is rounded away from Required.
func scoreOf(v *stream.Verdict) json.Number {
	return json.Number(gateway.FormatScore(gateway.ScoreOf(v, Required), Required, 2))
}

func symbolOf(d stream.Decision) string {
	switch d {
	case stream.DecideSpam:
		return SymbolSpam
	case stream.DecideHam:
		return SymbolHam
	}
	return SymbolUnsure
}

// options returns what explains a verdict.
func (s *Server) options(v *stream.Verdict) []string {
	options := []string{
		"p=" + gateway.Probability(v.P),
		"lo=" + gateway.Probability(v.Interval[0]),
		"hi=" + gateway.Probability(v.Interval[1]),
	}
	for _, w := range v.Words[:min(s.door.Marks.Words, len(v.Words))] {
		options = append(options, gateway.FormatWord(w))
	}
	return options
}

// action returns what the client is to do, and the subject where it is to change it.
func (s *Server) action(r result) (action, subject string) {
	if r.decides.Decision != stream.DecideSpam {
		return actionNone, ""
	}
	if subject, changed := s.taggedSubject(r); changed {
		return actionSubject, subject
	}
	return actionHeader, ""
}

// added returns the fields of the first recipient's verdict, as far as they agree with
// the action.
func (s *Server) added(r result, action string) []gateway.AddedField {
	return s.door.Marks.Added(r.shown, action == actionSubject)
}

// removed returns the fields that the client is to remove: all that could be taken for
// ours, also where the message's header was not seen.
func (s *Server) removed(found []string) []string {
	names := []string{gateway.Field, gateway.FieldWords, gateway.FieldTag, gateway.FieldFlag, gateway.FieldStatus}
	names = slices.DeleteFunc(names, func(name string) bool { return !s.door.Marks.Ours(name) })
	for _, name := range found {
		if !slices.ContainsFunc(names, func(known string) bool { return strings.EqualFold(known, name) }) {
			names = append(names, name)
		}
	}
	return names
}

// An addedHeader is a value of the milter block's add_headers.
type addedHeader struct {
	Value string `json:"value"`
	Order int    `json:"order"` // its place in the header, from 0
}

// milter returns the block that clients with a milter's powers carry out.
func (a *answer) milter() map[string]any {
	add := map[string]addedHeader{}
	for i, f := range a.add {
		add[f.Name] = addedHeader{f.Value, i}
	}
	remove := map[string]int{}
	for _, name := range a.remove {
		remove[name] = 0 // all of that name
	}
	return map[string]any{"add_headers": add, "remove_headers": remove}
}

// json returns the answer in rspamd's format.
func (a *answer) json() []byte {
	outer := map[string]any{
		"messages":       map[string]any{},
		"message-id":     a.messageID,
		"time_real":      a.took.Seconds(),
		"is_spam":        a.action != actionNone,
		"is_skipped":     a.skipped,
		"score":          a.score,
		"required_score": json.Number(fmt.Sprintf("%.2f", float64(Required))),
		"action":         a.action,
		"symbols":        map[string]any{a.symbol.Name: a.symbol},
		"milter":         a.milter(),
	}
	if a.subject != "" {
		outer["subject"] = a.subject
	}
	text := &bytes.Buffer{}
	encoder := json.NewEncoder(text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(outer); err != nil {
		panic(err) // strings and numbers that we made
	}
	return bytes.TrimRight(text.Bytes(), "\n")
}

// rspamc returns the answer in the line protocol of rspamd.
func (a *answer) rspamc() []byte {
	word := "False"
	if a.action != actionNone {
		word = "True"
	}
	text := fmt.Appendf(nil, "RSPAMD/1.3 0 EX_OK\r\nMetric: default; %s; %s / %.2f / 0.0\r\nAction: %s\r\n",
		word, a.score, float64(Required), a.action)
	if a.subject != "" {
		text = fmt.Appendf(text, "Subject: %s\r\n", oneLine(a.subject))
	}
	text = fmt.Appendf(text, "Symbol: %s(%s)\r\n", a.symbol.Name, a.score)
	text = fmt.Appendf(text, "X-Symbol: %s(%s); %s [%s]\r\n", a.symbol.Name, a.score, a.symbol.Description,
		oneLine(strings.Join(a.symbol.Options, ", ")))
	for _, name := range a.remove {
		text = fmt.Appendf(text, "X-Milter-Del: %s\r\n", oneLine(name))
	}
	for i, f := range a.add {
		text = fmt.Appendf(text, "X-Milter-Add: %s[%d]: %s\r\n", f.Name, i, oneLine(f.Value))
	}
	return fmt.Appendf(text, "Message-ID: %s\r\n", oneLine(a.messageID))
}

// oneLine replaces what would end a line.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, s)
}
