package stream

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// A Record is one entry of a log. An appender reads Key, Value, Headers and Time (zero: now).
// The log sets Offset. A log need not keep a nil key or value apart from an empty one, and it
// keeps a time to the millisecond.
type Record struct {
	Offset  int64
	Key     []byte
	Value   []byte
	Headers []Header
	Time    time.Time
}

// Size returns the bytes of the key, the value and the headers.
func (r *Record) Size() int {
	n := len(r.Key) + len(r.Value)
	for i := range r.Headers {
		n += len(r.Headers[i].Key) + len(r.Headers[i].Value)
	}
	return n
}

// Bounds say which offsets a log has: First to End−1. There may be holes between them.
type Bounds struct {
	First int64  // offsets below are gone
	End   int64  // the offset of the next record
	ID    string // another one: another log of the same name; "" if the log cannot tell
}

// A Limit bounds the records of one Read, in number and in Size. A zero field is the log's own
// choice. One record is always admitted.
type Limit struct {
	Records int
	Bytes   int
}

// A Log has records in one order. Offsets ascend and may have holes. Package logtest has its
// laws. Its methods may be called concurrently.
//
// They return, wrapped:
//
//	ErrAway             one request failed: try again later
//	ErrGone, ErrBeyond  of Read: the offset is outside the log
//	any other error     final: trying again does not help
type Log interface {
	// Bounds asks once.
	Bounds(ctx context.Context) (Bounds, error)

	// Read returns records from an offset on, at least one if there is one, and the log's
	// end. At the end it waits for the first record, and returns none after wait. It retries
	// nothing, and returns at once when ctx ends. The caller owns what is returned.
	Read(ctx context.Context, from int64, most Limit, wait time.Duration) (records []Record, end int64, err error)

	// Since returns the first offset with a record that was written at t or later, and the
	// log's end if there is none. It asks once.
	Since(ctx context.Context, t time.Time) (int64, error)
}

// An Appender writes a log.
type Appender interface {
	// Append returns when all records are durable, in their order. It retries until ctx
	// ends, because only it can keep the order. An error says how many records are in. The
	// others may be in all the same: append them again only if they may be in twice.
	Append(ctx context.Context, records ...Record) error
}

// A Topic is a log with all that a service needs of it.
type Topic interface {
	Log
	Appender

	// Name returns what errors and logs call it.
	Name() string

	// Close ends the calls in progress, and frees what the log holds open.
	Close() error
}

// Logs are the logs of one place, by name: the topics of a Kafka, or the folders of a machine.
type Logs interface {
	// Open returns a log. It asks nothing, and makes none.
	Open(name string) (Topic, error)

	// Ping returns why the place cannot be reached. Without a deadline it waits for seconds.
	Ping(ctx context.Context) error

	// Partitions returns 1 if there is such a log, and 0 if there is none. Only a topic of other
	// programs has more.
	Partitions(ctx context.Context, name string) (int, error)

	// Ensure makes a log where it is missing. It keeps records for the retention: 0 is the place's
	// own, below 0 for ever. A place that has no replicas passes over replication.
	Ensure(ctx context.Context, name string, replication int, retention time.Duration) error

	// Retention returns how long a log keeps a record, below 0 for ever, and whether it is also
	// bounded by its size.
	Retention(ctx context.Context, name string) (d time.Duration, bounded bool, err error)

	// Logger gets what whoever follows a log has to say; nil: nobody listens.
	Logger() *slog.Logger

	// Patience is how long whoever needs the logs waits for them; 0: for ever.
	Patience() time.Duration
}

var (
	// ErrAway: the log did not answer one request. Try again.
	ErrAway = errors.New("the log does not answer")

	// ErrGone: the log has lost the offset to retention. Ask for its Bounds.
	ErrGone = errors.New("the offset is below the log's beginning")

	// ErrBeyond: the log has not come to the offset, or has lost its end. Ask for its Bounds.
	ErrBeyond = errors.New("the offset is beyond the log's end")

	// ErrNoLog: create the log, or correct its name.
	ErrNoLog = errors.New("no such log")

	// ErrDenied: the user, the password or the rights are refused.
	ErrDenied = errors.New("not authorised")

	// ErrTooLarge: make the record smaller, or raise the log's limit.
	ErrTooLarge = errors.New("record too large")

	// ErrFull: there is no room for all. Make some, and append what is not in.
	ErrFull = errors.New("no space is left for the log")

	// ErrDamaged: records cannot be read, and it is known which.
	ErrDamaged = errors.New("the log is damaged")
)
