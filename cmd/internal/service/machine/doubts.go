package machine

import (
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"time"

	"hamlet/cmd/internal/process/wholefile"
)

// lookedName is the file, in the directory, of what the last look at the clock found.
const lookedName = ".clock"

const (
	jumps   = 24 * time.Hour // a clock that goes further than that at once is doubted
	doubted = 24 * time.Hour // of running time, until it is believed again
)

// doubts says whether the wall clock is fit for deleting what is old. Somebody sets a clock forth by a year,
// for a minute: without doubts all that is learnt would be gone.
//
// While a program runs, the monotonic clock tells how far the wall clock may have come. Between two programs
// nothing does. A machine that was off for a weekend looks like a clock that is two days ahead: its logs are
// cleaned after a day of running time. The next program goes on with the rest of a doubt. So a machine that
// runs by day cleans its logs from the third day on. One that is off for more than a day before it has run
// for a day in all never does. A shorter doubt might end before an operator looks.
type doubts struct {
	path string
	log  *slog.Logger

	begun bool
	ran   time.Duration // at the last look, since the program began
	look  look          // the last one, also of the program before; zero: there was none
}

// A look at the clock, as it stands in the file.
type look struct {
	Wall     time.Time     `json:"wall"`
	Left     time.Duration `json:"left"`     // of the doubt, in ns of running time
	Believed time.Time     `json:"believed"` // the last time that was believed
}

// believed returns wall, the time now, if it is believed, else the zero time. ran is for how long the program
// has run, by the monotonic clock.
func (d *doubts) believed(wall time.Time, ran time.Duration) time.Time {
	begins := !d.begun
	if begins {
		d.begun, d.look = true, d.read()
	}
	since := ran - d.ran
	off := wall.Sub(d.look.Wall) - since
	left := max(d.look.Left-since, 0)
	jumped := false
	switch {
	case d.look.Wall.IsZero(): // the folder is new, or was made by an older hamlet
		left = doubted
	case begins && wall.Sub(d.look.Believed).Abs() <= jumps: // also one that was wrong, and was set right
		left = 0
	case off.Abs() > jumps:
		left, jumped = doubted, true
		d.log.Warn("the clock may be wrong: for a day no record of a log is deleted by age", "jumped_by", off)
	}
	if begins && left > 0 && !jumped {
		d.log.Info("no record of a log is deleted by age yet: the clock is watched first", "left", left)
	}
	d.ran, d.look.Wall, d.look.Left = ran, wall, left
	if left == 0 {
		d.look.Believed = wall
	}
	if err := d.write(); err != nil {
		d.log.Error("the time could not be kept", "error", err)
	}
	if left > 0 {
		return time.Time{}
	}
	return wall
}

// read returns the look in the file, or none if it is missing or damaged.
func (d *doubts) read() (l look) {
	b, err := os.ReadFile(d.path)
	if err != nil || json.Unmarshal(b, &l) != nil || l.Left < 0 || l.Left > doubted {
		return look{}
	}
	return l
}

func (d *doubts) write() error {
	return wholefile.Write(d.path, func(w io.Writer) error { return json.NewEncoder(w).Encode(d.look) })
}
