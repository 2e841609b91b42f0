package bench

import (
	"fmt"
	"syscall"
	"time"

	"hamlet/algos/model"
	"hamlet/cmd/internal/example"
)

// A parsed is a message as hamlet's model takes it.
type parsed struct {
	example model.Example
	learnt  bool // with its classification, at once
}

// An inside is hamlet itself, in this process.
type inside struct {
	model     *model.Model
	predictor *model.Predictor

	parse, think time.Duration // wall time of reading MIME, and of the model
}

// newInside returns a hamlet that has learnt nothing. Its slow work is done in the
// stream, not beside it, so that none of it falls into the other filters' time.
func newInside(cfg model.Config) (*inside, error) {
	m, err := model.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("configuration of the model: %w", err)
	}
	return &inside{model: m, predictor: m.NewPredictor()}, nil
}

// step classifies a message, or teaches it. If teaching follows at once, the
// model does both in one, as it does when it serves: it predicts, then learns.
// step returns false for a message that the model does not take: a copy, or,
// with an error, one that it refuses.
//
// Its time is all CPU time of the process meanwhile, the garbage collector's
// included.
func (h *inside) step(s step, atOnce bool, out *outcome) (bool, error) {
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

func (h *inside) take(s step, atOnce bool, out *outcome) (bool, error) {
	m := s.m
	if s.teach {
		learnt := m.index >= 0 // else it was refused, or known
		if learnt && !m.inside.learnt {
			start := time.Now()
			effect, err := h.model.Apply(&m.inside.example)
			h.think += time.Since(start)
			if err != nil {
				return false, err
			}
			learnt = !effect.Duplicate
		}
		m.inside.example = model.Example{} // let go of its memory
		return learnt, nil
	}
	start := time.Now()
	ex, err := example.Of(&m.event)
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
		prediction, m.inside.learnt = effect.Prediction, true
	} else {
		prediction, err = h.predictor.Predict(&ex.Body)
	}
	if err != nil {
		return false, err
	}
	h.parse += read.Sub(start)
	h.think += time.Since(read)
	m.inside.example = ex
	m.index = len(out.logOdds)
	out.add(prediction.LogOdds >= 0, prediction.LogOdds)
	return true, nil
}

// processTime is the CPU time, user and system, that this process has used.
func processTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0 // it fails for a wrong argument alone
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
