// Command fingerprint reads what the command in the folder events writes, and prints
// hashes of the models, predictions and alerts that it makes, a line for each stream. Two
// builds of one version print the same lines on all processors:
//
//	go run ./cmd/internal/lab/fingerprint/events ../shared/data > events
//	go run ./cmd/internal/lab/fingerprint < events
//
// It depends on package model alone, so a build for another processor compiles no client
// library.
package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"hamlet/algos/model"
)

// A Stream comes before its events.
type Stream struct {
	Name   string
	Config model.Config
	Events int
}

func main() {
	in := json.NewDecoder(bufio.NewReader(os.Stdin))
	for {
		var s Stream
		err := in.Decode(&s)
		if errors.Is(err, io.EOF) {
			return
		}
		var line string
		if err == nil {
			line, err = fingerprint(&s, in)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "fingerprint: stream %q: %v\n", s.Name, err)
			os.Exit(1)
		}
		fmt.Println(line)
	}
}

// fingerprint reads s's events and returns its line: the first 16 digits of the SHA-256 of
// the model, of all predictions and explanations, and of the alerts; and the name.
func fingerprint(s *Stream, in *json.Decoder) (string, error) {
	m, err := model.New(s.Config)
	if err != nil {
		return "", err
	}
	p := m.NewPredictor()
	predictions, alerts := sha256.New(), sha256.New()
	number := func(all ...float64) {
		for _, v := range all {
			_ = binary.Write(predictions, binary.BigEndian, math.Float64bits(v)) // a hash returns no error
		}
	}
	for i := range s.Events {
		var ex model.Example
		if err := in.Decode(&ex); err != nil {
			return "", fmt.Errorf("event %d of %d: %w", i+1, s.Events, err)
		}
		before, err := p.Predict(&ex.Body)
		if err != nil {
			return "", fmt.Errorf("event %d: %w", i+1, err)
		}
		lo, hi := before.Interval(1.6448536269514722)
		number(before.LogOdds, before.Mean, before.Variance, before.P(), lo, hi)
		if i%50 == 0 {
			_, why, err := p.Explain(&ex.Body)
			if err != nil {
				return "", fmt.Errorf("event %d: %w", i+1, err)
			}
			for _, c := range why {
				number(c.Contribution, c.SD)
			}
		}
		effect, err := m.Apply(&ex)
		if err != nil {
			return "", fmt.Errorf("event %d: %w", i+1, err)
		}
		number(effect.Phi, effect.Epsilon)
		for _, a := range effect.Alerts {
			text, err := json.Marshal(a)
			if err != nil {
				return "", err
			}
			alerts.Write(text)
		}
	}
	image, err := m.AppendBinary(nil)
	if err != nil {
		return "", err
	}
	bytes := sha256.Sum256(image)
	return fmt.Sprintf("%x %x %x %s", bytes[:8], predictions.Sum(nil)[:8], alerts.Sum(nil)[:8], s.Name), nil
}
