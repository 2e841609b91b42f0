package page

import (
	"context"
	"errors"
	"strings"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/stream/nats"
	"hamlet/stream/questions"
)

// mostError bounds the text of an error, in runes.
const mostError = 300

// clipped returns an error's text as pages show it: visible, and not without end.
func clipped(err error) string { return Clip(Visible(err.Error()), mostError) }

// Sentence returns an error as a sentence.
func Sentence(err error) string {
	text := clipped(err)
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}

// Doing says in a sentence what could not be done, and why.
func Doing(doing string, err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return doing + ": there was no answer in time."
	}
	return doing + ": " + strings.TrimSuffix(clipped(err), ".") + "."
}

// Away says in a sentence why NATS or a scorer does not answer.
func Away(err error) string {
	var refused *questions.Refusal
	switch {
	case errors.Is(err, questions.ErrNoAnswerer):
		return "No scorer of this model is there to answer. hamlet up starts one, and so does hamlet scorer."
	case errors.Is(err, nats.ErrNoServer), errors.Is(err, natsgo.ErrConnectionClosed):
		return "NATS cannot be reached, and scorers and the journal are there. Load this page again."
	case errors.Is(err, context.DeadlineExceeded):
		return "There was no answer in time. Load this page again."
	case errors.As(err, &refused):
		return Doing("The scorer says", refused)
	}
	return Sentence(err)
}

// Clip cuts s to n runes, and says by … that there is more.
func Clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}
