package access

import (
	"context"
	"errors"
	"fmt"
	"io"

	"hamlet/cmd/internal/process/cli"
)

// A UserCommand is hamlet console user.
type UserCommand struct {
	Name  string `arg:"" help:"Name of the user: letters, digits and ._@+-."`
	Roles string `help:"What the user may: look, label, operate. Look is part of each." default:"look" placeholder:"LIST" env:"-"`
}

// Help is shown by kong below the flags.
func (UserCommand) Help() string {
	return `It asks for the password, or reads it from stdin, and prints a line for the file of
--users. The line has a bcrypt hash, and not the password.

  hamlet console user ann --roles label,operate >> users
  hamlet console --users users

A console that runs reads the file again. Look shows figures, names and verdicts; label
shows mail too, and takes labels; operate acknowledges, pins, withdraws and mutes.
To end a user's sessions delete the line.`
}

// Run prints a line of the file of users.
func (c *UserCommand) Run(ctx context.Context, stdio cli.IO) error {
	if err := checkName(c.Name); err != nil {
		return cli.Usagef("%v", err)
	}
	roles, err := ParseRoles(c.Roles)
	if err != nil {
		return cli.Usagef("--roles: %v", err)
	}
	password, err := askPassword(ctx, stdio.In, stdio.Err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("read the password: %w", err)
	}
	text, err := newLine(c.Name, password, roles)
	if err != nil {
		return cli.Usagef("%v", err)
	}
	if _, err := io.WriteString(stdio.Out, text); err != nil {
		return fmt.Errorf("print the user's line: %w", err)
	}
	return nil
}

// askPassword reads a password: at a terminal twice.
func askPassword(ctx context.Context, in io.Reader, errs io.Writer) (string, error) {
	if !cli.IsTerminal(in) {
		return cli.ReadSecret(ctx, in)
	}
	var given [2]string
	for i, prompt := range []string{"Password: ", "Once more: "} {
		fmt.Fprint(errs, prompt)
		line, err := cli.ReadSecret(ctx, in)
		fmt.Fprintln(errs)
		if err != nil {
			return "", err
		}
		given[i] = line
	}
	if given[0] != given[1] {
		return "", errors.New("the two are not the same")
	}
	return given[0], nil
}
