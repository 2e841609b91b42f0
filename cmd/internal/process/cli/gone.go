package cli

import "github.com/alecthomas/kong"

// Gone is a command that a release had. It is wrong usage, whatever follows its name, and the tag says what does
// the same now:
//
//	Filter cli.Gone `cmd:"" hidden:"" passthrough:"" instead:"spamc marks a message"`
type Gone struct {
	Args []string `arg:"" optional:""`
}

// AfterApply is called by kong where the command is given.
func (Gone) AfterApply(path *kong.Path) error {
	return Usagef("there is no %s any more: %s", path.Command.FullPath(), path.Command.Tag.Get("instead"))
}
