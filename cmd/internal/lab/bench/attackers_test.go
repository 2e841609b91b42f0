package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"hamlet/algos/algotest/dataset"
	"hamlet/algos/feature"
	"hamlet/algos/model"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/settings"
)

// attackers runs `hamlet-lab bench attackers`.
func attackers(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	var c Command
	var out, errs bytes.Buffer
	stdio := cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs}
	args = append([]string{"attackers", "--no-alarms", "--experts", "lean", "--limit", "700", "--at", "400"}, args...)
	err = settings.Run(t.Context(), "bench", "", &c, args, stdio)
	return out.String(), err
}

// On 700 sms a loud liar wins where all labels count the same, and not by standing.
func TestAttackers(t *testing.T) {
	sms := filepath.Join(dataset.Path(t, "sms"), "SMSSpamCollection")
	out, err := attackers(t, "--only", "ham called spam, 10", "--json", sms)
	if err != nil {
		t.Fatal(err)
	}
	var r attackersResult
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if len(r.Attacks) != 1 || len(r.Attacks[0].Runs) != treatments || r.Events != 700 || r.From != 400 {
		t.Fatalf("%+v", r)
	}
	runs := r.Attacks[0].Runs
	equal, standing, anchor := runs["equal"], runs["standing"], runs["anchor"]
	if equal.Error < 0.3 || standing.Error > 0.05 || anchor.Error > 0.05 {
		t.Errorf("errors %.3f, with standing %.3f, with an anchor %.3f", equal.Error, standing.Error, anchor.Error)
	}
	if standing.Accused < 1 || standing.Accused > 30 || standing.False > 0 {
		t.Errorf("accused after %d events, the honest source %d times", standing.Accused, standing.False)
	}
	table, err := attackers(t, "--only", "none", sms)
	if err != nil || !strings.Contains(table, "a new name each") || strings.Contains(table, "NaN") {
		t.Errorf("%v, table\n%s", err, table)
	}
}

func TestAttackersUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--at", "-1", "x"}, "--at"},
		{[]string{"--at", "700", csvRows(t, 700)}, "leaves nothing"},
		{[]string{"--only", "nothing", csvRows(t, 700)}, "--only"},
	} {
		if _, err := attackers(t, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want one about %s", c.args, err, c.want)
		}
	}
	_, err := attackers(t, "--at", "-1", "x")
	if usage := (*cli.UsageError)(nil); !errors.As(err, &usage) {
		t.Errorf("%v is not wrong usage", err)
	}
}

// Every attack says what its name says.
func TestAttacks(t *testing.T) {
	var set []model.Example
	for i := range 400 {
		text := "the meeting is at noon"
		if i%4 == 0 {
			text = "buy pills today"
			if i%20 == 0 {
				text += " campaign"
			}
		}
		set = append(set, model.Example{Spam: i%4 == 0,
			Body: model.Body{Message: &feature.Message{Body: []byte(text), BodyBytes: len(text)}}})
	}
	name, in := campaignOf(set)
	if name != "campaign" {
		t.Errorf("the campaign is %q", name)
	}
	words := dictionaryOf(set)
	if got := string(words.Body.Message.Body); got != "at is meeting noon the " {
		t.Errorf("the dictionary is %q", got)
	}
	for _, a := range attacks() {
		if a.rate == 0 {
			continue
		}
		s := newAssault(&a, set, words, in, 1)
		s.honest = 1 << 20 // sleepers are awake
		lies, names := 0, map[string]bool{}
		for range 2000 {
			ex, ok := s.next()
			if !ok {
				t.Fatalf("%s: nothing to say", a.name)
			}
			names[ex.Source] = true
			spam := strings.HasPrefix(string(ex.Body.Message.Body), "buy")
			if ex.Spam != spam {
				lies++
			}
		}
		least, most := 2000, 2000
		switch {
		case strings.Contains(a.name, "30 %"):
			least, most = 500, 700
		case strings.Contains(a.name, "40 %"):
			least, most = 700, 900
		case strings.Contains(a.name, "campaign"):
			least, most = 60, 140
		case strings.Contains(a.name, "300 true"):
			least, most = 1700, 1700
		}
		if lies < least || lies > most {
			t.Errorf("%s: %d of 2000 labels are false, want %d to %d", a.name, lies, least, most)
		}
		want := 1
		switch {
		case strings.Contains(a.name, "new name"):
			want = 2000
		case strings.Contains(a.name, "ten sources"):
			want = 7
		}
		if len(names) < want || want == 1 && len(names) > 1 {
			t.Errorf("%s: %d sources", a.name, len(names))
		}
	}
}
