package machine

import (
	"io"
	"log/slog"
	"os"
	"time"

	"hamlet/cmd/internal/process/wholefile"
)

// lookedName is the file, in the directory, of the time when the clock was last believed.
const lookedName = ".clock"

const (
	jumps   = 24 * time.Hour // a clock that goes further than that at once is doubted
	doubted = 24 * time.Hour // how long a program runs until it believes the clock again
)

// doubts says whether the wall clock is fit for deleting what is old. Somebody sets a clock forth by a year,
// for a minute: without doubts all that is learnt would be gone.
//
// While a program runs, the monotonic clock tells how far the wall clock may have come. Between two programs
// nothing does. A machine that was off for a week looks like a clock that is a week ahead: its logs are
// cleaned a day later. A shorter doubt than a day might end before an operator looks.
type doubts struct {
	path string
	log  *slog.Logger

	begun bool
	wall  time.Time     // at the last look
	ran   time.Duration // at the last look, since the program began
	until time.Duration // the clock is doubted before the program has run for so long
	saved time.Time     // what is in the file; zero: nothing
}

// believed returns wall, the time now, if it is believed, else the zero time. ran is for how long the program
// has run, by the monotonic clock.
func (d *doubts) believed(wall time.Time, ran time.Duration) time.Time {
	off := wall.Sub(d.wall) - (ran - d.ran)
	if !d.begun {
		d.begun, d.saved = true, d.read()
		off = wall.Sub(d.saved)
		if d.saved.IsZero() { // the folder is new, or was made by an older hamlet
			off, d.until = 0, doubted
		}
	}
	d.wall, d.ran = wall, ran
	if off.Abs() > jumps {
		d.until = ran + doubted
		d.log.Warn("the clock may be wrong: for a day nothing is deleted because it is old", "jumped_by", off)
	}
	if ran < d.until {
		return time.Time{}
	}
	if wall.Sub(d.saved).Abs() > time.Hour {
		if err := d.write(wall); err != nil {
			d.log.Error("the time could not be kept", "error", err)
		} else {
			d.saved = wall
		}
	}
	return wall
}

// read returns the time in the file, or the zero time if it is missing or damaged.
func (d *doubts) read() (at time.Time) {
	b, err := os.ReadFile(d.path)
	if err != nil || at.UnmarshalText(b) != nil {
		return time.Time{}
	}
	return at
}

func (d *doubts) write(at time.Time) error {
	b, err := at.UTC().MarshalText()
	if err != nil {
		return err
	}
	return wholefile.Write(d.path, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}
