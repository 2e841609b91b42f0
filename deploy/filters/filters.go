// Laboratory: only hamlet-lab bench mail runs these adapters.

// Package filters holds the adapters through which `hamlet-lab bench mail` runs
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
//
// Some filters take seconds to start. Their adapters stay alive: "ADAPTER serve" prints
// "ready", and answers each line "classify FILE" or "train spam|ham FILE" of its standard
// input by a line, the second by "ok". It ends at the end of its input.
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

// SpamAssassin is the adapter of SpamAssassin's Bayes, for perl. It serves.
//
//go:embed spamassassin
var SpamAssassin []byte

// Rspamd is the adapter of rspamd's Bayes, for perl. It serves.
//
//go:embed rspamd
var Rspamd []byte

// VowpalWabbit is the adapter of Vowpal Wabbit, for perl. It serves.
//
//go:embed vowpal-wabbit
var VowpalWabbit []byte
