package learner

import (
	"context"
	"sort"

	"hamlet/algos/model"
)

// readAhead is how many records of a partition are read for the model before it takes them.
// A Reading of a mail takes 60 kB, at most 200.
const readAhead = 16

// read reads the first records that the model has not taken, beside the goroutine that applies
// records, until ctx ends. What the model takes before that, it reads itself.
func (f *feeder) read(ctx context.Context, reader *model.Reader) {
	for range readAhead {
		f.readings <- new(model.Reading)
	}
	for {
		var reading *model.Reading
		select {
		case reading = <-f.readings:
		case <-ctx.Done():
			return
		}
		body, next, ok := f.unread(ctx)
		if !ok {
			return
		}
		reader.Read(reading, &body)
		if body.Reading == nil || !f.attach(reading, next) {
			f.readings <- reading
		}
	}
}

// unread waits for a record to read. It returns the body and the offset behind it. It will not
// return that again. It returns false when ctx ends.
func (f *feeder) unread(ctx context.Context) (body model.Body, next int64, ok bool) {
	for {
		f.mu.Lock()
		for i := range min(len(f.fed), readAhead) {
			r := &f.fed[i]
			if r.tried {
				continue
			}
			r.tried = true
			if b := r.in.body(); b != nil {
				body, next = *b, r.at.Next
				f.mu.Unlock()
				return body, next, true
			}
		}
		changed := f.changed
		f.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return model.Body{}, 0, false
		}
	}
}

// attach gives a reading to the record before the offset next. It returns false if that was
// taken meanwhile.
func (f *feeder) attach(reading *model.Reading, next int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := sort.Search(len(f.fed), func(i int) bool { return f.fed[i].at.Next >= next })
	if i == len(f.fed) || f.fed[i].at.Next != next {
		return false
	}
	f.fed[i].reading, f.fed[i].in.example.Body.Reading = reading, reading
	return true
}

// release takes back the reading of a record that the model has applied.
func (f *feeder) release(r *fed) {
	if r.reading != nil {
		f.readings <- r.reading // has room for all
		r.reading, r.in.example.Body.Reading = nil, nil
	}
}
