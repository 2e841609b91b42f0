package score

import (
	"errors"
	"fmt"
	"io"
	"time"

	"hamlet/cmd/internal/process/cli"
	"hamlet/stream"
)

// A printer writes answers: lines for people, or JSON Lines.
type printer struct {
	out, err io.Writer
	json     bool
	reasons  int
	words    int

	answered, failed int
	first            error // of the failures
	model            stream.ModelRef
	rule             string // in words, that was printed last
}

type jsonVerdict struct {
	File string `json:"file"`
	stream.Verdict
}

type jsonFailure struct {
	File  string `json:"file"`
	Error string `json:"error"`
}

func (p *printer) verdict(place string, v stream.Verdict) error {
	p.answered++
	p.model = v.Model
	if p.json {
		return cli.PrintJSON(p.out, jsonVerdict{place, v})
	}
	_, err := fmt.Fprintf(p.out, "%-6s  p = %s  (90 %%: %s to %s)  %s\n",
		v.Decision, probability(v.P), probability(v.Interval[0]), probability(v.Interval[1]), place)
	rule := ""
	if v.Rule != nil {
		rule = ruleText(v.Rule)
	}
	if rule != p.rule && rule != "" && err == nil {
		_, err = fmt.Fprintf(p.out, "        %s\n", rule)
	}
	p.rule = rule
	for i := 0; i < min(p.reasons, len(v.Reasons)) && err == nil; i++ {
		r := v.Reasons[i]
		_, err = fmt.Fprintf(p.out, "        %+6.2f ± %.2f  %s\n", r.Contribution, r.SD, r.Name)
	}
	for i := 0; i < min(p.words, len(v.Words)) && err == nil; i++ {
		w := v.Words[i]
		shared := ""
		if w.Shared {
			shared = " (shared)"
		}
		_, err = fmt.Fprintf(p.out, "        %+6.2f         %s: %s%s\n", w.Contribution, w.Where, w.Text, shared)
	}
	return cli.Written(err)
}

func (p *printer) failure(place string, err error) error {
	p.failed++
	text := fmt.Errorf("%s: %w", place, err)
	if p.first == nil {
		p.first = text
		if !p.json {
			return nil // if it stays alone, it is the command's error
		}
	}
	if p.json {
		return cli.PrintJSON(p.out, jsonFailure{place, err.Error()})
	}
	if p.failed > mostFailures {
		return nil // close counts them
	}
	_, err = fmt.Fprintln(p.err, text)
	return cli.Written(err)
}

// mostFailures is how many failures are told one by one.
const mostFailures = 10

// close says which model it was, and returns the error that stands for all.
func (p *printer) close() error {
	if p.answered > 0 && !p.json {
		age := (time.Duration(p.model.AgeMS) * time.Millisecond).Round(100 * time.Millisecond)
		if _, err := fmt.Fprintf(p.out, "model %s %.12s, saved %v ago\n", p.model.Name, p.model.SHA256, age); err != nil {
			return cli.Written(err)
		}
	}
	switch {
	case p.failed == 1:
		return p.first
	case p.failed > 1:
		return fmt.Errorf("%d of %d messages couldn't be scored; the first: %w", p.failed, p.failed+p.answered, p.first)
	case p.answered == 0:
		return errors.New(nothing)
	}
	return nil
}

// probability writes p with three decimals, or as many more as it takes to show
// that it is not 1; below 0.0005 as a power of ten.
func probability(p float64) string {
	if p > 0 && p <= 0.0005 {
		return fmt.Sprintf("%.0e", p)
	}
	text := fmt.Sprintf("%.3f", p)
	for decimals := 4; p < 1 && text[0] == '1'; decimals++ {
		text = fmt.Sprintf("%.*f", decimals, p)
	}
	return text
}
