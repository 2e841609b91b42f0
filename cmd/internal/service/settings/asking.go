package settings

import (
	"hamlet/cmd/internal/process/cli"
	"hamlet/cmd/internal/service/ingest"
)

// Asking is the flag of all that take labels.
type Asking struct {
	Ask float64 `help:"Share of mail whose label hamlet review asks for, chosen by chance: promises about lost ham rest on it. The same for all that take labels: review, console, gateway, ingest, up." default:"0" placeholder:"SHARE" group:"Review" rare:"up"`
}

// Check reports a share that cannot be.
func (f Asking) Check() error {
	if !(f.Ask >= 0 && f.Ask <= ingest.MostAsked) {
		return cli.Usagef("--ask %v: a share from 0 to %v is wanted", f.Ask, ingest.MostAsked)
	}
	return nil
}

// Asking returns the share.
func (f Asking) Asking() ingest.Asking { return ingest.Asking(f.Ask) }
