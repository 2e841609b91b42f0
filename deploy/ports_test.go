package deploy_test

import (
	"bytes"
	"cmp"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/conf"
	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write the lists of PORTS.md")

// A grant is one right of one user.
type grant struct{ user, right, to string }

// kafkaGrants reads the rules of kafka/acls.
func kafkaGrants(t *testing.T) (all []grant) {
	t.Helper()
	_, rules, _ := strings.Cut(read(t, "kafka/acls"), "<<'END'\n")
	rules, _, ok := strings.Cut(rules, "\nEND\n")
	if !ok {
		t.Fatal("kafka/acls has no rules")
	}
	for line := range strings.Lines(rules) {
		f := strings.Fields(line)
		if len(f) != 4 {
			t.Fatalf("kafka/acls: %q has not four words", line)
		}
		for _, user := range strings.Split(f[0], ",") {
			for _, operation := range strings.Split(f[1], ",") {
				for _, name := range strings.Split(f[3], ",") {
					all = append(all, grant{user, operation, f[2] + " `" + name + "`"})
				}
			}
		}
	}
	return all
}

// natsGrants reads the users of nats/hamlet.conf, as nats-server does.
func natsGrants(t *testing.T) (all []grant) {
	t.Helper()
	top, err := conf.Parse(read(t, "nats/hamlet.conf"))
	if err != nil {
		t.Fatal(err)
	}
	for account, v := range top["accounts"].(map[string]any) {
		for _, u := range v.(map[string]any)["users"].([]any) {
			u := u.(map[string]any)
			user := u["user"].(string)
			if account != "HAMLET" {
				user += " of " + account
			}
			permissions := u["permissions"].(map[string]any)
			for _, right := range []string{"publish", "subscribe"} {
				for _, subject := range subjects(permissions[right]) {
					all = append(all, natsGrant(user, right, subject))
				}
			}
			if permissions["allow_responses"] == true {
				all = append(all, grant{user, "answer", "questions"})
			}
		}
	}
	return all
}

func subjects(v any) (all []string) {
	if s, ok := v.(string); ok {
		return []string{s}
	}
	list, _ := v.([]any)
	for _, s := range list {
		all = append(all, s.(string))
	}
	return all
}

var ofStream = regexp.MustCompile(`^\$JS\.(API\.STREAM\.(INFO|CREATE|UPDATE)|API\.(STREAM\.MSG\.GET|CONSUMER\.[A-Z.]+|DIRECT\.GET)|ACK)\.([A-Za-z_-]+)(\.>)?$`)

// natsGrant says of a request to JetStream what it does to which stream.
func natsGrant(user, right, subject string) grant {
	if subject, group, ok := strings.Cut(subject, " "); ok {
		return grant{user, right + " in the queue group " + group, "`" + subject + "`"}
	}
	if own, _, _ := strings.Cut(user, " "); subject == "_INBOX."+own+".>" {
		return grant{user, right, "`_INBOX.USER.>` of its own name"}
	}
	m := ofStream.FindStringSubmatch(subject)
	if m == nil || right != "publish" {
		return grant{user, right, "`" + subject + "`"}
	}
	does := map[string]string{"INFO": "see", "CREATE": "make", "UPDATE": "change"}[m[2]]
	if m[1] == "ACK" {
		does = "acknowledge"
	}
	return grant{user, cmp.Or(does, "read"), "stream `" + m[4] + "`"}
}

// redisGrants reads redis/users.acl.
func redisGrants(t *testing.T) (all []grant) {
	t.Helper()
	for line := range strings.Lines(read(t, "redis/users.acl")) {
		f := strings.Fields(line)
		if f[2] != "on" {
			continue
		}
		for _, rule := range f[3:] {
			switch {
			case strings.HasPrefix(rule, "%R~"):
				all = append(all, grant{f[1], "read", "keys `" + rule[3:] + "`"})
			case strings.HasPrefix(rule, "~"):
				all = append(all, grant{f[1], "read, write", "keys `" + rule[1:] + "`"})
			case strings.HasPrefix(rule, "+"):
				all = append(all, grant{f[1], "run", "`" + rule[1:] + "`"})
			}
		}
	}
	return all
}

// list writes grants as a table. What all users have the same rights to shares a line.
func list(grants []grant) string {
	rights := map[string]map[string][]string{} // of users, by thing and right
	for _, g := range grants {
		if rights[g.to] == nil {
			rights[g.to] = map[string][]string{}
		}
		if users := rights[g.to][g.right]; !slices.Contains(users, g.user) {
			rights[g.to][g.right] = append(users, g.user)
		}
	}
	things := map[string][]string{} // by who may do what
	for thing, of := range rights {
		var all []string
		for _, right := range slices.Sorted(maps.Keys(of)) {
			slices.Sort(of[right])
			all = append(all, right+": "+strings.Join(of[right], ", "))
		}
		who := strings.Join(all, "; ")
		things[who] = append(things[who], thing)
	}
	var rows []string
	for who, same := range things {
		slices.Sort(same)
		rows = append(rows, "| "+strings.Join(same, ", ")+" | "+who+" |\n")
	}
	slices.Sort(rows)
	return "| what | who may |\n|---|---|\n" + strings.Join(rows, "")
}

// The page says who may do what as the files with the rights do.
func TestPortsAgainstRights(t *testing.T) {
	page := read(t, "PORTS.md")
	for name, grants := range map[string][]grant{"kafka/acls": kafkaGrants(t), "nats/hamlet.conf": natsGrants(t), "redis/users.acl": redisGrants(t)} {
		before, rest, ok := strings.Cut(page, "<!-- "+name+" -->\n")
		was, after, closed := strings.Cut(rest, "<!-- end -->")
		if !ok || !closed {
			t.Fatalf("PORTS.md has no mark of %s", name)
		}
		if want := list(grants); was != want {
			if !*update {
				t.Errorf("PORTS.md does not say what %s says: go test ./deploy -run TestPorts -update", name)
			}
			page = before + "<!-- " + name + " -->\n" + want + "<!-- end -->" + after
		}
	}
	if *update {
		if err := os.WriteFile("PORTS.md", []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// The page has every channel and stream of the contract, every key of the store and every port
// of the examples.
func TestPortsAreComplete(t *testing.T) {
	page := read(t, "PORTS.md")
	var contract struct {
		Channels map[string]struct {
			Address string `yaml:"address"`
			Stream  string `yaml:"x-jetstream"`
		} `yaml:"channels"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "contracts/asyncapi.yaml")), &contract); err != nil {
		t.Fatal(err)
	}
	if len(contract.Channels) < 15 {
		t.Errorf("%d channels: the test misses its point", len(contract.Channels))
	}
	has := func(what, why string) {
		t.Helper()
		if !strings.Contains(page, what) {
			t.Errorf("PORTS.md lacks %s (%s)", what, why)
		}
	}
	for name, c := range contract.Channels {
		if name == "answers" {
			continue
		}
		has("`"+c.Address+"`", "contracts/asyncapi.yaml")
		if c.Stream != "" {
			has("`"+c.Stream+"`", "contracts/asyncapi.yaml")
		}
	}

	_, keys, _ := strings.Cut(page, "\n| key | what |\n")
	keys, _, _ = strings.Cut(keys, "\n\n")
	var named, used []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z]+:?)`").FindAllStringSubmatch(keys, -1) {
		named = append(named, m[1])
	}
	files, err := filepath.Glob("../state/redis/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	words := regexp.MustCompile(`"(epoch|lease|refs|last|head|served|pinned|versions|partitions|promotion|version:|chunk:)"`)
	call := regexp.MustCompile(`\.key\(\w+, "([a-z]+:?)"`)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text := read(t, file)
		for _, m := range append(words.FindAllStringSubmatch(text, -1), call.FindAllStringSubmatch(text, -1)...) {
			used = append(used, m[1])
		}
	}
	slices.Sort(named)
	slices.Sort(used)
	if used = slices.Compact(used); !slices.Equal(named, used) {
		t.Errorf("PORTS.md has the keys %v, state/redis %v", named, used)
	}

	port := regexp.MustCompile(`(?:127\.0\.0\.1|kafka|nats|redis|k|n|r|"|\s):(\d{3,5})\b`)
	seen := 0
	for _, file := range []string{
		"hamlet.yaml", "../README.md", "SERVICES.md", "INSTALL.md", "mail/README.md", "CONSOLE.md", "../cmd/internal/service/program/ingest.go", "../cmd/internal/service/program/learner.go",
		"../cmd/internal/service/program/scorer.go", "../cmd/hamlet/gateway.go", "../cmd/internal/service/up/command.go",
	} {
		for _, m := range port.FindAllSubmatch([]byte(read(t, file)), -1) {
			seen++
			if !regexp.MustCompile(`(?m)^\| [^|]*\b` + string(bytes.TrimSpace(m[1])) + `\b[^|]*\|`).MatchString(page) {
				t.Errorf("PORTS.md lacks port %s of %s", m[1], file)
			}
		}
	}
	if seen < 20 {
		t.Errorf("found %d ports: the test misses its point", seen)
	}
}
