package score_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"hamlet/cmd/internal/operate/score"
)

// A user whose forms never come to their end has no place for more, and keeps none from others.
func TestStalledForms(t *testing.T) {
	conn := startNATS(t)
	ann := newReader(t, score.Config{NATS: conn})
	var stalled sync.WaitGroup
	defer stalled.Wait()
	for range 2 {
		body, form := io.Pipe()
		request := httptest.NewRequest(http.MethodPost, "/why", body)
		request.Header.Set("Content-Type", "multipart/form-data; boundary=x")
		stalled.Go(func() { ann.do(request) })
		defer form.Close()
		// The form is being read, so its place is taken.
		if _, err := io.WriteString(form, "--x\r\nContent-Disposition: form-data; name=\"message\"\r\n\r\nhalf"); err != nil {
			t.Fatal(err)
		}
	}
	status, got := ann.paste(map[string]string{"message": pastedMail})
	if wants(t, "a third form", got, "Try again in a moment"); status != http.StatusServiceUnavailable {
		t.Errorf("a third form of one user: %d", status)
	}
	if status, _ := ann.get("/why?id=a"); status != http.StatusOK {
		t.Errorf("the same user looks for a message: %d", status)
	}
	bob := *ann
	bob.name = "bob"
	if status, got := bob.paste(map[string]string{"message": pastedMail}); status != http.StatusOK {
		t.Errorf("another user: %d\n%s", status, got)
	}
}
