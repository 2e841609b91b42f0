// Package keypair reads a certificate and its private key from two PEM files, says what
// is wrong with them, and reads them again when they change, so that a renewed
// certificate needs no restart. A key that every user of the machine may read is wrong.
//
//	pair, err := keypair.Load(certFile, keyFile, log)
//	server := &tls.Config{GetCertificate: pair.Server}
//	client := &tls.Config{GetClientCertificate: pair.Client}
package keypair

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"hamlet/cmd/internal/process/secretfile"
)

// maxKey bounds the file of a key, in bytes. A chain of certificates may be in it too.
const maxKey = 1 << 20

// A Pair is a certificate, with its chain, and its key. It may be used concurrently.
type Pair struct {
	certFile, keyFile string
	log               *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate // of the last good files; Load and certificate write it
	files   [2]os.FileInfo   // those that current was read from
	warned  string           // the last warning; empty after a good read
}

// Load reads a pair. The error says which file it is about. A certificate that has
// expired or is not valid yet is an error. Log may be nil.
func Load(certFile, keyFile string, log *slog.Logger) (*Pair, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	p := &Pair{certFile: certFile, keyFile: keyFile, log: log}
	files, err := p.stat()
	if err != nil {
		return nil, err
	}
	cert, err := p.read()
	if err != nil {
		return nil, err
	}
	p.current, p.files = cert, files
	return p, nil
}

// Server is for tls.Config.GetCertificate.
func (p *Pair) Server(*tls.ClientHelloInfo) (*tls.Certificate, error) { return p.certificate(), nil }

// Client is for tls.Config.GetClientCertificate.
func (p *Pair) Client(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return p.certificate(), nil
}

// certificate reads the files again if one has changed since the last good read. If
// they do not do, as between the change of one and of the other, it goes on with the
// certificate that it has, warns once, and looks again at the next handshake.
func (p *Pair) certificate() *tls.Certificate {
	p.mu.Lock()
	defer p.mu.Unlock()
	files, err := p.stat()
	if err == nil && same(files[0], p.files[0]) && same(files[1], p.files[1]) {
		return p.current
	}
	var cert *tls.Certificate
	if err == nil {
		cert, err = p.read()
	}
	if err != nil {
		if p.warned != err.Error() {
			p.warned = err.Error()
			p.log.Warn("a changed certificate does not do: the old one stays in use", "error", err)
		}
		return p.current
	}
	p.log.Info("a certificate has changed", "file", p.certFile, "expires", cert.Leaf.NotAfter)
	p.current, p.files, p.warned = cert, files, ""
	return cert
}

func same(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

func (p *Pair) stat() (files [2]os.FileInfo, err error) {
	for i, name := range []string{p.certFile, p.keyFile} {
		if files[i], err = os.Stat(name); err != nil {
			return files, err
		}
	}
	return files, nil
}

func (p *Pair) read() (*tls.Certificate, error) {
	certPEM, err := os.ReadFile(p.certFile)
	if err != nil {
		return nil, err
	}
	keyPEM, _, err := secretfile.Read(p.keyFile, maxKey)
	if err != nil {
		return nil, err
	}
	if _, err := certificates(certPEM); err != nil {
		return nil, fmt.Errorf("%s: %w", p.certFile, err)
	}
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("%s is not the key of %s: %w", p.keyFile, p.certFile, err)
	}
	now := time.Now()
	switch {
	case now.After(cert.Leaf.NotAfter):
		return nil, fmt.Errorf("%s expired at %s: renew it", p.certFile, cert.Leaf.NotAfter.Format(time.RFC3339))
	case now.Before(cert.Leaf.NotBefore):
		return nil, fmt.Errorf("%s is not valid before %s: check the clock", p.certFile, cert.Leaf.NotBefore.Format(time.RFC3339))
	}
	return &cert, nil
}

// Authorities reads the certificates of authorities from a PEM file. It is an error if
// all of them have expired.
func Authorities(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	certs, err := certificates(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	pool, valid := x509.NewCertPool(), false
	for _, c := range certs {
		pool.AddCert(c)
		valid = valid || time.Now().Before(c.NotAfter)
	}
	if !valid {
		return nil, fmt.Errorf("%s expired at %s: renew it", file, certs[0].NotAfter.Format(time.RFC3339))
	}
	return pool, nil
}

// certificates returns the certificates of a PEM text, of which there must be one.
func certificates(text []byte) (certs []*x509.Certificate, err error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		certs = append(certs, c)
	}
	if len(certs) == 0 {
		return nil, errors.New("no certificate in PEM is in it")
	}
	return certs, nil
}
