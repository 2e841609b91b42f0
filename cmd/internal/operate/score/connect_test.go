package score

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"hamlet/stream/embedded"
	"hamlet/stream/nats"
)

// A --timeout below the wait for a password ends with what is missing, not with the news
// that the time is up.
func TestRefusedInAShortTimeout(t *testing.T) {
	t.Parallel()
	n, err := embedded.StartNATS(embedded.NATSOptions{Users: []embedded.NATSUser{{Name: "other", Password: "secret"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	const timeout = 200 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	_, err = connect(ctx, nats.Config{URL: n.URL(), Timeout: 30 * time.Second}, timeout)
	if !errors.Is(err, natsgo.ErrAuthorization) || !strings.Contains(err.Error(), "hamlet env") {
		t.Errorf("got %v, want a refusal with advice", err)
	}
}
