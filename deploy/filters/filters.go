// Laboratory: only hamlet bench mail runs these adapters.

// Package filters holds the adapters through which `hamlet bench mail` runs
// other filters: scripts that take the commands of the TREC spam track's jig
// (Cormack and Lynam 2005, "TREC 2005 Spam Track Overview", section 2),
//
//	ADAPTER initialize
//	ADAPTER classify FILE          prints class=spam|ham score=S
//	ADAPTER train spam|ham FILE
//	ADAPTER finalize
//
// each run in the filter's own working directory. FILE is one message. Higher scores mean
// spam; scores in [0, 1] are probabilities. The binary embeds the adapters.
package filters

import _ "embed"

// Bogofilter is the adapter of bogofilter, a script for sh.
//
//go:embed bogofilter
var Bogofilter []byte

// Idle is an adapter that does nothing. It starts as many processes as Bogofilter's, so
// its cost is that of the jig.
//
//go:embed idle
var Idle []byte
