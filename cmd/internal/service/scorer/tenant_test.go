package scorer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"hamlet/algos/feature"
	"hamlet/algos/model"
	"hamlet/algos/text"
	"hamlet/stream"
	"hamlet/stream/mail"
	"hamlet/stream/questions"
)

// A request is answered to its tenant: of two tenants who label the same newsletters in
// opposite ways, each is answered in its own. Reasons name inputs only.
func TestRequestsAreAnsweredToTheirTenant(t *testing.T) {
	m, err := model.New(model.Config{TableBits: 12, TextExperts: []string{text.Lean}, PersonalExperts: []string{text.TextWords}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		tenant, kind := []string{"keeps", "rejects"}[i%2], []string{"news", "meeting"}[i/2%2]
		body := []byte(strings.Repeat(fmt.Sprint(kind, i%5, " "), 6))
		ex := model.Example{ID: fmt.Sprint(i), Spam: kind == "news" && tenant == "rejects",
			Body: model.Body{Tenant: tenant, Message: &feature.Message{Body: body, BodyBytes: len(body)}}}
		if _, err := m.Apply(&ex); err != nil {
			t.Fatal(err)
		}
	}
	served := servedOf(t, m)
	ask := func(tenant string) stream.Verdict {
		request := &stream.Event{Tenant: tenant, Body: stream.Body{Kind: stream.Text, Text: "news1 news1 news2"}}
		verdicts, _, err := served.score(t.Context(), []*stream.Event{request}, scoreConfig{explain: true}, fixedRules, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range verdicts[0].Reasons {
			if strings.Contains(r.Name, "news") || strings.Contains(r.Name, "keeps") || strings.Contains(r.Name, "rejects") {
				t.Errorf("the reason %q shows a word or a tenant", r.Name)
			}
		}
		return verdicts[0]
	}
	if keeps, rejects := ask("keeps"), ask("rejects"); !(keeps.P < 0.2 && rejects.P > 0.8) {
		t.Errorf("p = %.3f to the tenant that keeps newsletters, %.3f to the one that rejects them", keeps.P, rejects.P)
	}
}

// A mail's verdict has its identity, which is the tenant's. Texts have none.
func TestIdentitiesOfAnswers(t *testing.T) {
	url, r := startNATS(t), miniredis.RunT(t)
	l := newTeacher(t, openStore(t, r))
	l.learn(10)
	sum := l.save()
	start(t, Config{Questions: over(connect(t, url)), Store: openStore(t, r)})
	c := ask(t, url)
	if v := awaitModel(t, c, sum); v.Identity != "" {
		t.Errorf("a text has the identity %s", v.Identity)
	}
	raw := []byte("X-Hamlet-Tag: [SPAM]\nMessage-ID: <1@a>\nSubject: [SPAM] hello\n\nHow are you?\n")
	m := mail.Parse([]byte("Message-ID: <1@a>\nSubject: hello\n\nHow are you?\n"))
	for _, tenant := range []string{"default", "example.org"} {
		verdicts, err := c.Ask(patience(t), questions.Question{Body: raw, ContentType: questions.Mail, Explain: true, Tenant: tenant})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := verdicts[0].Identity, mail.Identity(tenant, &m); got != want {
			t.Errorf("the identity to tenant %s is %s, want %s", tenant, got, want)
		}
	}
}
