package redis

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"

	"hamlet/state"
)

// Errors that say what answers at Config.Addr, if that is of another kind than Config says.
var (
	ErrIsCluster  = errors.New("it is a node of a Redis Cluster") // set Cluster
	ErrNoCluster  = errors.New("it is no Redis Cluster")          // do not set Cluster
	ErrNoSentinel = errors.New("no Sentinel answers there")       // name Sentinels, or do not set Sentinel
)

// transient reports whether an error is of the network or of a busy server. An error
// that only people can repair, such as a wrong password, is not transient. A cancelled
// context is not transient either.
func transient(err error) bool {
	var network net.Error
	var name *net.DNSError
	switch {
	case err == nil,
		errors.Is(err, context.Canceled),                       // the caller gave up
		errors.Is(err, redis.ErrClosed),                        // the store was closed
		errors.As(err, new(*tls.CertificateVerificationError)), // TLS is set wrongly, on either side
		certificateRefused(err),
		errors.As(err, new(tls.RecordHeaderError)):
		return false
	case errors.As(err, &name):
		return !name.IsNotFound // the name is probably misspelt
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), // the server went away
		errors.Is(err, net.ErrClosed),
		errors.As(err, &network), // refused, reset, timed out
		errors.Is(err, redis.ErrPoolTimeout),
		errors.Is(err, redis.ErrPoolExhausted):
		return true
	case redis.IsLoadingError(err), // it has just started
		redis.IsReadOnlyError(err), redis.IsMasterDownError(err), // failing over
		redis.IsClusterDownError(err), redis.IsTryAgainError(err),
		redis.IsNoReplicasError(err),
		redis.IsMaxClientsError(err),    // connections come and go
		redis.IsOOMError(err),           // memory is freed when unused chunks expire
		redirected(err), movedAway(err), // the model's slot moves, or a master is replaced
		replied(err, "BUSY "),    // another script is running
		replied(err, "MISCONF "): // its disk is full
		return true
	}
	return false
}

// movedAway reports whether a script stopped at a key that the node has just handed to
// another one.
func movedAway(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && strings.Contains(reply.Error(), "attempted to access a non local key")
}

// replied reports whether an error is a reply of the server with a prefix.
func replied(err error, prefix string) bool {
	var reply redis.Error
	return errors.As(err, &reply) && strings.HasPrefix(reply.Error(), prefix)
}

// otherType reports whether a key is not of the type that the command needs.
func otherType(err error) bool { return replied(err, "WRONGTYPE ") }

// explain adds the operation, the address and advice. The error wraps
// [state.ErrTransient] if err is transient. It returns nil for nil.
func (s *Store) explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	explained := s.advise(doing, err)
	if redirected(err) && s.cluster == nil {
		return explained // no second try finds the node
	}
	if transient(err) {
		if s.cluster != nil {
			s.cluster.ReloadState(context.Background()) // another node may hold the model by now
		}
		return state.Transient(explained)
	}
	return explained
}

func (s *Store) advise(doing string, err error) error {
	var dial *net.OpError
	advice := ""
	var other error // what is there is of another kind than Config says
	switch {
	case errors.Is(err, state.ErrNone), errors.Is(err, state.ErrCorrupt), errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: %w", doing, err)
	case errors.Is(err, errNoMaster):
		advice = "the Sentinels there watch no master of this name: correct the name or their addresses"
	case errors.As(err, &dial) && dial.Op == "dial":
		advice = "no redis answers there: start one or correct the address"
	case redis.IsAuthError(err), replied(err, "ERR AUTH"), replied(err, "ERR invalid password"):
		advice = "it does not accept the user name and password: correct them"
	case redis.IsPermissionError(err):
		advice = fmt.Sprintf("the user may not do this: allow it keys ~hamlet:{%s}:* and scripts", s.cfg.Model)
	case redis.IsOOMError(err):
		advice = "raise its maxmemory, with maxmemory-policy noeviction"
	case replied(err, "MISCONF "):
		advice = "it cannot write to its disk: make room there"
	case redirected(err) && s.cluster == nil:
		other = ErrIsCluster
	case replied(err, "ERR This instance has cluster support disabled"):
		other = ErrNoCluster
	case s.cfg.Sentinel != "" && replied(err, "ERR unknown command"):
		other = ErrNoSentinel
	case redis.IsReadOnlyError(err) && s.cfg.Sentinel == "" && s.cluster == nil:
		advice = "it is a replica: give the address of the primary"
	case replied(err, "ERR DB index"), replied(err, "ERR invalid DB index"):
		advice = fmt.Sprintf("it has no database %d: give a smaller number", s.cfg.DB)
	case errors.As(err, new(tls.RecordHeaderError)):
		advice = "it does not speak TLS at this port: correct the address or switch TLS off"
	case certificateRefused(err):
		advice = "it wants a certificate of our own that an authority it trusts has signed"
	case expired(err):
		advice = "its certificate has expired: renew it, or correct the clock here"
	case errors.As(err, new(x509.UnknownAuthorityError)):
		advice = "its certificate is signed by nobody we know: give the right CA"
	case s.cfg.TLS != nil && (errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, syscall.ECONNRESET)):
		advice = "it hung up: if it wants a certificate of our own, give one that it trusts; else try again"
	case errors.Is(err, io.EOF) && s.cfg.TLS == nil:
		advice = "it hung up: if it wants TLS, switch TLS on; else try again"
	}
	if other != nil {
		return fmt.Errorf("%s: redis at %s: %w (%w)", doing, s.cfg.Addr, other, err)
	}
	if advice == "" {
		return fmt.Errorf("%s: redis at %s: %w", doing, s.cfg.Addr, err)
	}
	return fmt.Errorf("%s: redis at %s: %s (%w)", doing, s.cfg.Addr, advice, err)
}

// certificateRefused reports whether the other side refused our certificate, or wants
// one. The alert has no exported type. In TLS 1.2 a missing certificate is a "handshake
// failure", which can also mean that the two sides share no cipher.
func certificateRefused(err error) bool {
	var alert *net.OpError
	return errors.As(err, &alert) && alert.Op == "remote error" &&
		(strings.Contains(alert.Err.Error(), "certificate") || strings.Contains(alert.Err.Error(), "handshake failure"))
}

// expired reports whether the other side's certificate has expired, or is not valid yet.
func expired(err error) bool {
	var invalid x509.CertificateInvalidError
	return errors.As(err, &invalid) && invalid.Reason == x509.Expired
}

// SetLogger sends the client library's messages to log at level Debug, for the whole
// process. Without it the library writes to stderr.
func SetLogger(log *slog.Logger) {
	redis.SetLogger(libraryLog{log})
}

type libraryLog struct{ log *slog.Logger }

func (l libraryLog) Printf(ctx context.Context, format string, v ...any) {
	l.log.DebugContext(ctx, "redis client", "says", fmt.Sprintf(format, v...))
}
