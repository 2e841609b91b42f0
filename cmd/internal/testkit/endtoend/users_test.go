package endtoend

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go/sasl/scram"

	"hamlet/cmd/internal/service/settings"
	"hamlet/state/redis"
	"hamlet/stream/kafka"
	"hamlet/stream/nats"
)

// passwords are those of the servers' users, as deploy/servers made them. It is nil
// where everybody may do everything.
var passwords map[string]string

// admin is the user that may do everything. The tests themselves use it.
const admin = "admin"

func readPasswords(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	found := map[string]string{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		user, password, ok := strings.Cut(lines.Text(), " ")
		if !ok {
			return nil, fmt.Errorf("%s: a line is not USER PASSWORD", path)
		}
		found[user] = password
	}
	return found, lines.Err()
}

// userOf returns the user whose rights are enough for a command.
func userOf(name string, args []string) string {
	switch {
	case name == "ingest" && slices.Contains(args, "--token"):
		return "ingest"
	case name == "ingest":
		return "importer"
	case name == "hamlet" && args[0] == "score":
		return "client"
	case name == "hamlet":
		return admin // up is all services in one
	}
	return name
}

// grant gives a command a user's name and password. The topics of ingest are made,
// because only the learner may do that.
func grant(t *testing.T, cmd *exec.Cmd, user string) {
	t.Helper()
	if passwords == nil {
		return
	}
	if i := slices.Index(cmd.Args, "--model"); i > 0 && (user == "ingest" || user == "importer") {
		topic := settings.Topic{Replication: -1, Retention: time.Hour}
		if err := topic.Ensure(t.Context(), kafkaAs(t, "learner"), cmd.Args[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	signIn(cmd, user)
}

func kafkaAs(t *testing.T, user string) kafka.Config {
	t.Helper()
	cfg := kafka.Config{Brokers: []string{kafkaAddr}}
	if passwords != nil {
		mechanism, err := scram.Mechanism(scram.SHA512, user, passwords[user])
		if err != nil {
			t.Fatal(err)
		}
		cfg.SASL = mechanism
	}
	return cfg
}

func natsAs(user string) nats.Config {
	if passwords == nil {
		return nats.Config{URL: natsURL}
	}
	return nats.Config{URL: natsURL, User: user, Password: passwords[user]}
}

func redisAs(user, model string) redis.Config {
	if passwords == nil {
		return redis.Config{Addr: redisAddr, Model: model}
	}
	return redis.Config{Addr: redisAddr, Username: user, Password: passwords[user], Model: model}
}

// runAs runs a command to its end as a user. It makes no topics.
func runAs(t *testing.T, user, name string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	return runCommand(t, name, args, func(cmd *exec.Cmd) { signIn(cmd, user) })
}

// signIn puts a user's name and password into a command's environment, for the servers
// that its flags name. The others are embedded.
func signIn(cmd *exec.Cmd, user string) {
	cmd.Env = os.Environ()
	for flag, server := range map[string]string{"--kafka": "KAFKA", "--nats": "NATS", "--server": "NATS", "--redis": "REDIS"} {
		if slices.Contains(cmd.Args, flag) {
			cmd.Env = append(cmd.Env, "HAMLET_"+server+"_USER="+user, "HAMLET_"+server+"_PASSWORD="+passwords[user])
		}
	}
	if slices.Contains(cmd.Args, "--kafka") {
		cmd.Env = append(cmd.Env, "HAMLET_KAFKA_SASL=scram-sha-512")
	}
}
