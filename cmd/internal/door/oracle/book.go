package oracle

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"hamlet/cmd/internal/process/wholefile"
)

// A book is an account and a day's questions as a file, so that a restart forgets neither. It is of one
// oracle: with another URL a new one begins.
//
//	{"version": 1, "oracle": "5f3c…", "state": "trusted", "last": "rrwr…", "doubtful": "rw…", "doubted": false,
//	 "total": 35, "wrong": 4, "day": "2026-11-30", "asked": 17}
type book struct {
	path   string
	oracle string // the first half of the SHA-256 of its URL, in hex
	day    string // of asked, UTC
	asked  int    // questions on that day
}

// A page is a book's file.
type page struct {
	Version  int    `json:"version"`
	Oracle   string `json:"oracle"`
	State    State  `json:"state"`
	Last     record `json:"last"` // as letters
	Doubtful record `json:"doubtful"`
	Doubted  bool   `json:"doubted"`
	Total    int    `json:"total"`
	Wrong    int    `json:"wrong"`
	Day      string `json:"day"`
	Asked    int    `json:"asked"`
}

const mostPage = 4 << 10 // bytes

// openBook reads the file at path, if there is one, for the oracle at a URL. It writes it too: a file that cannot be
// written is noticed now.
func openBook(path, endpoint string) (b *book, a Account, err error) {
	sum := sha256.Sum256([]byte(endpoint))
	b = &book{path: path, oracle: hex.EncodeToString(sum[:16])}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return b, a, b.write(&a)
	}
	if err != nil {
		return nil, a, fmt.Errorf("account of the oracle: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostPage+1))
	if err != nil {
		return nil, a, fmt.Errorf("account of the oracle: %w", err)
	}
	var p page
	if err := json.Unmarshal(text, &p); err != nil || !p.valid() {
		return nil, a, fmt.Errorf("account of the oracle: %s is no account of this version; "+
			"delete it to begin a new one", path)
	}
	b.day, b.asked = p.Day, p.Asked // the budget is the house's, whoever is asked
	if p.Oracle != b.oracle {
		return b, a, b.write(&a)
	}
	a = Account{
		last: p.Last, doubtful: p.Doubtful, doubted: p.Doubted, total: p.Total, wrong: p.Wrong, state: p.State,
	}
	return b, a, b.write(&a)
}

func (p *page) valid() bool {
	return p.Version == 1 && (p.State == Trial || p.State == Trusted || p.State == Stopped) && len(p.Last) <= window &&
		len(p.Doubtful) <= window && p.Wrong >= 0 && p.Total >= len(p.Last) && p.Total >= len(p.Doubtful) && p.Asked >= 0
}

// MarshalText writes r for a right answer and w for a wrong one.
func (r record) MarshalText() ([]byte, error) {
	text := make([]byte, len(r))
	for i, wrong := range r {
		if text[i] = 'r'; wrong {
			text[i] = 'w'
		}
	}
	return text, nil
}

// UnmarshalText reads what MarshalText writes.
func (r *record) UnmarshalText(text []byte) error {
	*r = nil
	for _, c := range text {
		if c != 'r' && c != 'w' {
			return errors.New("a comparison is r or w")
		}
		*r = append(*r, c == 'w')
	}
	return nil
}

// write replaces the file.
func (b *book) write(a *Account) error {
	p := page{1, b.oracle, a.State(), a.last, a.doubtful, a.doubted, a.total, a.wrong, b.day, b.asked}
	err := wholefile.Write(b.path, func(w io.Writer) error { return json.NewEncoder(w).Encode(p) })
	if err != nil {
		return fmt.Errorf("account of the oracle: %w", err)
	}
	return nil
}

// take takes a question of the day's, if one is left.
func (b *book) take(most int, now time.Time) bool {
	if day := now.UTC().Format(time.DateOnly); day != b.day {
		b.day, b.asked = day, 0
	}
	if b.asked >= most {
		return false
	}
	b.asked++
	return true
}
