package doubtful

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"hamlet/cmd/internal/operate/review"
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/settings"
	"hamlet/cmd/internal/web/page"
	"hamlet/stream/nats"
)

// A session says whether labels are right, by the word of one source.
type session struct {
	judge Judge
	by    string
	model string
}

func (s *session) say(ctx context.Context, item *Item, right bool) error {
	return settings.ExplainLog(s.judge.Say(ctx, item, right, s.by), s.model)
}

// The keys of ask.
const (
	keyConfirm = 'c'
	keyTurn    = 't'
	keySkip    = 's'
	keyQuit    = 'q'
)

// ask shows labels one by one, and does what a key says. It ends with the last one, q, or the end of
// the input. A label of which nothing can be said stays as it is, and the next one follows.
func (s *session) ask(ctx context.Context, items []Item, stdio cli.IO) error {
	confirmed, turned := 0, 0
	for i := range items {
		item := &items[i]
		if err := s.show(ctx, stdio.Out, item, i+1, len(items)); err != nil {
			return err
		}
		key, err := s.key(ctx, stdio)
		if err != nil {
			return err
		}
		if key == keyQuit {
			break
		}
		if key == keySkip {
			continue
		}
		err = s.say(ctx, item, key == keyConfirm)
		switch {
		case errors.Is(err, ErrNoMessage):
			fmt.Fprintf(stdio.Err, "%v\n", err)
		case err != nil:
			return err
		case key == keyConfirm:
			confirmed++
		default:
			turned++
		}
	}
	return cli.Print(stdio.Out, fmt.Sprintf("%d labels: %d confirmed, %d turned around\n", len(items), confirmed, turned))
}

// key returns the next key that means something. The end of the input is keyQuit.
func (s *session) key(ctx context.Context, stdio cli.IO) (byte, error) {
	for {
		key, err := cli.ReadKey(ctx, stdio.In)
		switch {
		case errors.Is(err, io.EOF):
			fmt.Fprintln(stdio.Out)
			return keyQuit, nil
		case err != nil:
			return 0, err
		case strings.IndexByte(string([]byte{keyConfirm, keyTurn, keySkip, keyQuit}), key) >= 0:
			fmt.Fprintf(stdio.Out, "%c\n\n", key)
			return key, nil
		}
	}
}

// mostShown is how much of a message's text is shown, in letters.
const mostShown = 1000

func (s *session) show(ctx context.Context, w io.Writer, item *Item, n, of int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d: %s\n", n, of, item.ID)
	fmt.Fprintf(&b, "%s says %s, of %s, %v ago. Before that p was %.4f; φ is %.4f.\n", cli.Cell(item.Source), item.Label,
		cli.Cell(item.Tenant), time.Since(item.Time).Round(time.Minute), item.P, item.Doubt.Phi)
	switch m, err := s.judge.Kept(ctx, item.ID); {
	case err == nil:
		text := review.Read(m.Message)
		fmt.Fprintf(&b, "From: %s\nSubject: %s\n\n%s\n\n", text.From, text.Subject, page.Clip(text.Text, mostShown))
	case errors.Is(err, nats.ErrNotArchived):
		b.WriteString("The message is not kept, so it cannot be shown here.\n")
	default:
		fmt.Fprintf(&b, "The kept message cannot be read: %v\n", err)
	}
	fmt.Fprintf(&b, "[c] it is %s  [t] it is %s  [s] skip  [q] end: ", item.Label, item.Other())
	return cli.Print(w, b.String())
}
