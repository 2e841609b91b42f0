package bench

import (
	"fmt"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/service/example"
	"hamlet/cmd/internal/show/report"
)

// A parsedMessage is a message as input of hamlet's model.
type parsedMessage struct {
	example model.Example
	learnt  bool // by the call that classified it
}

// An ownFilter is hamlet, in this process.
type ownFilter struct {
	model     *model.Model
	predictor *model.Predictor

	parsing, modelling time.Duration // wall time
	intervals          report.Intervals
}

// newOwnFilter returns a hamlet that has learnt nothing. Its slow work is synchronous,
// so it does not overlap with other filters.
func newOwnFilter(cfg model.Config) (*ownFilter, error) {
	m, err := model.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("configuration of the model: %w", err)
	}
	return &ownFilter{model: m, predictor: m.NewPredictor()}, nil
}

// step classifies or teaches a message. If teaching follows at once, one call of the
// model does both, as in the services. step returns false for a duplicate, and false
// with an error for a message that the model refuses.
//
// It adds the CPU time of the whole process, garbage collection included, to out.
func (h *ownFilter) step(s step, atOnce bool, out *outcome) (bool, error) {
	before := processTime()
	ok, err := h.take(s, atOnce, out)
	if s.m.index >= 0 {
		out.cpu[s.m.index] += processTime() - before
	}
	if err != nil {
		return false, fmt.Errorf("message %d: %w", s.m.ordinal+1, err)
	}
	return ok, nil
}

func (h *ownFilter) take(s step, atOnce bool, out *outcome) (bool, error) {
	m := s.m
	if s.teach {
		learnt := m.index >= 0 // else it was refused or a duplicate
		if learnt && !m.parsed.learnt {
			start := time.Now()
			effect, err := h.model.Apply(&m.parsed.example)
			h.modelling += time.Since(start)
			if err != nil {
				return false, err
			}
			learnt = !effect.Duplicate
		}
		m.parsed.example = model.Example{} // free its memory
		return learnt, nil
	}
	start := time.Now()
	ex, _, err := example.Of(&m.event)
	if err != nil {
		return false, err
	}
	read := time.Now()
	var prediction model.Prediction
	if atOnce {
		var effect model.Effect
		if effect, err = h.model.Apply(&ex); err == nil && effect.Duplicate {
			return false, nil
		}
		prediction, m.parsed.learnt = effect.Prediction, true
	} else {
		prediction, err = h.predictor.Predict(&ex.Body)
	}
	if err != nil {
		return false, err
	}
	h.parsing += read.Sub(start)
	h.modelling += time.Since(read)
	m.parsed.example = ex
	m.index = len(out.logOdds)
	out.add(prediction.LogOdds >= 0, prediction.LogOdds)
	h.intervals.Add(prediction)
	return true, nil
}
