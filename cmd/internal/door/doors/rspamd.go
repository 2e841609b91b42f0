package doors

import (
	"slices"
	"strings"

	"hamlet/cmd/internal/door/gateway"
	"hamlet/cmd/internal/door/rspamd"
	"hamlet/cmd/internal/process/cli"
)

// RspamdFlags are those of the doors that speak rspamd's protocol.
type RspamdFlags struct {
	Rspamd           []string `help:"Answer rspamd's clients: Exim, rspamc, Haraka." placeholder:"ADDR" group:"Doors" rare:"up"`
	RspamdController []string `help:"Be rspamd's controller: learning and counts." placeholder:"ADDR" group:"Doors" rare:"up"`
	RspamdPassword   string   `help:"Password of the controller; better in the environment." placeholder:"SECRET" group:"Doors" rare:"up"`
}

// doors are the scan door and the controller, which shows the counts of both.
func (f *RspamdFlags) doors() []door {
	counts := rspamd.NewCounts()
	return []door{
		{"--rspamd", f.Rspamd, "rspamd", func(d *gateway.Door) handler {
			return rspamd.New(d, counts).Handle
		}},
		{"--rspamd-controller", f.RspamdController, "rspamd-ctl", func(d *gateway.Door) handler {
			return rspamd.NewController(d, f.RspamdPassword, counts).Handle
		}},
	}
}

// check refuses a port whose clients are asked for nothing.
func (f *RspamdFlags) check() error {
	isPort := func(addr string) bool { return !strings.HasPrefix(addr, "unix:") }
	if f.RspamdPassword == "" && slices.ContainsFunc(f.RspamdController, isPort) {
		return cli.Usagef("--rspamd-controller: every user of this machine can connect to a port: " +
			"set --rspamd-password (or HAMLET_RSPAMD_PASSWORD), or listen on unix:PATH")
	}
	return nil
}
