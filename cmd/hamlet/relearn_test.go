package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"hamlet/algos/model"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/learner/learnertest"
	"hamlet/cmd/internal/service/machine"
	"hamlet/state"
)

// A directory whose model is of other numerics, as after an upgrade: up learns the log again and saves the
// same model as a run that never had the old one. Answers came from the old one until then.
func TestNewNumericsOnOneMachine(t *testing.T) {
	ownFolders(t)
	data, file := t.TempDir(), filepath.Join(t.TempDir(), "texts")
	var texts strings.Builder
	for i := range 400 {
		fmt.Fprintf(&texts, "%s\tword%d thing%d\n", []string{"spam", "ham"}[i%2], i%7, i%11)
	}
	if err := os.WriteFile(file, []byte(texts.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--format=text", "--data", data, file}
	first := mustUp(t, args...)
	head := func(change func(c *state.Checkpoint)) *state.Checkpoint {
		t.Helper()
		dir, err := machine.Open(t.Context(), data, machine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		store, err := dir.Store("default")
		if err != nil {
			t.Fatal(err)
		}
		c, _, err := store.Load(t.Context(), state.Head)
		if err != nil {
			t.Fatal(err)
		}
		if change != nil {
			lease, err := store.Seize(t.Context(), "test")
			if err != nil {
				t.Fatal(err)
			}
			change(c)
			c.Epoch, c.Writer = lease.Epoch, lease.Writer
			if _, err := store.Save(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		return c
	}
	here, err := strconv.Atoi(model.CurrentNumerics())
	if err != nil {
		t.Fatal(err)
	}
	older := func(c *state.Checkpoint) {
		c.Numerics = strconv.Itoa(here - 1)
		c.Model = learnertest.WithNumerics(t, c.Model, c.Numerics)
	}
	head(older)
	said := new(watched)
	err = run(t.Context(), append([]string{"up", "--once", "--experts=lean", "--table-bits=8", "--no-alarms"}, args...), cli.IO{In: strings.NewReader(""), Out: io.Discard, Err: said})
	if err != nil || !strings.Contains(said.String(), "the log is learnt again: answers come from the new version") {
		t.Errorf("%v\n%s", err, said.String())
	}
	if c := head(nil); c.Numerics != model.CurrentNumerics() || fmt.Sprintf("%x", c.ModelSHA256) != first.ModelSHA256 {
		t.Errorf("the model is of numerics %s, %x; want %s", c.Numerics, c.ModelSHA256, first.ModelSHA256)
	}

	// A model that has learnt more than its log, as after a restore with --new-log, is not thrown away.
	head(func(c *state.Checkpoint) { older(c); c.Events++ })
	said = new(watched)
	err = run(t.Context(), append([]string{"up", "--once", "--experts=lean", "--table-bits=8", "--no-alarms"}, args...), cli.IO{In: strings.NewReader(""), Out: io.Discard, Err: said})
	if err != nil || !strings.Contains(said.String(), "the model goes on under this program's numerics") {
		t.Errorf("%v\n%s", err, said.String())
	}
	if c := head(nil); fmt.Sprintf("%x", c.ModelSHA256) == first.ModelSHA256 {
		t.Error("the model was learnt again")
	}
}

// What no start can mend ends with a status of its own, after which systemd does not try again.
func TestRefusalIsNotStartedAgain(t *testing.T) {
	ownFolders(t)
	data := t.TempDir()
	mustUp(t, "--format=text", "--data", data, rows(t))
	refused(t, cli.StatusRefused, "another configuration", "--format=text", "--data", data, "--table-bits=9", rows(t))

	dir, err := machine.Open(t.Context(), data, machine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := dir.Store("default")
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := store.Load(t.Context(), state.Head)
	if err != nil {
		t.Fatal(err)
	}
	lease, err := store.Seize(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	c.Epoch, c.Writer, c.Model, c.Numerics = lease.Epoch, lease.Writer, []byte("a format of long ago"), "0"
	if _, err := store.Save(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	refused(t, cli.StatusRefused, "which this program", "--format=text", "--data", data, rows(t))

	unit, err := os.ReadFile("../../deploy/systemd/service.conf")
	if want := fmt.Sprintf("\nRestartPreventExitStatus=%d\n", cli.StatusRefused); err != nil || !strings.Contains(string(unit), want) {
		t.Errorf("the units have no %q (%v)", want, err)
	}
}
