package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"hamlet/cmd/internal/cli"
	"hamlet/cmd/internal/credentials"
)

// An envCommand prints the addresses and passwords of a running up.
type envCommand struct {
	Addr string `arg:"" optional:"" name:"address" help:"An address that up printed, if several run."`
	For  string `help:"sh, json, kcat or java." enum:"sh,json,kcat,java" default:"sh" env:"-"`
}

// Help is shown by kong below the flags.
func (envCommand) Help() string {
	return `Examples:

  eval "$(hamlet env)"             for hamlet's services, nats and redis-cli
  nats request hamlet.score -H Content-Type:text/plain 'You won a prize'
  kcat -F <(hamlet env --for kcat) -L
  hamlet env --for java >client.properties
  hamlet env --for json | jq -r .nats_client.url
  hamlet env 127.0.0.1:4222        of several, the one with this address

The embedded servers of hamlet up take only programs that have their passwords. The
programs of hamlet find them if they run as the same user. For other programs and
other users this prints them: keep it from the eyes of others.

NATS has two users. "client" asks for scores and hears alerts; NATS_USER is set to
it. "hamlet" may do everything; HAMLET_NATS_USER is set to it.
`
}

func (c *envCommand) run(stdio cli.IO) error {
	access, err := c.find()
	if err != nil {
		return err
	}
	var text string
	switch c.For {
	case "json":
		text, err = envJSON(access)
	case "kcat":
		text, err = envKafka(access, "bootstrap.servers=%[1]s\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"+
			"sasl.username=%[2]s\nsasl.password=%[3]s\n")
	case "java":
		text, err = envKafka(access, "bootstrap.servers=%[1]s\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"+
			"sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username=\"%[2]s\" password=\"%[3]s\";\n")
	default:
		text = envShell(access)
	}
	if err != nil {
		return err
	}
	_, err = io.WriteString(stdio.Out, text)
	return err
}

// find returns the running up that has the address, or without an address the only one.
func (c *envCommand) find() (credentials.Access, error) {
	running := credentials.Running()
	var found []credentials.Access
	var all []string
	addr := strings.TrimPrefix(c.Addr, "nats://")
	for _, a := range running {
		all = append(all, addresses(a)...)
		for _, l := range []string{a.Kafka.Addr, a.Redis.Addr, a.NATS.Addr} {
			if l != "" && (addr == "" || addr == l) {
				found = append(found, a)
				break
			}
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(running) == 0:
		return credentials.Access{}, errors.New("no `hamlet up` of this user runs with embedded servers and passwords: start one, or ask as the user who runs it")
	case len(found) == 0:
		return credentials.Access{}, fmt.Errorf("no `hamlet up` of this user listens at %s; there are %s", c.Addr, strings.Join(all, ", "))
	}
	return credentials.Access{}, cli.Usagef("several `hamlet up` run: name an address of the one that you mean, of %s", strings.Join(all, ", "))
}

func addresses(a credentials.Access) (all []string) {
	for _, addr := range []string{a.NATS.Addr, a.Kafka.Addr, a.Redis.Addr} {
		if addr != "" {
			all = append(all, addr)
		}
	}
	return all
}

// envShell returns assignments for a shell. A server that is not embedded has none.
func envShell(a credentials.Access) string {
	var b strings.Builder
	set := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "export %s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
		}
	}
	if a.Kafka.Addr != "" {
		set("HAMLET_KAFKA", a.Kafka.Addr)
		set("HAMLET_KAFKA_SASL", "scram-sha-256")
		set("HAMLET_KAFKA_USER", a.Kafka.User)
		set("HAMLET_KAFKA_PASSWORD", a.Kafka.Password)
	}
	if a.Redis.Addr != "" {
		set("HAMLET_REDIS", a.Redis.Addr)
		set("HAMLET_REDIS_PASSWORD", a.Redis.Password)
		set("REDISCLI_AUTH", a.Redis.Password)
		if host, port, err := net.SplitHostPort(a.Redis.Addr); err == nil {
			fmt.Fprintf(&b, "# redis-cli -h %s -p %s\n", host, port)
		}
	}
	if a.NATS.Addr != "" {
		set("HAMLET_NATS", "nats://"+a.NATS.Addr)
		set("HAMLET_NATS_USER", a.NATS.User)
		set("HAMLET_NATS_PASSWORD", a.NATS.Password)
		set("NATS_URL", "nats://"+a.Asker.Addr)
		set("NATS_USER", a.Asker.User)
		set("NATS_PASSWORD", a.Asker.Password)
	}
	return b.String()
}

// envKafka returns settings of a Kafka client: address, user and password in the format.
func envKafka(a credentials.Access, format string) (string, error) {
	if a.Kafka.Addr == "" {
		return "", errors.New("this `hamlet up` has no embedded Kafka: it uses the one that its --kafka names")
	}
	return fmt.Sprintf(format, a.Kafka.Addr, a.Kafka.User, a.Kafka.Password), nil
}

// envJSON returns an object for programs.
func envJSON(a credentials.Access) (string, error) {
	type login struct {
		credentials.Login
		URL       string `json:"url,omitempty"`
		Mechanism string `json:"mechanism,omitempty"`
	}
	object := struct {
		PID   int    `json:"pid"`
		Kafka *login `json:"kafka,omitempty"`
		Redis *login `json:"redis,omitempty"`
		NATS  *login `json:"nats,omitempty"`
		Asker *login `json:"nats_client,omitempty"`
	}{PID: a.PID}
	if a.Kafka.Addr != "" {
		object.Kafka = &login{Login: a.Kafka, Mechanism: "SCRAM-SHA-256"}
	}
	if a.Redis.Addr != "" {
		object.Redis = &login{Login: a.Redis, URL: "redis://:" + a.Redis.Password + "@" + a.Redis.Addr}
	}
	if a.NATS.Addr != "" {
		url := func(l credentials.Login) *login {
			return &login{Login: l, URL: "nats://" + l.User + ":" + l.Password + "@" + l.Addr}
		}
		object.NATS, object.Asker = url(a.NATS), url(a.Asker)
	}
	b, err := json.MarshalIndent(object, "", "  ")
	return string(b) + "\n", err
}
