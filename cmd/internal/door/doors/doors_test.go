package doors

import (
	"strings"
	"testing"
	"time"

	"hamlet/cmd/internal/process/cli"
)

// A door is for this machine, unless the operator says otherwise.
func TestAddressesOfDoors(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:783": "", "[::1]:783": "", "localhost:783": "", "unix:/run/x": "",
		"unix:": "wants a path", "783": "neither", "0.0.0.0:783": "--remote", ":783": "--remote", "10.0.0.1:783": "--remote",
	} {
		err := checkAddr("--spamd", addr, false)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || cli.Status(err) != cli.StatusUsage) {
			t.Errorf("%s: %v, want %q", addr, err, want)
		}
	}
	if err := checkAddr("--spamd", ":783", true); err != nil {
		t.Error(err)
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		f    Flags
		want string
	}{
		{Flags{}, ""}, {Flags{RejectAt: 1, QuarantineAt: .9}, ""}, {Flags{QuarantineAt: 1}, ""},
		{Flags{RejectAt: .9, QuarantineAt: .9}, "refused already"}, {Flags{RejectAt: .9, QuarantineAt: .95}, "refused already"},
		{Flags{RejectAt: -.1}, "--reject-at: -0.1"}, {Flags{QuarantineAt: 1.1}, "--quarantine-at: 1.1"},
		{Flags{FieldWords: 21, Spamd: []string{"unix:/run/x"}}, "words in the header: 21"},
		{Flags{TagSubject: "a\nb", Spamd: []string{"unix:/run/x"}}, "tag of the subject"},
	} {
		c.f.Deadline, c.f.Memory, c.f.SocketMode = time.Second, 1, "0660"
		err := c.f.Check()
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || cli.Status(err) != cli.StatusUsage) {
			t.Errorf("%+v: %v, want %q", c.f, err, c.want)
		}
	}
}
