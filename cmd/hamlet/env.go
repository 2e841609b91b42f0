package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/process/credentials"
)

// An envCommand prints the address and passwords of a running up.
type envCommand struct {
	Addr string `arg:"" optional:"" name:"address" help:"An address that up printed, if several run."`
	For  string `help:"sh or json." enum:"sh,json" default:"sh" env:"-"`
}

// Help is shown by kong below the flags.
func (envCommand) Help() string {
	return `Examples:

  eval "$(hamlet env)"             for hamlet's services and nats
  nats request hamlet.score -H Content-Type:text/plain 'You won a prize'
  hamlet env --for json | jq -r .nats_client.url
  hamlet env 127.0.0.1:4222        of several, the one with this address

The NATS of hamlet up takes only programs that have its passwords. The programs of
hamlet find them if they run as the same user. For other programs and other users this
prints them: keep it from the eyes of others.

NATS has two users. "client" asks for scores and hears alerts; NATS_USER is set to
it. "hamlet" may do everything; HAMLET_NATS_USER is set to it. HAMLET_DATA is the folder of
the logs and models, for the commands of operators.
`
}

func (c *envCommand) Run(stdio cli.IO) error {
	access, err := c.find()
	if err != nil {
		return err
	}
	text := envShell(access)
	if c.For == "json" {
		text, err = envJSON(access)
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
		if at := a.NATS.Addr; at != "" {
			all = append(all, at)
			if addr == "" || addr == at {
				found = append(found, a)
			}
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(all) == 0:
		return credentials.Access{}, errors.New("no `hamlet up` of this user runs with a NATS of its own and passwords: " +
			"start one, or ask as the user who runs it")
	case len(found) == 0:
		return credentials.Access{}, fmt.Errorf("no `hamlet up` of this user listens at %s; there are %s",
			c.Addr, strings.Join(all, ", "))
	}
	return credentials.Access{}, cli.Usagef("several `hamlet up` run: name an address of the one that you mean, of %s",
		strings.Join(all, ", "))
}

// envShell returns assignments for a shell.
func envShell(a credentials.Access) string {
	var b strings.Builder
	set := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "export %s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
		}
	}
	set("HAMLET_DATA", a.Data)
	set("HAMLET_NATS", "nats://"+a.NATS.Addr)
	set("HAMLET_NATS_USER", a.NATS.User)
	set("HAMLET_NATS_PASSWORD", a.NATS.Password)
	set("NATS_URL", "nats://"+a.Asker.Addr)
	set("NATS_USER", a.Asker.User)
	set("NATS_PASSWORD", a.Asker.Password)
	return b.String()
}

// envJSON returns an object for programs.
func envJSON(a credentials.Access) (string, error) {
	type login struct {
		credentials.Login
		URL string `json:"url,omitempty"`
	}
	url := func(l credentials.Login) *login {
		return &login{Login: l, URL: "nats://" + l.User + ":" + l.Password + "@" + l.Addr}
	}
	b, err := json.MarshalIndent(struct {
		PID   int    `json:"pid"`
		Data  string `json:"data,omitempty"`
		NATS  *login `json:"nats"`
		Asker *login `json:"nats_client"`
	}{a.PID, a.Data, url(a.NATS), url(a.Asker)}, "", "  ")
	return string(b) + "\n", err
}
