package main

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"testing"

	"hamlet/algos/eval"
	"hamlet/algos/model"
	"hamlet/algos/text"
	"hamlet/cmd/internal/service/example"
	"hamlet/stream"
)

// tenantCount is the number of tenants among whom BenchmarkTenants deals the mail.
const tenantCount = 6

// BenchmarkTenants deals the SpamAssassin mail, in time order, at random to six tenants and
// lets some of them reject mail that the corpus calls ham. It reports the mean over the
// tenants of 1-ROCA% and of log loss: with a model for each tenant, with one for all, and
// with one for all that has personal experts. algos/model/MEASURED.md has its table.
//
//	go test -run - -bench Tenants -benchtime 1x ./cmd/hamlet
func BenchmarkTenants(b *testing.B) {
	recommended := []string{text.HeaderWords, text.Text5Grams, text.TextWords}
	for _, rule := range []struct {
		name    string
		rejects func(tenant int, list string) bool
	}{
		{"one notion", func(int, string) bool { return false }},
		{"one list each", rejectsOne},
		{"half the lists", rejectsHalf},
	} {
		for _, way := range []struct {
			name     string
			separate bool
			personal []string
		}{
			{"separate models", true, nil},
			{"one model", false, nil},
			{"personal", false, recommended},
			{"personal text words", false, []string{text.TextWords}},
			{"personal header words", false, []string{text.HeaderWords}},
		} {
			b.Run(rule.name+"/"+way.name, func(b *testing.B) {
				for range b.N {
					models := make([]*model.Model, tenantCount)
					metrics := make([]*eval.Metrics, tenantCount)
					for k := range models {
						metrics[k] = eval.New()
						if models[k] = models[0]; k == 0 || way.separate {
							var err error
							if models[k], err = model.New(model.Config{PersonalExperts: way.personal}); err != nil {
								b.Fatal(err)
							}
						}
					}
					deal, rejected := rand.New(rand.NewPCG(1, 1)), 0
					n := eachMail(b, func(e *stream.Event) {
						k := deal.IntN(tenantCount)
						e.Tenant = fmt.Sprint("tenant", k)
						if list := listOf(e.Body.Mail); e.Label == stream.Ham && list != "" && rule.rejects(k, list) {
							e.Label = stream.Spam
							rejected++
						}
						ex, _, err := example.Of(e)
						if err != nil {
							b.Fatal(err)
						}
						effect, err := models[k].Apply(&ex)
						if err != nil {
							b.Fatal(err)
						}
						metrics[k].Add(ex.Spam, effect.Prediction.LogOdds)
					})
					var roca, loss float64
					for _, m := range metrics {
						s := m.Summary()
						roca += float64(s.ROCA) / tenantCount
						loss += float64(s.LogLoss) / tenantCount
					}
					b.ReportMetric(roca, "1-ROCA%")
					b.ReportMetric(loss, "log-loss")
					b.ReportMetric(100*float64(rejected)/float64(n), "%rejected")
				}
			})
		}
	}
}

// listOf returns the lower-case List-Id of a mail, "" if it has none.
func listOf(mail []byte) string {
	head, _, _ := bytes.Cut(bytes.ToLower(mail), []byte("\n\n"))
	for line := range bytes.Lines(head) {
		if name, value, ok := bytes.Cut(line, []byte(":")); ok && string(name) == "list-id" {
			return string(bytes.TrimSpace(value))
		}
	}
	return ""
}

// rejectsOne: five tenants reject one of the largest lists each, the sixth rejects none.
func rejectsOne(tenant int, list string) bool {
	large := []string{"fork.xent.com", "ilug.linux.ie", "rpm-zzzlist", "razor-users", "spamassassin-talk"}
	return tenant < len(large) && strings.Contains(list, large[tenant])
}

// rejectsHalf: each tenant rejects its own half of all lists, by a hash.
func rejectsHalf(tenant int, list string) bool {
	h := fnv.New32a()
	fmt.Fprint(h, tenant, "/", list)
	return h.Sum32()>>16&1 == 1
}
