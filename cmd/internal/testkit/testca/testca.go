// Package testca makes a certificate authority for tests, whose key is forgotten with
// the test.
//
//	ca := testca.New(t)
//	cert, key := ca.Files(t, "client", testca.Valid)
package testca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// How long a certificate is valid from now on; Expired ones ended an hour ago.
const (
	Valid   = time.Hour
	Expired = -time.Hour
)

// A CA signs certificates.
type CA struct {
	File string // its certificate in PEM

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New returns an authority.
func New(t testing.TB) *CA { return Until(t, Valid) }

// Until returns an authority that is valid for the given time.
func Until(t testing.TB, valid time.Duration) *CA {
	t.Helper()
	ca := &CA{File: filepath.Join(t.TempDir(), "ca.pem")}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of a test"},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(valid),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	var der []byte
	der, ca.key = sign(t, template, nil, nil)
	var err error
	if ca.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	write(t, ca.File, "CERTIFICATE", der)
	return ca
}

// Files writes a certificate for name and 127.0.0.1, for servers and clients.
func (ca *CA) Files(t testing.TB, name string, valid time.Duration) (cert, key string) {
	t.Helper()
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	ca.Write(t, cert, key, name, valid)
	return cert, key
}

// Write is Files with the names of the files.
func (ca *CA) Write(t testing.TB, cert, key, name string, valid time.Duration) {
	t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	der, private := sign(t, &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(valid),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{name},
	}, ca.cert, ca.key)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write(t, key, "PRIVATE KEY", pkcs8)
	write(t, cert, "CERTIFICATE", der)
}

// Server returns the configuration of a server on 127.0.0.1 that wants a client's
// certificate of this authority. It speaks TLS 1.2, in which the client waits for the
// verdict on its certificate. In TLS 1.3 the client may write first, and its write may
// fail before it reads the verdict.
func (ca *CA) Server(t testing.TB) *tls.Config {
	t.Helper()
	cert, err := tls.LoadX509KeyPair(ca.Files(t, "server", Valid))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	return &tls.Config{
		Certificates: []tls.Certificate{cert}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
		MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12,
	}
}

func sign(t testing.TB, template, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if parent == nil {
		parent, parentKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		t.Fatal(err)
	}
	return der, key
}

func write(t testing.TB, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
