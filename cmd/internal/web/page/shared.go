package page

import (
	"context"
	"net/url"
	"strconv"
	"sync"
	"time"
)

// failAgain is how long a Shared waits after an error that came before its time was over.
const failAgain = 2 * time.Second

// A Shared is an answer for all who look. It is read when somebody asks, at most every Again.
// Who asks meanwhile waits for the same answer.
type Shared[T any] struct {
	// Read returns the answer. It is told the one before, which it may return again, with an
	// error too. Nobody changes an answer.
	Read  func(ctx context.Context, before T) (T, error)
	Now   func() time.Time
	Again time.Duration
	Time  time.Duration // for one reading, which goes on where the one who asked has left

	mu     sync.Mutex // held while it is read
	next   time.Time  // when to read again
	answer T
	err    error
}

// Get returns the answer, and the error of its reading.
func (s *Shared[T]) Get(ctx context.Context) (T, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Now().Before(s.next) {
		return s.answer, s.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Time)
	defer cancel()
	s.answer, s.err = s.Read(ctx, s.answer)
	pause := s.Again
	if s.err != nil && ctx.Err() == nil {
		pause = min(pause, failAgain)
	}
	s.next = s.Now().Add(pause)
	return s.answer, s.err
}

// Forget has the next Get read.
func (s *Shared[T]) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = time.Time{}
}

// A Part is one page of a long list: the rows from From up to To.
type Part struct {
	From, To   int
	Next, Back string // addresses; "": there is none
}

// Cut returns the page of a list of n rows that begins with the row that "from" in a query
// names, 0 if that is no number. It has at most most rows.
func Cut(path string, query url.Values, n, most int) Part {
	from, _ := strconv.Atoi(query.Get("from"))
	p := Part{From: max(0, min(from, n-1))}
	p.To = min(p.From+most, n)
	if p.To < n {
		p.Next = path + "?from=" + strconv.Itoa(p.To)
	}
	if p.From > 0 {
		p.Back = path + "?from=" + strconv.Itoa(max(0, p.From-most))
	}
	return p
}
