//go:build nolab

package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/cli"
)

// A build without the laboratory says so where somebody asks for it.
func TestNoLab(t *testing.T) {
	for _, args := range []string{
		"fit", "fit --anything", "bench", "bench mail --bogofilter mail.mbox", "bench alarms --json",
		"eval --generate 10", "up --generate 10 --once",
	} {
		var out, errs bytes.Buffer
		err := run(t.Context(), strings.Fields(args), cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs})
		if cli.Status(err) != cli.StatusUsage || !strings.Contains(err.Error(), "built without its laboratory") {
			t.Errorf("hamlet %s: %v, want wrong usage that names the missing laboratory", args, err)
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
