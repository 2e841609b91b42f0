package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"hamlet/cmd/internal/lab/product"
)

// newMachine returns the one machine of an era: a hamlet up whose folder is on a disk of its own, if there
// can be one.
func newMachine(c *campaign, era int) (*system, error) {
	folder := filepath.Join(c.dir, fmt.Sprintf("machine-%d", era))
	if len(c.disks) > 0 {
		var err error
		if c.disk, err = newDisk(c.dir, c.disks[(era-1)%len(c.disks)]); err != nil {
			return nil, err
		}
		c.say("the machine's disk is an %s", c.disk.system)
		folder = c.disk.at
	}
	return newUp(c, lone, era, folder)
}

// probeDisks finds which file systems a disk of its own can have. wanted are the faults that need one.
func (c *campaign) probeDisks(wanted []choice) {
	err := errors.New("there is no mkfs.ext4")
	for _, system := range makers() {
		var d *disk
		if d, err = newDisk(c.dir, system); err == nil {
			err = d.remove()
		}
		if err == nil {
			c.disks = append(c.disks, system)
		}
	}
	if len(c.disks) == 0 {
		why := fmt.Sprintf("a disk of its own needs root, loop devices and mkfs: %v", err)
		for _, x := range wanted {
			c.leaveOut(x.action, why)
		}
	}
}

// endMachine ends the machine of an era, with its disk.
func (c *campaign) endMachine() error {
	if c.disk == nil {
		return nil
	}
	d := c.disk
	c.disk = nil
	if c.Keep == "" {
		return d.remove()
	}
	return errors.Join(unmount(d.at), os.Rename(d.image, fmt.Sprintf("%s-%d", d.image, time.Now().Unix())))
}

// cutPower takes the machine's power away: what was written to its disk stays, and the machine starts on that.
func (c *campaign) cutPower(ctx context.Context, p *process, hold time.Duration) error {
	if err := p.Freeze(); err != nil {
		return nil // it does not run: an orderly moment
	}
	copied, err := c.disk.cut()
	p.Kill()
	if err == nil {
		err = c.disk.replace(copied)
	}
	wait(ctx, hold)
	p.release()
	return err
}

const (
	fullWithin = 20 * time.Second // until a label is refused: a segment may have room
	fullSays   = "no space is left"
)

// fillDisk takes all room of the machine's disk, while hamlet runs or before it starts. Labels are refused with
// a reason, and answers go on. Then there is room again.
func (c *campaign) fillDisk(ctx context.Context, s *system, p *process, f fault) (err error) {
	defer func() { err = errors.Join(err, c.disk.free()) }()
	client := &http.Client{Timeout: 6 * time.Second}
	defer client.CloseIdleConnections()
	awaitReady := func(how string) error { // the fault before may have ended it
		for late := time.Now().Add(settleWithin); !p.Ready(); {
			if wait(ctx, 50*time.Millisecond); ctx.Err() != nil || time.Now().After(late) {
				return fmt.Errorf("%s it is not ready within %v", how, settleWithin)
			}
		}
		return nil
	}
	if err := awaitReady("with room on the disk"); err != nil {
		return err
	}
	if !f.Running {
		p.Kill()
		err := c.disk.fill()
		p.release()
		if err == nil {
			err = awaitReady("on a full disk")
		}
		if err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, fullWithin+f.Hold)
	defer cancel()
	begun := time.Now()
	for refused := false; !refused; {
		if err := c.disk.fill(); err != nil { // again and again: files are deleted too
			return err
		}
		body, ids, err := s.sender.next()
		if err != nil {
			return err
		}
		status, answer, err := product.Post(ctx, client, s.sender.url, product.Labels, token, body)
		switch {
		case err == nil && status == http.StatusAccepted:
			s.sender.ledger.ack(ids...)
		case err == nil && (status == http.StatusServiceUnavailable || status == http.StatusInsufficientStorage):
			if refused = strings.Contains(string(answer), fullSays); !refused {
				return fmt.Errorf("with a full disk a label is refused with %q", answer)
			}
		case err == nil:
			return fmt.Errorf("with a full disk a label is answered with %d, %q", status, answer)
		}
		if time.Since(begun) > fullWithin || ctx.Err() != nil {
			return fmt.Errorf("with a full disk no label is refused within %v: %w", fullWithin, errors.Join(err, ctx.Err()))
		}
	}
	answered := s.asker.count()
	wait(ctx, f.Hold)
	if ctx.Err() == nil && s.asker.count() == answered {
		return fmt.Errorf("with a full disk no answer comes within %v", f.Hold)
	}
	return nil
}

// moveClock sets the clock of a process, while it runs or between two starts. At the machine it stays wrong:
// the next fault of the kind sets it again.
func (c *campaign) moveClock(ctx context.Context, p *process, f fault) error {
	if f.Running {
		if err := p.clock.set(f.Skew); err != nil {
			return err
		}
		wait(ctx, f.Hold)
	} else {
		err := errors.Join(p.Terminate(), p.clock.set(f.Skew))
		p.release()
		if err != nil {
			return err
		}
		wait(ctx, f.Hold)
	}
	if f.Target == lone {
		return nil
	}
	return p.clock.set(0)
}
