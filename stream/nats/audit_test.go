package nats_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hamlet/stream"
	"hamlet/stream/nats"
)

// openAudit returns an audit whose stream is there, if the server takes it.
func openAudit(ctx context.Context, conn *natsgo.Conn, model string) (*nats.Audit, error) {
	a, err := nats.NewAudit(conn, model)
	if err != nil {
		return nil, err
	}
	if err := a.Prepare(ctx); errors.Is(err, nats.ErrRefused) {
		return nil, err
	}
	return a, nil
}

func audit(t testing.TB, conn *natsgo.Conn, model string) *nats.Audit {
	t.Helper()
	a, err := openAudit(patience(t), conn, model)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func auditLine(id, action, target, outcome string) stream.AuditEntry {
	return stream.AuditEntry{ID: id, Time: time.Now(), Model: "default", User: "ann@example.org", Roles: "look,operate", From: "127.0.0.1", Action: action, Target: target, Outcome: outcome}
}

// ids returns the newest lines' ids and outcomes.
func ids(t testing.TB, a *nats.Audit, n int, since time.Time) string {
	t.Helper()
	lines, bad, err := a.Read(patience(t), n, since)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, l := range lines {
		all = append(all, l.ID+":"+l.Outcome)
	}
	if bad > 0 {
		all = append(all, fmt.Sprintf("%d bad", bad))
	}
	return strings.Join(all, " ")
}

func TestAuditIsReadAsWritten(t *testing.T) {
	conn := connect(t, startJetStream(t, t.TempDir(), -1, nil))
	a, other := audit(t, conn, "default"), audit(t, conn, "billing")
	ctx := patience(t)
	if got := ids(t, a, 10, time.Time{}); got != "" {
		t.Errorf("an empty audit: %s", got)
	}
	failed := auditLine("2", "pin", "7", stream.AuditFailed+"Redis is away\n"+strings.Repeat("x", 2000))
	of := auditLine("b", "pin", "1", stream.AuditDone)
	of.Model = "billing"
	for i, err := range []error{
		a.Append(ctx, auditLine("1", "pin", "7", stream.AuditIntended)),
		a.Append(ctx, auditLine("1", "pin", "7", stream.AuditIntended)), // a copy
		a.Append(ctx, auditLine("1", "pin", "7", stream.AuditDone)),
		other.Append(ctx, of),
		a.Append(ctx, auditLine("2", "pin", "7", stream.AuditIntended)),
		a.Append(ctx, failed),
	} {
		if err != nil {
			t.Fatalf("line %d: %v", i, err)
		}
	}
	long := "2:failed: Redis is away " + strings.Repeat("x", 2000)
	got := ids(t, a, 10, time.Time{})
	if want := " 2:intended 1:done 1:intended"; !strings.HasPrefix(got, long[:900]) || !strings.HasSuffix(got, want) {
		t.Errorf("the audit is %s", got)
	}
	middle := time.Now()
	if err := a.Append(ctx, auditLine("3", "unpin", "", stream.AuditIntended)); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]string{0: "", 1: "3:intended", -1: ""} {
		if got := ids(t, a, n, time.Time{}); got != want {
			t.Errorf("the newest %d: %s", n, got)
		}
	}
	if got := ids(t, a, 10, middle); got != "3:intended" {
		t.Errorf("since the last: %s", got)
	}
	if got := ids(t, other, 10, time.Time{}); got != "b:done" {
		t.Errorf("of another model: %s", got)
	}
	for _, bad := range []stream.AuditEntry{{}, of, auditLine("", "pin", "", stream.AuditDone), auditLine("4", "pin", "", "perhaps")} {
		if err := a.Append(ctx, bad); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
	// What is no line of ours hides no other.
	b, _ := of.AppendJSON(nil)
	for _, forged := range []string{"hello", string(b), `{"id":"9"}`} {
		if err := conn.Publish(nats.AuditSubject("default"), []byte(forged)); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Append(ctx, auditLine("5", "pin", "8", stream.AuditDone)); err != nil {
		t.Fatal(err)
	}
	if got := ids(t, a, 2, time.Time{}); !strings.HasPrefix(got, "5:done 3:intended") || !strings.HasSuffix(got, "3 bad") {
		t.Errorf("behind forged lines: %s", got)
	}
	if _, err := openAudit(ctx, conn, "A.b"); err == nil {
		t.Error("a model of that name has an audit")
	}
}

// The stream has the audit's bounds, whatever others made of it, and deletes no line.
func TestAuditKeepsItsLines(t *testing.T) {
	conn := connect(t, startJetStream(t, t.TempDir(), -1, nil))
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	ctx := patience(t)
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: nats.AuditStream, Subjects: []string{"hamlet.audit.x"}, Discard: jetstream.DiscardNew, MaxBytes: 1 << 20, MaxAge: time.Hour, MaxMsgSize: 100}); err != nil {
		t.Fatal(err)
	}
	a := audit(t, conn, "default")
	if err := a.Append(ctx, auditLine("1", "pin", "7", stream.AuditDone)); err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(ctx, nats.AuditStream)
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.CachedInfo().Config
	if cfg.MaxAge != 400*24*time.Hour || cfg.MaxBytes != 1<<30 || cfg.Discard != jetstream.DiscardOld || !cfg.DenyDelete || !cfg.DenyPurge || cfg.MaxMsgSize != stream.MaxAuditLine || len(cfg.Subjects) != 1 || cfg.Subjects[0] != "hamlet.audit.*" {
		t.Errorf("the stream is %+v", cfg)
	}
	if err := s.DeleteMsg(ctx, 1); err == nil {
		t.Error("a line was deleted")
	}
	if err := s.Purge(ctx); err == nil {
		t.Error("the audit was emptied")
	}
	if got := ids(t, a, 10, time.Time{}); got != "1:done" {
		t.Errorf("the audit is %s", got)
	}
	// Bounds that keep more stay. A stream that somebody deleted is made again.
	if err := js.DeleteStream(ctx, nats.AuditStream); err != nil {
		t.Fatal(err)
	}
	if err := a.Append(ctx, auditLine("2", "pin", "7", stream.AuditDone)); err == nil {
		t.Error("a stream that is gone took a line")
	}
	afterDelete(t, func() error { return a.Append(ctx, auditLine("3", "pin", "7", stream.AuditDone)) })
	cfg.MaxAge, cfg.MaxBytes = 0, -1
	if _, err := js.UpdateStream(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	audit(t, conn, "default")
	if s, err = js.Stream(ctx, nats.AuditStream); err != nil || s.CachedInfo().Config.MaxAge != 0 {
		t.Errorf("a longer age was shortened: %v", err)
	}
}

// The stream takes the longest line, and nothing larger.
func TestAuditTakesLinesAlone(t *testing.T) {
	t.Parallel()
	conn := connect(t, startJetStream(t, t.TempDir(), -1, nil))
	a := audit(t, conn, "default")
	const wide = "<" // of six bytes in JSON
	e := auditLine(strings.Repeat(wide, 128), strings.Repeat(wide, 128), strings.Repeat(wide, 512), stream.AuditFailed+strings.Repeat(wide, 1000))
	e.Detail = map[string]string{}
	for i := range 16 {
		e.Detail[strings.Repeat(wide, 127)+string(rune('a'+i))] = strings.Repeat(wide, 512)
	}
	if err := a.Append(patience(t), e); err != nil {
		t.Fatal(err)
	}
	answer, err := conn.Request(nats.AuditSubject("other"), make([]byte, stream.MaxAuditLine+1), 30*time.Second)
	if err != nil || !strings.Contains(string(answer.Data), "message size exceeds maximum") {
		t.Errorf("a message that is no line: %v, %s", err, answer.Data)
	}
	lines, bad, err := a.Read(patience(t), 10, time.Time{})
	if err != nil || len(lines) != 1 || bad != 0 || len(lines[0].Detail) != 16 {
		t.Errorf("the audit has %d lines and %d others: %v", len(lines), bad, err)
	}
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(patience(t), nats.AuditStream)
	if err != nil || s.CachedInfo().Config.MaxMsgSize != stream.MaxAuditLine || s.CachedInfo().State.Msgs != 1 {
		t.Errorf("%v, %+v", err, s.CachedInfo())
	}
}

func TestAcknowledgedIncidents(t *testing.T) {
	conn := connect(t, startJetStream(t, t.TempDir(), -1, nil))
	a := audit(t, conn, "default")
	ctx := patience(t)
	write := func(lines ...stream.AuditEntry) {
		t.Helper()
		for _, l := range lines {
			if err := a.Append(ctx, l); err != nil {
				t.Fatal(err)
			}
		}
	}
	who := func() string {
		t.Helper()
		all, err := a.Acknowledged(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var s []string
		for _, target := range []string{"100", "200", "300"} {
			if e, ok := all[target]; ok {
				s = append(s, target+" by "+e.ID)
			}
		}
		return strings.Join(s, ", ")
	}
	if got := who(); got != "" {
		t.Errorf("nothing was done: %s", got)
	}
	write(auditLine("1", "acknowledge", "100", stream.AuditIntended), auditLine("1", "acknowledge", "100", stream.AuditDone),
		auditLine("2", "acknowledge", "200", stream.AuditIntended), auditLine("2", "acknowledge", "200", stream.AuditFailed+"x"), auditLine("3", "pin", "300", stream.AuditDone))
	if got := who(); got != "100 by 1" {
		t.Errorf("acknowledged: %s", got)
	}
	write(auditLine("4", "acknowledge", "100", stream.AuditDone), auditLine("5", "acknowledge", "300", stream.AuditDone))
	if got := who(); got != "100 by 4, 300 by 5" {
		t.Errorf("acknowledged later: %s", got)
	}
	all, err := a.Acknowledged(ctx)
	if err != nil {
		t.Fatal(err)
	}
	delete(all, "100") // is the caller's
	if got := who(); got != "100 by 4, 300 by 5" {
		t.Errorf("acknowledged after a change of the caller's map: %s", got)
	}
}

// Many lines of other models stand between those of this one.
func TestAuditOfOneAmongMany(t *testing.T) {
	conn := connect(t, startJetStream(t, t.TempDir(), -1, nil))
	a, other := audit(t, conn, "default"), audit(t, conn, "other")
	ctx := patience(t)
	for i := range 60 {
		e, to := auditLine(fmt.Sprint(i), "pin", "7", stream.AuditDone), a
		if i%15 > 0 {
			e.Model, to = "other", other
		}
		if err := to.Append(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	if got := ids(t, a, 3, time.Time{}); got != "45:done 30:done 15:done" {
		t.Errorf("the newest 3: %s", got)
	}
	if got := ids(t, a, 100, time.Time{}); got != "45:done 30:done 15:done 0:done" {
		t.Errorf("all: %s", got)
	}
}

// Without JetStream, the right to the stream, or a server, the error says what to do.
func TestAuditSaysWhatIsMissing(t *testing.T) {
	s := startServer(t)
	conn := connect(t, s)
	if _, err := openAudit(patience(t), conn, "default"); !errors.Is(err, nats.ErrRefused) || !strings.Contains(err.Error(), "nats-server -js") {
		t.Errorf("without JetStream: %v", err)
	}
	away := connect(t, startJetStream(t, t.TempDir(), -1, nil))
	a := audit(t, away, "default")
	away.Close()
	if err := a.Append(patience(t), auditLine("1", "pin", "7", stream.AuditDone)); !errors.Is(err, nats.ErrNoServer) {
		t.Errorf("without a server: %v", err)
	}
	if _, _, err := a.Read(patience(t), 1, time.Time{}); !errors.Is(err, nats.ErrNoServer) {
		t.Errorf("without a server the audit is read: %v", err)
	}
	if _, err := a.Acknowledged(patience(t)); !errors.Is(err, nats.ErrNoServer) {
		t.Errorf("without a server: %v", err)
	}
}
