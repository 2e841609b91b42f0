package ingest

import (
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hamlet/cmd/internal/process/tokens"
	"hamlet/stream"
)

// tokenFile returns a file with the tokens of rows; their names are the tokens.
func tokenFile(t *testing.T, rows ...string) (*tokens.File, string) {
	t.Helper()
	var text strings.Builder
	for _, row := range rows {
		name, rights, _ := strings.Cut(row, " ")
		fmt.Fprintf(&text, "- {name: %s, sha256: %x, %s}\n", name, sha256.Sum256([]byte(name)), rights)
	}
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := tokens.Open(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return file, path
}

// A request carries what its token may say, and nothing else; the log has whose events may
// be withdrawn.
func TestTokensSayWhoMaySayWhat(t *testing.T) {
	file, path := tokenFile(t,
		"desk sources: [desk], tenants: [a], actions: [learn, unlearn]",
		"any sources: [desk], tenants: [a], actions: [learn, unlearn, relearn], any-source: true",
		"two sources: [desk, trap], tenants: [a, b], actions: [learn]",
		`all sources: ["*"], tenants: ["*"], actions: [learn, unlearn, relearn]`,
	)
	var kept published
	var counted []string
	h := NewHTTP(HTTPConfig{
		Events: &kept, Token: "operator", Tokens: file, Log: slog.New(slog.DiscardHandler),
		Count: func(token string, code, events int) { counted = append(counted, fmt.Sprint(token, code, events)) },
	})
	server := httptest.NewServer(h)
	defer server.Close()
	post := func(token, kind, body string, header ...string) (int, string) {
		t.Helper()
		kept.records, counted = nil, nil
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		request.Header.Set("Content-Type", kind)
		for i := 0; i < len(header); i += 2 {
			request.Header.Set(header[i], header[i+1])
		}
		response, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		answer, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		if taken := response.StatusCode == http.StatusAccepted; taken != (len(kept.records) > 0) {
			t.Errorf("%s: %s: %d, %d records", token, body, response.StatusCode, len(kept.records))
		}
		return response.StatusCode, string(answer)
	}
	const unlearn = `"action":"unlearn","of":"0",`
	for _, c := range []struct{ token, fields, want string }{ // the record, or the refusal
		{"desk", ``, "a/desk false"},
		{"desk", `"tenant":"a","source":"desk",`, "a/desk false"},
		{"desk", `"source":"trap",`, `403 source: this token is for \"desk\"`},
		{"desk", `"source":"desk/../trap",`, "403 source"},
		{"desk", `"source":"DESK",`, "403 source"},
		{"desk", `"source":"desk\u0000",`, "403 source"},
		{"desk", `"tenant":"b",`, "403 tenant"},
		{"desk", `"tenant":"default",`, "403 tenant"},
		{"desk", `"tenant":"a/b",`, "403 tenant"},
		{"desk", unlearn, "a/desk true"},
		{"desk", `"action":"relearn","of":"0",`, "403 action: this token may learn, unlearn, and not relearn"},
		{"any", unlearn, "a/desk false"},
		{"any", unlearn + `"source":"trap",`, "403 source"},
		{"two", `"source":"trap","tenant":"b",`, "b/trap false"},
		{"two", `"tenant":"b",`, "403 source"},
		{"two", `"source":"trap",`, "403 tenant"},
		{"all", `"source":"x","tenant":"y",` + unlearn, "y/x true"},
		{"all", ``, "default/default false"},
		{"operator", `"source":"x",` + unlearn, "default/x false"},
		{"nobody", ``, "401"},
		{strings.Repeat("x", 20_000), ``, "401"},
		{"desk", unlearn + `"own_only":true,`, "400 own_only: the token decides"},
		{"any", unlearn + `"own_only":true,`, "400 own_only"},
		{"desk", unlearn + `"own_only":false,`, "400"},
		{"operator", unlearn + `"own_only":true,`, "400 own_only"},
	} {
		code, answer := post(c.token, "application/json", `{`+c.fields+`"id":"1","label":"spam","text":"x"}`)
		got := fmt.Sprint(code, " ", strings.TrimPrefix(answer, `{"error":"`))
		for _, r := range kept.records {
			e, err := stream.DecodeRecord(r.Headers, r.Value)
			if err != nil {
				t.Fatal(err)
			}
			got = fmt.Sprint(e.Tenant, "/", e.Source, " ", e.OwnOnly)
			if says, _ := stream.FindHeader(r.Headers, "ce_ownonly"); (says == "true") != e.OwnOnly {
				t.Errorf("%+v: ce_ownonly is %q", c, says)
			}
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%.20s: %s: got %s, want %s", c.token, c.fields, got, c.want)
		}
		name := strings.Replace(strings.Replace(c.token, "operator", tokens.ByOperator, 1), "nobody", tokens.ByNobody, 1)
		if len(counted) != 1 || len(c.token) < 100 && !strings.HasPrefix(counted[0], name) {
			t.Errorf("%s is counted as %q", name, counted)
		}
	}

	// Attributes of CloudEvents in the request do not get into the log.
	if code, _ := post("desk", "application/json", `{"id":"1","action":"unlearn","of":"0","text":"x"}`, "Ce-Ownonly", "false"); code != http.StatusBadRequest {
		t.Errorf("a forged ce-ownonly: %d", code)
	}
	if code, _ := post("desk", "application/json", `{"id":"1","label":"spam","text":"x"}`, "Ce-Source", "trap", "Ce-Tenant", "b", "Ce_ownonly", "false"); code != http.StatusAccepted {
		t.Errorf("other attributes: %d", code)
	} else if e, err := stream.DecodeRecord(kept.records[0].Headers, kept.records[0].Value); err != nil || e.Source != "desk" || e.Tenant != "a" {
		t.Errorf("other attributes: %+v, %v", e, err)
	}

	// One line that the token may not say refuses the batch.
	batch := `{"id":"1","label":"spam","text":"x"}` + "\n\n" + `{"id":"2","label":"spam","text":"x","source":"trap"}` + "\n"
	if code, answer := post("desk", "application/x-ndjson", batch); code != http.StatusForbidden || !strings.Contains(answer, "line 3: source") || !strings.Contains(answer, "nothing was accepted") {
		t.Errorf("a batch: %d %s", code, answer)
	}

	// A token whose line goes is unknown from the next request on.
	_, line, err := tokens.New(*tokens.Everything("x"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, line, 0o600); err != nil {
		t.Fatal(err)
	}
	file.Reload()
	if code, _ := post("desk", "application/json", `{"id":"1","label":"spam","text":"x"}`); code != http.StatusUnauthorized {
		t.Errorf("a token that was revoked: %d", code)
	}
}

// Without tokens nobody may teach.
func TestNoTokens(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/v1/events", strings.NewReader(`{"id":"1","label":"spam","text":"x"}`))
	r.Header.Set("Content-Type", "application/json")
	for _, token := range []string{"", "Bearer ", "Bearer x"} {
		r.Header.Set("Authorization", token)
		w := httptest.NewRecorder()
		if NewHTTP(HTTPConfig{}).ServeHTTP(w, r); w.Code != http.StatusUnauthorized {
			t.Errorf("%q: %d", token, w.Code)
		}
	}
}
