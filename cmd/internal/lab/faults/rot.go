package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A rot is a kind of file of one machine in which a bit may flip.
type rot struct {
	name string
	of   func(path string) bool // path is relative to the folder of --data
}

func under(folder, suffix string) func(string) bool {
	return func(path string) bool { return strings.HasPrefix(path, folder) && strings.HasSuffix(path, suffix) }
}

// rots are all kinds of file that hamlet up writes and reads again. The lease is in memory, and its epoch in
// the book.
var rots = []rot{
	{"segment", func(path string) bool {
		return under("logs/", ".log")(path) && filepath.Base(path) != "log"
	}},
	{"log's head", func(path string) bool { return under("logs/", "/log")(path) }},
	{"retention", func(path string) bool { return under("logs/", "/retention")(path) }},
	{"chunk", under("models/chunks/", "")},
	{"manifest", under("models/", ".manifest")},
	{"book", under("models/", "/book.json")},
	{"nats' messages", func(path string) bool { return under("nats/", ".blk")(path) }},
	{"nats' index", func(path string) bool {
		return strings.HasPrefix(path, "nats/") && !strings.HasSuffix(path, ".blk")
	}},
}

// A flipped is a bit of a file that is not as it was written.
type flipped struct {
	path string
	at   int64
	was  byte
	is   byte
}

func (f flipped) String() string {
	return fmt.Sprintf("%s, byte %d: %02x became %02x", f.path, f.at, f.was, f.is)
}

// flipBit flips a bit of a file of a kind below data. It reports false if there is none with a byte in it.
func flipBit(data string, kind string, random *rand.Rand) (f flipped, found bool, err error) {
	i := slices.IndexFunc(rots, func(r rot) bool { return r.name == kind })
	if i < 0 {
		panic("unknown kind of file " + kind)
	}
	var paths []string
	err = filepath.WalkDir(data, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // hamlet deletes and renames
			return nil
		}
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		relative, err := filepath.Rel(data, path)
		if info, gone := e.Info(); err == nil && gone == nil && info.Size() > 0 && rots[i].of(relative) {
			paths = append(paths, path)
		}
		return err
	})
	for len(paths) > 0 && err == nil {
		at := random.IntN(len(paths))
		if f, err = flipBitOf(paths[at], random); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errEmptied) {
			return f, err == nil, err
		}
		paths, err = slices.Delete(paths, at, at+1), nil
	}
	return flipped{}, false, err
}

var errEmptied = errors.New("the file is empty")

func flipBitOf(path string, random *rand.Rand) (flipped, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrPermission) { // as root never
		return flipped{}, errors.Join(fs.ErrNotExist, err)
	}
	if err != nil {
		return flipped{}, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return flipped{}, err
	}
	if info.Size() == 0 {
		return flipped{}, errEmptied
	}
	f, b := flipped{path: path, at: random.Int64N(info.Size())}, make([]byte, 1)
	if _, err := file.ReadAt(b, f.at); err != nil {
		return flipped{}, err
	}
	f.was, f.is = b[0], b[0]^1<<random.IntN(8)
	_, err = file.WriteAt([]byte{f.is}, f.at)
	return f, err
}

// heal flips the bit back, if it still is there: the file may have been written again or deleted.
func (f flipped) heal() error {
	file, err := os.OpenFile(f.path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	b := make([]byte, 1)
	if _, err := file.ReadAt(b, f.at); err != nil || b[0] != f.is {
		return nil // it is shorter, or has other bytes
	}
	_, err = file.WriteAt([]byte{f.was}, f.at)
	return err
}

// namesDamage are the words with which hamlet says that a medium has not kept what was written.
var namesDamage = []string{"damage", "corrupt", "set aside", "not as it was written", "checksum", "cannot be read",
	"moved aside", "does not read"}

// rotMachine flips a bit of a file of the one machine, while it runs or between two starts. It lets hamlet
// meet it, and heals it: whatever was lost then was lost by hamlet, not by the medium. It reports whether
// hamlet has named the damage.
func (c *campaign) rotMachine(ctx context.Context, p *process, f fault) (injected, named bool, err error) {
	said := size(p.log)
	if !f.Running {
		if err := p.Terminate(); err != nil {
			return true, false, err
		}
	}
	random := rand.New(rand.NewPCG(f.Draw, 2))
	bit, found, err := flipBit(c.machine.data, f.File, random)
	if found {
		fmt.Fprintf(c.log, "%s   %v\n", time.Now().UTC().Format("15:04:05.000"), bit)
	}
	if f.Running && found {
		wait(ctx, f.Hold)
		err = p.Terminate() // the next start reads everything
	}
	p.release()
	if !found {
		return false, false, err
	}
	wait(ctx, f.Hold)
	// Healed while it is away. What it said of the damage is in its log by now.
	err = errors.Join(err, p.Terminate(), bit.heal())
	p.release()
	return true, saysDamage(p.log, said), err
}

// size returns a file's size, 0 if there is none.
func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// saysDamage reports whether a log names damage from a place on.
func saysDamage(path string, from int64) bool {
	text, err := os.ReadFile(path)
	if err != nil || int64(len(text)) < from {
		return false
	}
	text = bytes.ToLower(text[from:])
	return slices.ContainsFunc(namesDamage, func(word string) bool { return bytes.Contains(text, []byte(word)) })
}
