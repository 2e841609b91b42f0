package milter

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/emersion/go-milter"
)

// Bounds of what a mail server sends and of how long it may take.
const (
	// maxFrame bounds what a frame may carry: a chunk of the body (65,535 bytes), a
	// recipient, or a header field. Postfix's header_size_limit is 102,400 bytes. A
	// longer frame is cut to cutFrame bytes, and its message passes unmarked.
	maxFrame = 256 << 10
	cutFrame = 1 << 10

	// maxLength bounds the length of a frame. Beyond it this is another protocol.
	maxLength = 16 << 20

	// freeFrame is how much a frame carries without taking from the gateway's budget.
	freeFrame = 4 << 10

	// idleTimeout is how long a mail server may be silent outside of a message's content,
	// where it waits for its own client. It is what Sendmail's library allows. One that has
	// not negotiated yet has frameTimeout alone.
	idleTimeout = 7210 * time.Second

	// frameTimeout bounds the rest of a frame, the start of a message's content, and an
	// answer that nobody reads. The whole content has minRate bytes a second more.
	frameTimeout = 30 * time.Second
	minRate      = 256 << 10
)

// codeUnknown says that the SMTP client said something unknown (SMFIC_UNKNOWN).
const codeUnknown milter.Code = 'U'

// Versions of the protocol that the door speaks.
const oldest, newest = 2, 6

// A wire is the connection as the library's session sees it: a stream of frames, each
//
//	length of the rest, uint32 | command, byte | data
//
// It answers the negotiation, and what the session has no use for, itself; cuts frames
// that are too long; and keeps the deadlines. Writes are kept until the session reads again. A read error
// shows as io.EOF, because the library logs all others. It is for one goroutine.
type wire struct {
	net.Conn
	in      *bufio.Reader
	out     *bufio.Writer
	session *session

	frame   []byte // the one at hand, where the session has not read it yet
	surplus int    // bytes behind it that the session does not see
	held    int64  // of the gateway's budget, for the frame

	content time.Time // when the content of a message began; zero: none is under way
	carried int64     // bytes of it
	failed  bool      // nobody reads what we write
	agreed  bool      // the client negotiated, so it is a mail server

	closed chan struct{}
	once   sync.Once // guards closed

	mu       sync.Mutex
	stopping bool // no further message is taken; mu guards it
	idle     bool // no content is under way; mu guards it
}

func newWire(conn net.Conn, s *session) *wire {
	return &wire{
		Conn: conn, session: s, closed: make(chan struct{}),
		in: bufio.NewReaderSize(prompt(conn), 8<<10), out: bufio.NewWriterSize(conn, 1<<10),
	}
}

// Read returns the next bytes of the frames that the session is to see. A frame is there
// as a whole before the session sees any of it.
func (w *wire) Read(p []byte) (int, error) {
	for len(w.frame) == 0 {
		if err := w.next(); err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, errStopped) {
				w.session.door.Garbage(err)
			}
			return 0, io.EOF
		}
	}
	n := copy(p, w.frame)
	w.frame = w.frame[n:]
	return n, nil
}

// errStopped: the door closes, and no message's content is under way.
var errStopped = errors.New("the door closes")

// next reads the next frame, or answers it.
func (w *wire) next() error {
	if _, err := w.in.Discard(w.surplus); err != nil {
		return errHalf
	}
	w.surplus = 0
	w.release()
	if w.out.Flush() != nil || w.failed {
		return io.EOF
	}
	if !w.waitForFrame() {
		return errStopped
	}
	if _, err := w.in.Peek(1); err != nil {
		return w.noFrame(err)
	}
	w.frameBegins()
	var start [5]byte // length and command
	if err := w.fill(start[:4]); err != nil {
		return err
	}
	length := binary.BigEndian.Uint32(start[:])
	if length == 0 || length > maxLength {
		return fmt.Errorf("a frame of %d bytes", length)
	}
	if err := w.fill(start[4:]); err != nil {
		return err
	}
	return w.take(milter.Code(start[4]), int(length)-1)
}

// errHalf: the connection ended, or its time did, within a frame.
var errHalf = errors.New("half a frame")

// fill reads len(b) bytes of a frame.
func (w *wire) fill(b []byte) error {
	if _, err := io.ReadFull(w.in, b); err != nil {
		return errHalf
	}
	return nil
}

// noFrame says what it means that no frame came.
func (w *wire) noFrame(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopping && w.idle {
		return errStopped
	}
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		return io.EOF
	}
	return fmt.Errorf("no frame: %w", err)
}

// take reads a frame with n bytes of data for the session, or answers it.
func (w *wire) take(code milter.Code, n int) error {
	switch code {
	case milter.CodeOptNeg:
		return w.negotiate(n)
	case milter.CodeMacro:
		w.surplus = n
		return nil
	case milter.CodeConn, milter.CodeHelo, milter.CodeData, codeUnknown: // nothing to us
		w.surplus = n
		return w.write(milter.RespContinue.Response())
	case milter.CodeQuitNewConn: // another SMTP client; the message under way is void
		code = milter.CodeAbort
	case milter.CodeEOB:
		if err := w.lastChunk(n); err != nil {
			return err
		}
		n = 0
	case milter.CodeMail, milter.CodeRcpt, milter.CodeHeader, milter.CodeEOH, milter.CodeBody,
		milter.CodeAbort, milter.CodeQuit:
	default:
		return fmt.Errorf("unknown command %q", code)
	}
	w.follow(code, n)
	shown, err := w.hold(n)
	if err != nil {
		w.surplus = n - shown
		w.session.cut(code, err)
	}
	frame := make([]byte, 5+shown)
	binary.BigEndian.PutUint32(frame, uint32(shown)+1)
	frame[4] = byte(code)
	if err := w.fill(frame[5:]); err != nil {
		return err
	}
	w.frame = frame
	return nil
}

// hold takes room for a frame's data, for us and for the library. It returns how much of
// the data the session may see, and why not all of it.
func (w *wire) hold(n int) (int, error) {
	switch {
	case n <= freeFrame:
		return n, nil
	case n > maxFrame:
		return cutFrame, errCut
	case !w.session.door.Acquire(2 * int64(n)):
		return cutFrame, errNoRoom
	}
	w.held = 2 * int64(n)
	return n, nil
}

func (w *wire) release() {
	w.session.door.Return(w.held)
	w.frame, w.held = nil, 0
}

// follow keeps account of whether a message's content is under way.
func (w *wire) follow(code milter.Code, n int) {
	switch code {
	case milter.CodeHeader, milter.CodeEOH, milter.CodeBody, milter.CodeEOB:
		if w.content.IsZero() {
			w.content, w.carried = time.Now(), 0
		}
		w.carried += int64(n)
	case milter.CodeMail, milter.CodeRcpt, milter.CodeAbort:
		w.content = time.Time{}
	}
	if code == milter.CodeEOB { // the session answers before it reads on
		w.content = time.Time{}
	}
}

// lastChunk gives the session what comes with the end of the message.
func (w *wire) lastChunk(n int) error {
	var piece [4 << 10]byte
	for n > 0 {
		next := piece[:min(n, len(piece))]
		if err := w.fill(next); err != nil {
			return err
		}
		w.session.chunk(next)
		n -= len(next)
	}
	return nil
}

// waitForFrame sets the deadline of the next frame's first byte. It returns false if no
// further frame is to be read.
func (w *wire) waitForFrame() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.idle = w.content.IsZero()
	deadline := time.Now().Add(idleTimeout)
	switch {
	case !w.idle:
		deadline = w.contentDeadline()
	case !w.agreed:
		deadline = time.Now().Add(frameTimeout)
	}
	_ = w.SetReadDeadline(deadline)
	return !w.idle || !w.stopping
}

// frameBegins sets the deadline of the frame whose first byte is there.
func (w *wire) frameBegins() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.idle = false
	if w.content.IsZero() {
		_ = w.SetReadDeadline(time.Now().Add(frameTimeout))
	}
}

func (w *wire) contentDeadline() time.Time {
	return w.content.Add(frameTimeout + time.Duration(w.carried*int64(time.Second)/minRate))
}

// stop takes no further message. The one whose content is under way is finished.
func (w *wire) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopping = true
	if w.idle {
		_ = w.SetReadDeadline(time.Unix(1, 0))
	}
}

// Write keeps p until the session reads again. Its errors show there, as an end.
func (w *wire) Write(p []byte) (int, error) {
	if w.failed {
		return len(p), nil
	}
	_ = w.SetWriteDeadline(time.Now().Add(frameTimeout))
	if _, err := w.out.Write(p); err != nil {
		w.failed = true
	}
	return len(p), nil
}

// write sends a frame of our own.
func (w *wire) write(m *milter.Message) error {
	frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(m.Data)+1)), m.Code)
	_, err := w.Write(append(frame, m.Data...))
	return err
}

// Close ends the connection.
func (w *wire) Close() error {
	w.once.Do(func() { close(w.closed) })
	return w.Conn.Close()
}

// negotiate answers a mail server's offer with the part of it that the door uses. The
// library would ask for what it uses whether or not it is offered.
func (w *wire) negotiate(n int) error {
	if n < 12 || n > cutFrame {
		return fmt.Errorf("negotiation of %d bytes", n)
	}
	offer := make([]byte, n)
	if err := w.fill(offer); err != nil {
		return err
	}
	version := binary.BigEndian.Uint32(offer)
	if version < oldest {
		return fmt.Errorf("version %d of the protocol", version)
	}
	actions := milter.OptAction(binary.BigEndian.Uint32(offer[4:])) & w.session.wanted()
	protocol := milter.OptProtocol(binary.BigEndian.Uint32(offer[8:])) & wantedProtocol
	w.session.agree(actions, protocol)
	w.agreed = true

	var answer []byte
	for _, value := range []uint32{min(version, newest), uint32(actions), uint32(protocol)} {
		answer = binary.BigEndian.AppendUint32(answer, value)
	}
	return w.write(milter.NewResponse(byte(milter.CodeOptNeg), answer).Response())
}

// wantedProtocol is what the door asks for where it is offered: nothing that it does not
// use, no waiting for answers that are always the same, and header fields as they are.
const wantedProtocol = milter.OptNoConnect | milter.OptNoHelo | milter.OptNoUnknown | milter.OptNoData |
	milter.OptNoMailReply | milter.OptNoRcptReply | milter.OptNoHeaderReply | milter.OptNoEOHReply |
	milter.OptNoBodyReply | milter.OptHeaderLeadingSpace

// stopWith has w take no further message when ctx ends.
func (w *wire) stopWith(ctx context.Context) (release func() bool) {
	return context.AfterFunc(ctx, w.stop)
}
