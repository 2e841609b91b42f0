package access

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"

	"hamlet/cmd/internal/process/secretfile"
)

// Bounds of a file of users.
const (
	maxFile     = 1 << 20
	maxCost     = 14 // of bcrypt: some seconds of a core
	maxPassword = 72 // bytes: bcrypt reads no more
)

// noPassword stands in the place of the hash of a user whom only a proxy names.
const noPassword = "-"

// Users are those of the operator's file, as it was last read without a mistake. A file that is
// empty, or is not there any more, has no user. The file:
//
//	# name:bcrypt:roles
//	ann:$2a$12$R9h/cIPz0gi.URNNX3kh2OPST9/PgBkqquzi.Ss7KIUgO2t0jWMUW:look,label,operate
//	bob@example.org:-:look
//
// A user without a password, -, comes by way of a proxy. Users may be used concurrently.
type Users struct {
	path string
	seed maphash.Seed
	live *secretfile.Live[table]
}

// A table is a file that was read.
type table struct {
	lines  map[string]line
	hashes [][]byte // all bcrypt hashes, at least one
}

// A line is one user.
type line struct {
	hash       []byte // bcrypt; nil: no password
	roles      Role
	credential [sha256.Size]byte // of the hash: another password is another credential
}

// OpenUsers reads a file. Its errors name the line. A file without a user is one: nobody could
// log in.
func OpenUsers(path string) (*Users, error) {
	live, err := secretfile.Open(func() (table, error) { return readUsers(path) }, path)
	switch {
	case err != nil:
		return nil, err
	case len(live.Get().lines) == 0:
		return nil, fmt.Errorf("users of %s: it has no user; hamlet console user NAME prints a line", path)
	}
	return &Users{path: path, seed: maphash.MakeSeed(), live: live}, nil
}

// readUsers takes a file that is not there for an empty one: whoever removes it removes all.
func readUsers(path string) (table, error) {
	data, err := secretfile.Read(path, maxFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return table{}, fmt.Errorf("users of %s: %w", path, err)
	}
	t, err := parseUsers(data)
	if err != nil {
		return table{}, fmt.Errorf("users of %s: %w", path, err)
	}
	return t, nil
}

// find returns a user's line. A nil Users has none.
func (u *Users) find(name string) (line, bool) {
	if u == nil {
		return line{}, false
	}
	l, ok := u.live.Get().lines[name]
	return l, ok
}

// check returns the line of a user with that password. It costs as much for a name that
// nobody has: the password is then compared with the hash of another user, in vain.
func (u *Users) check(name, password string) (line, bool) {
	t := u.live.Get()
	l, ok := t.lines[name]
	hash := l.hash
	if hash == nil {
		ok = false
		hash = t.hashes[maphash.String(u.seed, name)%uint64(len(t.hashes))]
	}
	if len(password) > maxPassword {
		password, ok = password[:maxPassword], false
	}
	same := bcrypt.CompareHashAndPassword(hash, []byte(password)) == nil
	return l, same && ok
}

// parseUsers reads a file. The error names the line of the first mistake, and nothing of it.
func parseUsers(data []byte) (table, error) {
	t := table{lines: map[string]line{}}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		name, l, err := parseUser(text)
		if err != nil {
			return table{}, fmt.Errorf("line %d: %w", n, err)
		}
		if _, ok := t.lines[name]; ok {
			return table{}, fmt.Errorf("line %d: another line is of the same user", n)
		}
		t.lines[name] = l
		if l.hash != nil {
			t.hashes = append(t.hashes, l.hash)
		}
	}
	if err := lines.Err(); err != nil {
		return table{}, fmt.Errorf("a line is too long: %w", err)
	}
	if len(t.hashes) == 0 {
		t.hashes = [][]byte{nobody}
	}
	return t, nil
}

// nobody is a hash that no known password has.
var nobody = []byte("$2a$12$aaaaaaaaaaaaaaaaaaaaaOaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")

var userName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}$`)
})

// checkName returns an error if no user of the file may have the name.
func checkName(name string) error {
	if !userName().MatchString(name) {
		return errors.New("name: 1 to 64 of letters, digits and ._@+- are wanted, the first a letter or a digit")
	}
	return nil
}

func parseUser(text string) (name string, l line, err error) {
	fields := strings.Split(text, ":")
	if len(fields) != 3 {
		return "", l, errors.New("name:bcrypt:roles is wanted")
	}
	if err := checkName(fields[0]); err != nil {
		return "", l, err
	}
	if l.roles, err = ParseRoles(fields[2]); err != nil {
		return "", l, err
	}
	if fields[1] == noPassword {
		return fields[0], l, nil
	}
	hash := []byte(fields[1])
	cost, err := bcrypt.Cost(hash)
	switch {
	case err != nil || len(hash) != bcryptLength:
		return "", l, errors.New("a bcrypt hash is wanted behind the name; hamlet console user NAME prints a line")
	case cost > maxCost:
		return "", l, fmt.Errorf("the hash has cost %d; at most %d is taken, for logging in would take many seconds",
			cost, maxCost)
	}
	l.hash, l.credential = hash, sha256.Sum256(hash)
	return fields[0], l, nil
}

// bcryptLength is that of every bcrypt hash.
const bcryptLength = 60

// hashCost is that of new hashes: some 0.2 s of a core.
const hashCost = 12

// newLine returns a line of the file.
func newLine(name, password string, roles Role) (string, error) {
	if err := checkName(name); err != nil {
		return "", err
	}
	switch n := len(password); {
	case n < minPassword:
		return "", fmt.Errorf("the password has %d bytes; at least %d are wanted", n, minPassword)
	case n > maxPassword:
		return "", fmt.Errorf("the password has %d bytes; bcrypt reads %d", n, maxPassword)
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(password), hashCost)
	if err != nil {
		return "", fmt.Errorf("hash the password: %w", err)
	}
	return fmt.Sprintf("%s:%s:%s\n", name, hash, roles), nil
}

// minPassword is the shortest password of a new line, in bytes.
const minPassword = 12

// passwordPatience is how long a login waits while others are checked.
const passwordPatience = 10 * time.Second
