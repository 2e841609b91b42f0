package doors

import (
	"strings"
	"testing"
)

// A controller's port asks for a password; a socket has its mode.
func TestControllerWantsAPassword(t *testing.T) {
	for _, test := range []struct {
		addrs    []string
		password string
		refused  bool
	}{
		{nil, "", false},
		{[]string{"127.0.0.1:11334"}, "", true},
		{[]string{"unix:/run/ctl.sock", "127.0.0.1:11334"}, "", true},
		{[]string{"127.0.0.1:11334"}, "secret", false},
		{[]string{"unix:/run/ctl.sock"}, "", false},
	} {
		f := RspamdFlags{RspamdController: test.addrs, RspamdPassword: test.password}
		if err := f.check(); (err != nil) != test.refused || err != nil && !strings.Contains(err.Error(), "HAMLET_RSPAMD_PASSWORD") {
			t.Errorf("%+v: %v", test, err)
		}
	}
}
