package access

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"hamlet/cmd/internal/process/cli"
)

func TestMistakesInTheFileOfUsers(t *testing.T) {
	for text, want := range map[string]string{
		"":                                          "no user",
		"# nobody\n":                                "no user",
		"ann":                                       "line 1: name:bcrypt:roles",
		"\n\nann:" + cheap:                          "line 3: name:bcrypt:roles",
		"ann:" + cheap + ":look:x":                  "line 1: name:bcrypt:roles",
		"ann:" + cheap + ":":                        "line 1: role",
		"ann:" + cheap + ":root":                    "line 1: role",
		"ann:secret:look":                           "line 1: a bcrypt hash",
		"ann:" + cheap[:59] + ":look":               "line 1: a bcrypt hash",
		"ann:" + cheap + "x:look":                   "line 1: a bcrypt hash",
		"ann:$2a$15$" + cheap[7:] + ":look":         "line 1: the hash has cost 15",
		"ann:$2a$31$" + cheap[7:] + ":look":         "line 1: the hash has cost 31",
		":" + cheap + ":look":                       "line 1: name",
		"<b>:" + cheap + ":look":                    "line 1: name",
		"ann:-:look\nann:-:label":                   "line 2: another line",
		"ann:-:look\n" + strings.Repeat("x", 1<<17): "too long",
		strings.Repeat("#", 1<<20+1):                "larger than 1048576 bytes",
	} {
		_, err := OpenUsers(usersFile(t, text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), cheap[10:50]) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
	if _, err := OpenUsers("/nonexistent"); err == nil {
		t.Error("a file that is not there is read")
	}
	path := usersFile(t, threeUsers...)
	if err := os.Chmod(path, 0o606); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenUsers(path); err == nil || !strings.Contains(err.Error(), "chmod o= ") {
		t.Errorf("a file that everybody may read and write: %v", err)
	}
	// htpasswd writes 2y.
	u := openUsers(t, "ann:$2y"+cheap[3:]+":operate", "\t", "bob@example.org:-:label , look")
	if l, ok := u.check("ann", password); !ok || l.roles != Look|Operate {
		t.Errorf("a hash of htpasswd: %v, %v", l.roles, ok)
	}
	if l, ok := u.find("bob@example.org"); !ok || l.roles != Look|Label {
		t.Errorf("%v, %v", l.roles, ok)
	}
	// Bcrypt reads 72 bytes. What follows is not passed over.
	longest := strings.Repeat("x", maxPassword)
	hash, err := bcrypt.GenerateFromPassword([]byte(longest), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	u = openUsers(t, "ann:"+string(hash)+":look")
	if _, ok := u.check("ann", longest); !ok {
		t.Error("a password of 72 bytes is refused")
	}
	if _, ok := u.check("ann", longest+"y"); ok {
		t.Error("a password of 73 bytes is taken for its first 72")
	}
	// Where nobody has a password, a check is in vain and costs as much.
	if _, ok := openUsers(t, "bob:-:look").check("bob", "-"); ok {
		t.Error("a user without a password has one")
	}
	if cost, err := bcrypt.Cost(nobody); err != nil || cost != hashCost {
		t.Errorf("the hash of nobody: %d, %v", cost, err)
	}
}

func TestUserCommand(t *testing.T) {
	var out, errs bytes.Buffer
	c := UserCommand{Name: "ann", Roles: "label,operate"}
	if err := c.Run(t.Context(), cli.IO{In: strings.NewReader(password + " \r\nmore\n"), Out: &out, Err: &errs}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), password) || errs.Len() > 0 {
		t.Errorf("it prints %s%s", &out, &errs)
	}
	u := openUsers(t, out.String())
	if l, ok := u.check("ann", password+" "); !ok || l.roles != Look|Label|Operate {
		t.Errorf("the line gives %v, %v", l.roles, ok)
	}
	if _, ok := u.check("ann", password); ok {
		t.Error("a blank at the end of the password was lost")
	}
	for _, bad := range []struct {
		c  UserCommand
		in string
	}{
		{UserCommand{"a:b", "look"}, password}, {UserCommand{"ann", "root"}, password}, {UserCommand{"ann", "look"}, "short"}, {UserCommand{"ann", "look"}, strings.Repeat("x", 73)},
	} {
		var usage *cli.UsageError
		if err := bad.c.Run(t.Context(), cli.IO{In: strings.NewReader(bad.in), Out: &out, Err: &errs}); !errors.As(err, &usage) {
			t.Errorf("%+v: %v", bad.c, err)
		}
	}
	if err := (&UserCommand{"ann", "look"}).Run(t.Context(), cli.IO{In: strings.NewReader(""), Out: &out, Err: &errs}); err == nil {
		t.Error("no password is taken")
	}
}

func TestFlags(t *testing.T) {
	for _, c := range []struct {
		addr string
		tls  bool
		f    Flags
		want string // part of the error; empty: none
	}{
		{"127.0.0.1:8080", false, Flags{}, ""},
		{"localhost:8080", false, Flags{}, ""},
		{"[::1]:8080", false, Flags{}, ""},
		{":8080", false, Flags{}, "at every address can be reached"},
		{"0.0.0.0:8080", false, Flags{}, "clear text"},
		{"192.0.2.1:8080", false, Flags{}, "127.0.0.1:8080"},
		{"console.example:8080", false, Flags{}, "clear text"},
		{":8080", true, Flags{}, ""},
		{":8080", false, Flags{BehindProxy: []string{"192.0.2.1"}}, ""},
		{"8080", true, Flags{}, "host:port is wanted"},
		{":8080", false, Flags{BehindProxy: []string{"proxy.example"}}, "no IP address"},
		{":8080", true, Flags{BehindProxy: []string{"0.0.0.0/0"}}, "every address"},
		{":8080", true, Flags{BehindProxy: []string{"::/0"}}, "every address"},
		{":8080", true, Flags{UserHeader: "X-Remote-User"}, "whose counts"},
		{":8080", true, Flags{UserHeader: "X-Remote-User", BehindProxy: []string{"::1"}, Host: []string{"a"}}, "nobody would have a role"},
		{":8080", true, Flags{UserHeader: "X-Remote-User", BehindProxy: []string{"::1"}, RolesHeader: "X-Roles"}, "--host"},
		{":8080", true, Flags{UserHeader: "X Remote", BehindProxy: []string{"::1"}, RolesHeader: "X-Roles", Host: []string{"a"}}, "no name of a header"},
		{":8080", true, Flags{UserHeader: "cookie", BehindProxy: []string{"::1"}, RolesHeader: "X-Roles", Host: []string{"a"}}, "says something else"},
		{":8080", true, Flags{UserHeader: "X-A", BehindProxy: []string{"::1"}, RolesHeader: "x-a", Host: []string{"a"}}, "says something else"},
		{":8080", true, Flags{RolesHeader: "X-Roles"}, "--user-header too"},
		{":8080", true, Flags{Host: []string{"a:1"}}, "without a port"},
		{":8080", true, Flags{UserHeader: "X-A", BehindProxy: []string{"::1", "192.0.2.0/24"}, RolesHeader: "x-b", Host: []string{"a"}}, ""},
	} {
		err := c.f.Check(c.addr, c.tls)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %v, %+v: %v, want %q", c.addr, c.tls, c.f, err, c.want)
		}
	}
	cfg, err := Flags{Users: usersFile(t, threeUsers...), BehindProxy: []string{"::1"}, UserHeader: "X-A", Host: []string{"a"}}.Config(":1", true, nil)
	if err != nil || cfg.Proxy == nil || cfg.Users == nil || !cfg.TLS {
		t.Errorf("%+v, %v", cfg, err)
	}
}
