package deploy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var scriptCall = regexp.MustCompile(`(?:redis\.p?call|read)\('(\w+)'`)

// The learner's user may run every command of the scripts that save. Only a real Redis
// would refuse it otherwise, and only when a script comes to it.
func TestLearnerMayRunItsScripts(t *testing.T) {
	var rights []string
	for line := range strings.Lines(read(t, "redis/users.acl")) {
		if fields := strings.Fields(line); fields[1] == "learner" {
			rights = fields
		}
	}
	seen := 0
	for _, file := range []string{"commit.lua", "save.go", "store.go", "load.go", "stepback.go"} {
		for _, call := range scriptCall.FindAllStringSubmatch(read(t, filepath.Join("../state/redis", file)), -1) {
			seen++
			if !slices.Contains(rights, "+"+strings.ToLower(call[1])) {
				t.Errorf("%s calls %s, which redis/users.acl does not allow the learner", file, call[1])
			}
		}
	}
	if seen < 10 {
		t.Errorf("found %d commands in the scripts: the test misses its point", seen)
	}
}

// The users of the operator and of the console may list models, and run every command of the
// scripts that pin and unpin.
func TestOperatorsMayPin(t *testing.T) {
	for _, user := range []string{"operator", "console"} {
		m := regexp.MustCompile(`(?m)^user ` + user + ` .*$`).FindString(read(t, "redis/users.acl"))
		rights := strings.Fields(m)
		if !slices.Contains(rights, "+scan") { // redis.Store.Models
			t.Errorf("redis/users.acl does not allow the %s to list models", user)
		}
		calls := scriptCall.FindAllStringSubmatch(read(t, "../state/redis/versions.go"), -1)
		if len(calls) < 6 {
			t.Errorf("found %d commands in the scripts: the test misses its point", len(calls))
		}
		for _, call := range calls {
			if !slices.Contains(rights, "+"+strings.ToLower(call[1])) {
				t.Errorf("versions.go calls %s, which redis/users.acl does not allow the %s", call[1], user)
			}
		}
	}
}

// deploy/servers knows the user of every password that a template asks for.
func TestTemplatesNameKnownUsers(t *testing.T) {
	m := regexp.MustCompile(`(?m)^readonly users=\((.*)\)$`).FindStringSubmatch(read(t, "servers"))
	if m == nil {
		t.Fatal("servers has no list of users")
	}
	users := strings.Fields(m[1])
	seen := map[string]bool{}
	for _, file := range []string{"kafka/sasl.properties", "kafka/admin.properties", "nats/hamlet.conf", "redis/users.acl"} {
		for _, m := range regexp.MustCompile(`\b([A-Z]+)_PASSWORD\b`).FindAllStringSubmatch(read(t, file), -1) {
			user := strings.ToLower(m[1])
			seen[user] = true
			if !slices.Contains(users, user) {
				t.Errorf("%s: no user %s in servers", file, user)
			}
		}
	}
	for _, user := range []string{"admin", "broker", "learner", "scorer", "client", "gateway", "waiting", "keeper", "mailkeeper", "mailreader", "mailadmin", "console", "operator"} {
		if !seen[user] {
			t.Errorf("no template has a password of %s", user)
		}
	}
}
