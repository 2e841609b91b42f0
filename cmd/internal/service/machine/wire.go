package machine

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net/http"

	"hamlet/state"
	"hamlet/state/files"
	"hamlet/stream"
	"hamlet/stream/filelog"
)

// A call over the socket is a POST of its argument, and the answer is a reply, both as gob. The two
// programs are of one user, and may be of two versions: gob passes over what one does not know.

// A reply is the answer to a call.
type reply[T any] struct {
	Value T
	Err   *remoteError
}

// kinds are the errors that keep their meaning over the socket. Add to the end: the index is on the wire.
var kinds = []error{
	state.ErrNone, state.ErrStale, state.ErrLost, state.ErrCorrupt, state.ErrPartitions, state.ErrTransient,
	stream.ErrAway, stream.ErrGone, stream.ErrBeyond, stream.ErrNoLog, stream.ErrDenied, stream.ErrTooLarge,
	stream.ErrFull, stream.ErrDamaged, filelog.ErrClosed,
}

// A remoteError is what an error was at the other end.
type remoteError struct {
	Text  string
	Kinds []int // into kinds
}

func (e *remoteError) Error() string { return e.Text }

// Unwrap returns what [errors.Is] finds in it.
func (e *remoteError) Unwrap() (all []error) {
	for _, i := range e.Kinds {
		if i >= 0 && i < len(kinds) {
			all = append(all, kinds[i])
		}
	}
	return all
}

func remote(err error) *remoteError {
	if err == nil {
		return nil
	}
	for _, ends := range []error{context.Canceled, filelog.ErrClosed, files.ErrClosed} {
		if errors.Is(err, ends) { // with this program: the next one answers
			err = &awayError{errors.New(err.Error())}
			break
		}
	}
	e := &remoteError{Text: err.Error()}
	for i, kind := range kinds {
		if errors.Is(err, kind) {
			e.Kinds = append(e.Kinds, i)
		}
	}
	return e
}

// An awayError says that a call has got no answer.
type awayError struct{ err error }

func (e *awayError) Error() string { return e.err.Error() }

func (e *awayError) Unwrap() []error {
	all := []error{stream.ErrAway, e.err}
	if !errors.Is(e.err, context.Canceled) { // by the caller, who knows
		all = append(all, state.ErrTransient)
	}
	return all
}

// handle has a server answer a call.
func handle[A, R any](mux *http.ServeMux, name string, do func(ctx context.Context, arg A) (R, error)) {
	mux.HandleFunc("POST /"+name, func(w http.ResponseWriter, r *http.Request) {
		var arg A
		if err := gob.NewDecoder(r.Body).Decode(&arg); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		value, err := do(r.Context(), arg)
		if err := gob.NewEncoder(w).Encode(reply[R]{value, remote(err)}); err != nil {
			panic(http.ErrAbortHandler) // the caller sees a cut answer
		}
	})
}

// away says why the other program has not answered.
func (c *Client) away(err error) error {
	return &awayError{fmt.Errorf("the hamlet up that has %s does not answer: %w", c.path, err)}
}

// call asks the server.
func call[R, A any](ctx context.Context, c *Client, name string, arg A) (value R, err error) {
	send, err := prepare[R](c, name, arg)
	if err != nil {
		return value, err
	}
	return send(ctx)
}

// prepare returns a call whose argument is encoded: the caller may change it.
func prepare[R, A any](c *Client, name string, arg A) (send func(context.Context) (R, error), err error) {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(arg); err != nil {
		return nil, err
	}
	return func(ctx context.Context) (value R, err error) {
		failed := func(err error) error {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return c.away(err)
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://machine/"+name, &b)
		if err != nil {
			return value, err
		}
		res, err := c.http.Do(req)
		if err != nil {
			return value, failed(err)
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			text, _ := io.ReadAll(io.LimitReader(res.Body, 1000))
			return value, fmt.Errorf("the hamlet up that has %s is another version, which does not know %s: %s: %s",
				c.path, name, res.Status, text)
		}
		var r reply[R]
		if err := gob.NewDecoder(res.Body).Decode(&r); err != nil {
			return value, failed(err)
		}
		if r.Err != nil {
			return r.Value, r.Err
		}
		return r.Value, nil
	}, nil
}
