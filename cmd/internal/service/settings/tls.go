package settings

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/process/keypair"
	"hamlet/cmd/internal/process/tokens"
)

// tlsConfig returns how a client speaks TLS to the server that the flags --what-… are
// about, or nil for plain text. An authority or a certificate of our own asks for TLS.
func tlsConfig(what string, wanted bool, ca, cert, key string, log *slog.Logger) (*tls.Config, error) {
	if !wanted && ca == "" && cert == "" && key == "" {
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		var err error
		if cfg.RootCAs, err = keypair.Authorities(ca); err != nil {
			return nil, fmt.Errorf("--%s-ca: %w", what, err)
		}
	}
	pair, err := loadPair(what+"-cert", cert, what+"-key", key, log)
	if err != nil {
		return nil, err
	}
	if pair != nil {
		cfg.GetClientCertificate = pair.Client
	}
	return cfg, nil
}

// loadPair reads the certificate and key that two flags name, or returns nil without
// them.
func loadPair(certFlag, cert, keyFlag, key string, log *slog.Logger) (*keypair.Pair, error) {
	switch {
	case cert == "" && key == "":
		return nil, nil
	case key == "":
		return nil, fmt.Errorf("--%s: give its key too, with --%s", certFlag, keyFlag)
	case cert == "":
		return nil, fmt.Errorf("--%s: give its certificate too, with --%s", keyFlag, certFlag)
	}
	pair, err := keypair.Load(cert, key, log)
	if err != nil {
		return nil, fmt.Errorf("--%s, --%s: %w", certFlag, keyFlag, err)
	}
	return pair, nil
}

// HTTPTLS are the flags that turn a service's HTTP into HTTPS.
type HTTPTLS struct {
	HTTPTLSCert string `name:"http-tls-cert" help:"Serve HTTPS at --http: PEM of the certificate; it is read again when it changes." type:"existingfile" placeholder:"FILE" rare:"up"`
	HTTPTLSKey  string `name:"http-tls-key" help:"PEM of its key." type:"existingfile" placeholder:"FILE" rare:"up"`
}

// Check reports what Config does not take.
func (f HTTPTLS) Check() error {
	_, err := f.Config(nil)
	return usage(err)
}

// Config returns how the service speaks TLS, or nil for plain text. It offers HTTP/1.1
// alone, whose limits of a connection are those of package httpd.
func (f HTTPTLS) Config(log *slog.Logger) (*tls.Config, error) {
	pair, err := loadPair("http-tls-cert", f.HTTPTLSCert, "http-tls-key", f.HTTPTLSKey, log)
	if pair == nil || err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: pair.Server}, nil
}

// EventsHTTP are the flags of an HTTP that may take events.
type EventsHTTP struct {
	HTTPTLS
	HTTPInsecure bool   `name:"http-insecure" help:"Let other machines in without TLS: all on the way can read the token. A gateway lets them in without a token too." rare:"up"`
	Tokens       string `name:"tokens" help:"YAML of further tokens: who may say what (hamlet token new). Read again on SIGHUP." type:"existingfile" placeholder:"FILE" rare:"up"`
	Metrics      string `help:"Serve /metrics, /healthz and /readyz at this address, without TLS, and no longer at --http." placeholder:"ADDR" rare:"up"`
}

// CheckAt reports what contradicts the address of --http and the token. A token in
// clear text is refused unless it stays on this machine: whoever reads it can teach the
// filter. So is one on a single address of the network, which is as easy to overhear.
func (f EventsHTTP) CheckAt(addr, token string) error {
	errs := []error{f.Check()}
	known := token != "" || f.Tokens != ""
	switch {
	case known && addr == "":
		errs = append(errs, cli.Usagef("--token and --tokens are for POST /v1/events: give it an address with --http"))
	case known && f.HTTPTLSCert == "" && !f.HTTPInsecure && !Loopback(addr):
		_, port, err := net.SplitHostPort(addr)
		if err != nil {
			port = "PORT"
		}
		errs = append(errs, cli.Usagef("--http %s with a token: it would cross the network in clear text. "+
			"Serve HTTPS with --http-tls-cert and --http-tls-key; "+
			"or listen on this machine alone (--http 127.0.0.1:%s), for a proxy with TLS; or allow it with --http-insecure",
			addr, port))
	case !known && addr != "" && f.Metrics != "":
		errs = append(errs, cli.Usagef("--http %s would serve nothing: "+
			"with --metrics it is for POST /v1/events, which needs --token or --tokens", addr))
	}
	if f.Metrics != "" && f.Metrics == addr {
		errs = append(errs, cli.Usagef("--metrics %s: that is the address of --http; choose another", addr))
	}
	return errors.Join(errs...)
}

// OpenTokens reads the file of tokens; nil: there is none.
func (f EventsHTTP) OpenTokens(log *slog.Logger) (*tokens.File, error) {
	if f.Tokens == "" {
		return nil, nil
	}
	return tokens.Open(f.Tokens, log)
}

// CheckDoor reports what contradicts the address of a gateway's --http, at which programs
// ask for scores. Tokens says whether they need one. Other machines may reach it only
// with a token and TLS, unless the operator says otherwise.
func (f EventsHTTP) CheckDoor(addr string, tokens bool) error {
	tokens = tokens || f.Tokens != ""
	errs := []error{f.Check()}
	switch {
	case addr == "" || f.HTTPInsecure || Loopback(addr):
	case !tokens:
		errs = append(errs, cli.Usagef("--http %s can be reached from other machines, and asks nobody for a token: "+
			"set --tokens, --token or the tokens of --tenants, and serve HTTPS with --http-tls-cert and --http-tls-key; or "+
			"listen on 127.0.0.1 (with --metrics %[1]s where only metrics are wanted); or allow it with --http-insecure", addr))
	case f.HTTPTLSCert == "":
		errs = append(errs, cli.Usagef("--http %s: tokens would cross the network in clear text. "+
			"Serve HTTPS with --http-tls-cert and --http-tls-key; or listen on 127.0.0.1, for a proxy with TLS; "+
			"or allow it with --http-insecure", addr))
	}
	if f.Metrics != "" && f.Metrics == addr {
		errs = append(errs, cli.Usagef("--metrics %s: that is the address of --http; choose another", addr))
	}
	return errors.Join(errs...)
}

// Loopback reports whether only this machine reaches an address, host:port. A name
// other than localhost may be anything.
func Loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
