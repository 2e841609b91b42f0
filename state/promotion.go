package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// A Promotion says which model answers what a model is asked. It is kept beside the versions
// of the model that is asked. Without one a model answers by itself.
//
// Its bytes are a JSON object of at most 1 KiB:
//
//	{"version": 1, "model": "cand", "since": "2026-11-23T20:00:00Z", "by": "root@host"}
//
// The model may be the one that is asked: then it answers by itself again.
type Promotion struct {
	Model string    // that answers
	Since time.Time // UTC
	By    string    // who promoted it, as that program says; may be empty
}

const (
	promotionVersion = 1
	maxPromotion     = 1 << 10
	maxPromoter      = 256 // bytes of By
)

type promotionJSON struct {
	Version int       `json:"version"`
	Model   string    `json:"model"`
	Since   time.Time `json:"since"`
	By      string    `json:"by"`
}

// AppendBinary implements [encoding.BinaryAppender].
func (p *Promotion) AppendBinary(b []byte) ([]byte, error) {
	if err := p.valid(); err != nil {
		return b, fmt.Errorf("promotion: %w", err)
	}
	text, err := json.Marshal(promotionJSON{promotionVersion, p.Model, p.Since.UTC(), p.By})
	if err == nil && len(text) > maxPromotion {
		err = fmt.Errorf("%d bytes, more than %d", len(text), maxPromotion)
	}
	if err != nil {
		return b, fmt.Errorf("promotion: %w", err)
	}
	return append(b, text...), nil
}

// UnmarshalBinary implements [encoding.BinaryUnmarshaler]. An error wraps [ErrCorrupt].
func (p *Promotion) UnmarshalBinary(b []byte) error {
	if len(b) > maxPromotion {
		return fmt.Errorf("%w: a promotion of %d bytes, more than %d", ErrCorrupt, len(b), maxPromotion)
	}
	var j promotionJSON
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	err := dec.Decode(&j)
	if err == nil {
		if _, behind := dec.Token(); !errors.Is(behind, io.EOF) {
			err = errors.New("something follows it")
		}
	}
	if err != nil {
		return fmt.Errorf("%w: a promotion that is no JSON object of this layout: %v", ErrCorrupt, err)
	}
	if j.Version != promotionVersion {
		return fmt.Errorf("%w: a promotion of layout %d, and this program knows %d", ErrCorrupt, j.Version, promotionVersion)
	}
	read := Promotion{Model: j.Model, Since: j.Since.UTC(), By: j.By}
	if err := read.valid(); err != nil {
		return fmt.Errorf("%w: a promotion: %w", ErrCorrupt, err)
	}
	*p = read
	return nil
}

func (p *Promotion) valid() error {
	switch {
	case !IsModelName(p.Model):
		return fmt.Errorf("%.80q is no name of a model", p.Model)
	case len(p.By) > maxPromoter:
		return fmt.Errorf("who promoted it takes %d bytes, more than %d", len(p.By), maxPromoter)
	}
	return nil
}
