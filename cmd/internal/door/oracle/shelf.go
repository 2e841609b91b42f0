package oracle

// A passed message waits for a label that people may give it.
type passed struct {
	id, tenant string
	message    []byte // reduced
	doubtful   bool
}

// A shelf has the newest passed messages, as many as fit. The oldest go.
type shelf struct {
	most  int64 // bytes of the messages
	bytes int64
	all   map[string]*passed // by id
	order []string           // of all, the oldest first; also ids that were taken
}

// overhead is about what a message takes beside its bytes.
const overhead = 256

// put adds a message, unless it is there.
func (s *shelf) put(m *passed) {
	if s.all == nil {
		s.all = map[string]*passed{}
	}
	size := int64(len(m.message)) + overhead
	if s.all[m.id] != nil || size > s.most {
		return
	}
	s.all[m.id], s.order, s.bytes = m, append(s.order, m.id), s.bytes+size
	for s.bytes > s.most {
		s.take(s.order[0])
		s.order = s.order[1:]
	}
	if len(s.order) > 2*len(s.all)+64 { // mostly ids that were taken
		kept := s.order[:0]
		for _, id := range s.order {
			if s.all[id] != nil {
				kept = append(kept, id)
			}
		}
		s.order = kept
	}
}

// take removes a message and returns it, nil if it is not there.
func (s *shelf) take(id string) *passed {
	m := s.all[id]
	if m != nil {
		delete(s.all, id)
		s.bytes -= int64(len(m.message)) + overhead
	}
	return m
}

// mostRecent bounds a recently: with fewer lines in two minutes none counts twice.
const mostRecent = 20_000

// A recently has the last mostRecent to 2·mostRecent keys.
type recently struct{ now, before map[string]bool }

// add reports whether a key is new.
func (r *recently) add(key string) bool {
	if r.now[key] || r.before[key] {
		return false
	}
	if r.now == nil || len(r.now) >= mostRecent {
		r.now, r.before = map[string]bool{}, r.now
	}
	r.now[key] = true
	return true
}
