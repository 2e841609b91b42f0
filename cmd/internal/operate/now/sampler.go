package now

import "time"

// A sampler chooses which lines are decoded: every stride-th one. The stride is such that
// about [LinesPerSecond] are, by the rate of the last second and of this one so far.
type sampler struct {
	second   int64     // since 1970
	lines    int       // that came in it
	previous int       // stride that the lines of the second before ask for
	phase    int       // lines since the last one that was decoded
	last     time.Time // when a line was left out last
}

// plan returns the first of the next n lines to decode, and the stride. n or more means none.
func (s *sampler) plan(now time.Time, n int) (first, stride int) {
	if at := now.Unix(); at != s.second {
		s.previous = s.oneOf(now)
		s.second, s.lines = at, 0
	}
	s.lines += n
	stride = s.oneOf(now)
	if stride > 1 {
		s.last = now
	}
	first = max(0, stride-1-s.phase)
	if first >= n {
		s.phase += n
		return first, stride
	}
	s.phase = (n - 1 - first) % stride
	return first, stride
}

// oneOf returns the stride at a time.
func (s *sampler) oneOf(now time.Time) int {
	asked := (s.lines + LinesPerSecond - 1) / LinesPerSecond
	switch now.Unix() - s.second {
	case 0:
		return max(1, s.previous, asked)
	case 1:
		return max(1, asked)
	}
	return 1
}
