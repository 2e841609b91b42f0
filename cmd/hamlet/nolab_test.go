//go:build nolab

package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/cli"
)

// A build without the laboratory says so where somebody asks for it.
func TestNoLab(t *testing.T) {
	for _, args := range []string{
		"fit", "fit --anything", "bench", "bench mail --bogofilter mail.mbox", "bench alarms --json", "lab faults",
		"eval --generate 10", "up --generate 10 --once",
	} {
		var out, errs bytes.Buffer
		err := run(t.Context(), strings.Fields(args), cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs})
		if cli.Status(err) != cli.StatusUsage || !strings.Contains(err.Error(), "built without its laboratory") {
			t.Errorf("hamlet %s: %v, want wrong usage that names the missing laboratory", args, err)
		}
	}
}

// The help shows nothing that this build lacks.
func TestNoLabHelp(t *testing.T) {
	for _, command := range []string{"", "up", "eval"} {
		var out, errs bytes.Buffer
		args := append(strings.Fields(command), "--help")
		if err := run(t.Context(), args, cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs}); !errors.Is(err, cli.ErrHelp) {
			t.Fatalf("%v: %v", args, err)
		}
		for _, word := range []string{"generate", "ynthetic", "bench", "fit ", "--new-"} {
			if strings.Contains(out.String(), word) {
				t.Errorf("hamlet %s --help shows %q:\n%s", command, word, out.String())
			}
		}
	}
}

// Without a source there is no synthetic mail to show: up serves and says why.
func TestNoLabServes(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	if err := run(ctx, strings.Fields("up --once --json"), cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(errs.String(), noSource) {
		t.Errorf("up says %q, want %q", errs.String(), noSource)
	}
	if !strings.Contains(out.String(), `"events":0`) {
		t.Errorf("up prints %q", out.String())
	}
}
