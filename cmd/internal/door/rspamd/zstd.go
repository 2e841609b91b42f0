package rspamd

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/zstd"

	"hamlet/cmd/internal/door/gateway"
)

// errUnsupported: the request is rspamd's, but of a kind that this door does not take.
var errUnsupported = errors.New("not taken here")

// refused reports what this door does not take of rspamd's protocol.
func refused(h http.Header) error {
	switch {
	case h.Get("Key") != "":
		return fmt.Errorf("encrypted requests (HTTPCrypt) are %w: remove the key from the client", errUnsupported)
	case h.Get("Dictionary") != "":
		return fmt.Errorf("compression by a dictionary is %w: use zstd without one", errUnsupported)
	case h.Get("File") != "" || h.Get("Path") != "" || h.Get("Shm") != "":
		return fmt.Errorf("requests that name a file are %w: send the message in the body", errUnsupported)
	}
	return nil
}

// coding returns how a body is compressed: zstd or nothing.
func coding(h http.Header) (string, error) {
	for _, name := range []string{"Compression", "Content-Encoding"} {
		switch value := strings.ToLower(strings.TrimSpace(h.Get(name))); value {
		case "", "identity":
		case "zstd":
			return value, nil
		default:
			return "", fmt.Errorf("%s %.20q is %w: send zstd or the message itself", name, value, errUnsupported)
		}
	}
	return "", nil
}

// readBody reads a message into body, as the header says that it is compressed. A message
// beyond the limits is forgotten, which body.Err says.
func (s *Server) readBody(body *gateway.Body, in io.Reader, h http.Header) error {
	compressed, err := coding(h)
	if err != nil {
		return err
	}
	if compressed == "" {
		_, err := body.ReadFrom(in)
		if err != nil && err == body.Err() {
			return nil
		}
		return err
	}
	return s.decompress(body, in)
}

const (
	maxWindow = 8 << 20 // what RFC 8878 recommends that decoders support
	minWindow = 1 << 10

	// decoderSize bounds the memory of a decoder beside its window: three blocks of 128 KiB,
	// tables of symbols and the buffers of its input.
	decoderSize = 768 << 10
)

// decompress reads a message that zstd has compressed. Its window is taken from the
// budget. As soon as the message is beyond a limit nothing more is read.
func (s *Server) decompress(body *gateway.Body, in io.Reader) error {
	buffered := bufio.NewReaderSize(in, 4<<10)
	window, err := windowOf(buffered)
	if err != nil {
		return err
	}
	need := int64(window) + decoderSize
	if !s.door.Acquire(need) {
		return gateway.ErrMemory
	}
	defer s.door.Return(need)
	decoder, err := zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(window), zstd.WithDecoderMaxMemory(maxBody))
	if err != nil {
		return fmt.Errorf("zstd: %w", err)
	}
	defer decoder.Close()
	var buffer [16 << 10]byte
	for {
		n, err := decoder.Read(buffer[:])
		if _, full := body.Write(buffer[:n]); full != nil {
			return full
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("zstd: %w", err)
		}
	}
}

// windowOf returns the window of the first frame. Later frames may have none larger.
func windowOf(in *bufio.Reader) (uint64, error) {
	start, err := in.Peek(zstd.HeaderMaxSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	var h zstd.Header
	if err := h.Decode(start); err != nil {
		return 0, fmt.Errorf("zstd: %w", err)
	}
	window := h.WindowSize
	if h.SingleSegment {
		window = h.FrameContentSize
	}
	if window > maxWindow {
		return 0, fmt.Errorf("zstd with a window of %d bytes is %w: the most is %d", window, errUnsupported, maxWindow)
	}
	return max(window, minWindow), nil
}
