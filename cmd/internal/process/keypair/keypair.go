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
	"time"

	"hamlet/cmd/internal/process/secretfile"
)

// maxKey bounds the file of a key, in bytes. A chain of certificates may be in it too.
const maxKey = 1 << 20

// A Pair is a certificate, with its chain, and its key. It may be used concurrently.
type Pair struct {
	certFile string
	live     *secretfile.Live[tls.Certificate]
	log      *slog.Logger
}

// Load reads a pair. The error says which file it is about. A certificate that has
// expired or is not valid yet is an error. Log may be nil.
func Load(certFile, keyFile string, log *slog.Logger) (*Pair, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	live, err := secretfile.Open(func() (tls.Certificate, error) { return read(certFile, keyFile) }, certFile, keyFile)
	if err != nil {
		return nil, err
	}
	return &Pair{certFile, live, log}, nil
}

// Server is for tls.Config.GetCertificate.
func (p *Pair) Server(*tls.ClientHelloInfo) (*tls.Certificate, error) { return p.certificate(), nil }

// Client is for tls.Config.GetClientCertificate.
func (p *Pair) Client(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return p.certificate(), nil
}

// certificate reads the files again if one has changed. If they do not do, as between the
// change of one and of the other, it goes on with the certificate that it has, warns once, and
// looks again at the next handshake.
func (p *Pair) certificate() *tls.Certificate {
	changed, err := p.live.Refresh()
	cert := p.live.Get()
	switch {
	case err != nil:
		p.log.Warn("a changed certificate does not do: the old one stays in use", "error", err)
	case changed:
		p.log.Info("a certificate has changed", "file", p.certFile, "expires", cert.Leaf.NotAfter)
	}
	return cert
}

func read(certFile, keyFile string) (cert tls.Certificate, err error) {
	certPEM, err := os.ReadFile(certFile)
	if err != nil {
		return cert, err
	}
	keyPEM, err := secretfile.Read(keyFile, maxKey)
	if err != nil {
		return cert, err
	}
	if _, err := certificates(certPEM); err != nil {
		return cert, fmt.Errorf("%s: %w", certFile, err)
	}
	if cert, err = tls.X509KeyPair(certPEM, keyPEM); err != nil {
		return cert, fmt.Errorf("%s is not the key of %s: %w", keyFile, certFile, err)
	}
	switch now := time.Now(); {
	case now.After(cert.Leaf.NotAfter):
		err = fmt.Errorf("%s expired at %s: renew it", certFile, cert.Leaf.NotAfter.Format(time.RFC3339))
	case now.Before(cert.Leaf.NotBefore):
		err = fmt.Errorf("%s is not valid before %s: check the clock", certFile, cert.Leaf.NotBefore.Format(time.RFC3339))
	}
	return cert, err
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
