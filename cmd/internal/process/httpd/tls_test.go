package httpd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"

	"hamlet/cmd/internal/process/keypair"
	"hamlet/cmd/internal/testkit/testca"
)

// HTTPS serves with TLS 1.2 or newer, and with a renewed certificate from the next
// connection on. The metrics have an address of their own, without TLS.
func TestHTTPSAndMetrics(t *testing.T) {
	ca := testca.New(t)
	cert, key := ca.Files(t, "old", testca.Valid)
	pair, err := keypair.Load(cert, key, nil)
	if err != nil {
		t.Fatal(err)
	}
	events := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "taken") })
	s, err := New(Config{
		Addr: "127.0.0.1:0", TLS: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: pair.Server}, Metrics: "127.0.0.1:0",
		Registry: NewRegistry(), Handlers: map[string]http.Handler{"POST /v1/events": events}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	pool := x509.NewCertPool()
	text, err := os.ReadFile(ca.File)
	if err != nil || !pool.AppendCertsFromPEM(text) {
		t.Fatal("no authority", err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}}
	ask := func(method, url string) (int, string, *tls.ConnectionState) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body), response.TLS
	}
	https, metrics := "https://"+s.Addr(), "http://"+s.MetricsAddr()
	code, body, state := ask(http.MethodPost, https+"/v1/events")
	if code != http.StatusOK || body != "taken" || state.PeerCertificates[0].Subject.CommonName != "old" {
		t.Errorf("events: %d %q", code, body)
	}
	for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
		if code, _, _ := ask(http.MethodGet, https+path); code != http.StatusNotFound {
			t.Errorf("%s beside the events: %d, want 404", path, code)
		}
		if code, body, _ := ask(http.MethodGet, metrics+path); code != http.StatusOK || path == "/metrics" && !strings.Contains(body, "go_goroutines") {
			t.Errorf("%s: %d", path, code)
		}
	}
	if code, _, _ := ask(http.MethodPost, metrics+"/v1/events"); code != http.StatusNotFound {
		t.Errorf("events at the metrics' address: %d, want 404", code)
	}

	ca.Write(t, cert, key, "renewed", testca.Valid)
	if _, _, state = ask(http.MethodPost, https+"/v1/events"); state.PeerCertificates[0].Subject.CommonName != "renewed" {
		t.Errorf("after a renewal the certificate is of %s", state.PeerCertificates[0].Subject)
	}
	if _, err := tls.Dial("tcp", s.Addr(), &tls.Config{RootCAs: pool, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}); err == nil {
		t.Error("TLS 1.1 is served")
	}
}

// An address in use is named, the caller says with which flag, and the other one is free again.
func TestAddressesInUse(t *testing.T) {
	first, err := New(Config{Metrics: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	for flag, cfg := range map[string]Config{"--listen": {Addr: first.MetricsAddr()}, "--metrics": {Addr: "127.0.0.1:0", Metrics: first.MetricsAddr()}} {
		if _, err := New(cfg); err == nil || !strings.Contains(Choose(err, "--listen", "--metrics").Error(), "choose another address with "+flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}
