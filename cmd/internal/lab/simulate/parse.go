package simulate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Parse reads a plan as its String writes it. Lines that begin with # say what the plan is kept for.
func Parse(text string) (p Plan, err error) {
	headed := false
	for number, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			continue
		case !headed:
			headed = true
			err = p.parseHead(line)
		default:
			var i Incident
			i, err = parseIncident(line)
			p.Incidents = append(p.Incidents, i)
		}
		if err != nil {
			return Plan{}, fmt.Errorf("line %d, %q: %w", number+1, line, err)
		}
	}
	if !headed {
		return Plan{}, errors.New("no plan")
	}
	return p, nil
}

func (p *Plan) parseHead(line string) error {
	head, rates, ok := strings.Cut(line, "; ")
	seed, log, colon := strings.Cut(strings.TrimPrefix(head, "seed "), ": ")
	_, err := fmt.Sscanf(rates, "of the calls %v fail, %v lose their answer, %v are slow, %v stall",
		&p.Rates.Fail, &p.Rates.Lost, &p.Rates.Slow, &p.Rates.Stall)
	if !ok || !colon || err != nil {
		return errors.Join(errors.New("a plan begins with its seed, its log and its rates"), err)
	}
	p.Seed, err = strconv.ParseUint(seed, 10, 64)
	p.Files, p.Named = log == inFiles, log != unnamed
	if err == nil && log != p.log() {
		err = fmt.Errorf("%q is no log", log)
	}
	return err
}

// parseIncident reads what Incident.String writes: the time, the kind, the node, "from" and the port, the
// number, and "for" and how long.
func parseIncident(line string) (i Incident, err error) {
	at, rest, _ := strings.Cut(line, " ")
	if i.At, err = time.ParseDuration(at); err != nil {
		return i, err
	}
	detail := ""
	for _, kind := range kinds {
		if after, ok := strings.CutPrefix(strings.TrimSpace(rest)+" ", string(kind)+" "); ok && len(kind) > len(i.Kind) {
			i.Kind, detail = kind, after
		}
	}
	if i.Kind == "" {
		return i, errors.New("no kind of incident")
	}
	words := strings.Fields(detail)
	for n := 0; n < len(words); n++ {
		word, value := words[n], ""
		if n+1 < len(words) {
			value = words[n+1]
		}
		switch word {
		case "from":
			i.Port = value
			n++
		case "for":
			if i.For, err = time.ParseDuration(value); err != nil {
				return i, err
			}
			n++
		default:
			if number, err := strconv.Atoi(word); err == nil {
				i.N = number
			} else if i.Node == "" {
				i.Node = word
			} else {
				return i, fmt.Errorf("%q says nothing", word)
			}
		}
	}
	return i, nil
}
