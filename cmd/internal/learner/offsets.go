package learner

// publishOffsets publishes the status, with where the model stands in each partition.
func (o *orderedModel) publishOffsets() {
	o.status.Offsets = o.state.Offsets()
	o.status.Ends = make([]int64, len(o.status.Offsets))
	for i, f := range o.feeders {
		o.status.Ends[i] = max(o.status.Offsets[i], f.ends())
	}
	o.publishStatus()
}

// Lag returns how many records the model has not learnt, as of the last fetches.
func (s *Status) Lag() (n int64) {
	if s.Offsets == nil {
		return max(0, s.End-s.Next)
	}
	for i, next := range s.Offsets {
		n += s.Ends[i] - next
	}
	return n
}
