package feature

import (
	"bytes"
	"slices"
)

// filterWords are in the names of the fields of many filters. A field whose name begins
// with "x-" and contains one of them is a mark.
var filterWords = []string{
	// X-Spam-* (SpamAssassin, Exim, Stalwart), X-Rspamd-*, X-DSPAM-*, X-Spambayes-*, X-SpamProbe,
	// X-GMX-Antispam, X-MS-Exchange-Organization-Antispam-*, X-Forefront-Antispam-*,
	// X-Microsoft-Antispam*, X-Proofpoint-Spam-Details, X-Suspected-Spam, …
	"spam",
	"phish",       // X-KSMG-AntiPhishing, X-Gm-Phishy, X-MS-Exchange-Organization-PhishThresholdLevel
	"mailscanner", // X-MailScanner*, X-<organisation>-MailScanner-*
}

// markNames are the beginnings of other names of marks, without the "x-", sorted.
var markNames = []string{
	"amavis-",                      // Amavis
	"analysisout",                  // MXLogic
	"annoyance-filter-",            // Annoyance Filter
	"aol-global-disposition",       // AOL
	"aol-scoll-",                   // AOL
	"assp-",                        // ASSP
	"authority-analysis",           // Cloudmark
	"barracuda-",                   // Barracuda
	"bogofilter",                   // bogofilter
	"bogosity",                     // bogofilter
	"brightmail",                   // Symantec Brightmail
	"cloud-sec-av-",                // Avanan
	"cloudmark-",                   // Cloudmark
	"clx-",                         // Proofpoint, as Apple's iCloud runs it
	"cm-analysis",                  // Cloudmark
	"cm-score",                     // Cloudmark
	"cmae",                         // Cloudmark: X-CMAE-Score, X_CMAE_Category
	"cnfs-analysis",                // Cloudmark
	"crm114-",                      // CRM114
	"ctch-",                        // Commtouch, Cyren
	"declude-",                     // Declude JunkMail
	"feas-",                        // FortiMail
	"folder",                       // the folder that a mail was filed in, from exports of mailboxes
	"gbudb-analysis",               // Message Sniffer
	"gm-labels",                    // Gmail's labels, "Spam" among them
	"gmail-labels",                 // the same, from Google Takeout
	"ham-",                         // SpamAssassin
	"hamlet",                       // hamlet
	"haraka-karma",                 // Haraka
	"hmailserver-reason",           // hMailServer
	"imss-scan-details",            // Trend Micro
	"ironport-",                    // Cisco IronPort
	"junk",                         // Mirapoint and others
	"keywords",                     // the mailbox's keywords: $Junk, NonJunk
	"label",                        // labels of mail programs
	"lased-",                       // Sophos
	"message-delivery",             // Hotmail: its SCL in Base64
	"messagesniffer-",              // Message Sniffer
	"mimecast-impersonation",       // Mimecast
	"mirapoint-",                   // Mirapoint
	"mlf-threat",                   // SonicWall, once MailFrontier
	"mozilla-keys",                 // Thunderbird's tags: Junk, NonJunk
	"mras",                         // Mail.ru
	"ms-exchange-organization-pcl", // Exchange's phishing confidence level
	"ms-exchange-organization-scl", // Exchange's spam confidence level
	"nas-",                         // Norton
	"pmx-",                         // Sophos PureMessage
	"popfile-",                     // POPFile
	"pstn-",                        // Postini
	"purgate",                      // eXpurgate
	"quarantine",                   // Amavis and others
	"sa-",                          // SpamAssassin in Exim
	"sendmail-cm-",                 // Cloudmark in Sendmail
	"suspicious",                   // several
	"text-classification",          // POPFile
	"tm-as-",                       // Trend Micro
	"tmase-",                       // Trend Micro
	"ui-filterresults",             // GMX, web.de, 1&1
	"ui-out-filterresults",         // the same
	"vade-",                        // Vade
	"vr-",                          // Vade Retro
	"yahoofilteredbulk",            // Yahoo
	"ymailisg",                     // Yahoo
}

// resultNames are the fields in which a filter's verdict may stand among the results of
// SPF, DKIM and DMARC (RFC 8601, RFC 8617).
var resultNames = []string{
	"arc-authentication-results",
	"authentication-results",
	"authentication-results-original",
	"original-authentication-results",
	"x-authentication-results",
	"x-original-authentication-results",
}

// namesAt[c] are the markNames that begin with c.
var namesAt = func() (at [256][]string) {
	for _, name := range markNames {
		at[name[0]] = append(at[name[0]], name)
	}
	return at
}()

// isMark reports whether line, a line of Message.Head, is a mark of a filter.
func isMark(line []byte) bool {
	switch line[0] {
	case 'a', 'i', 'o', 's', 'x':
	default:
		return false
	}
	colon := bytes.IndexByte(line, ':')
	if colon < 0 {
		return false
	}
	name := line[:colon]
	if len(name) > 2 && name[0] == 'x' && (name[1] == '-' || name[1] == '_') {
		rest := name[2:]
		for _, n := range namesAt[rest[0]] {
			if len(rest) >= len(n) && rest[1] == n[1] && string(rest[:len(n)]) == n {
				return true
			}
		}
		if bytes.IndexByte(rest, 's') >= 0 { // as all of them have
			for _, w := range filterWords {
				if bytes.Contains(rest, []byte(w)) {
					return true
				}
			}
		}
	}
	if hasPrefix(name, "spamdiagnostic") || hasPrefix(name, "ironport-") { // Exchange Online; Cisco
		return true
	}
	return slices.Contains(resultNames, string(name)) && statesVerdict(line[colon+1:])
}

func hasPrefix(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && string(b[:len(prefix)]) == prefix
}

// statesVerdict reports whether v, an unfolded Authentication-Results, has a method that
// names hamlet or spam, or is by an authserv-id "hamlet". The grammar is, after an
// instance "i=1;" in ARC,
//
//	authserv-id [version] *( ";" method ["/" version] "=" result … )
//
// with comments and quoted strings, which are skipped: a sender chooses what stands in
// some of them. A token before "=" is a method only at the start of v or after ";".
func statesVerdict(v []byte) bool {
	start := true
	for i := 0; i < len(v); {
		switch c := v[i]; {
		case c == '(':
			i = skipComment(v, i)
		case c == '"':
			i = skipQuoted(v, i)
			start = false
		case c == ';':
			start = true
			i++
		case c == ' ' || c == '\t':
			i++
		case start:
			start = false
			end := i
			for end < len(v) && !endsToken[v[end]] {
				end++
			}
			token := v[i:end]
			i = end
			for end < len(v) && (v[end] == ' ' || v[end] == '\t' || v[end] == '(') { // what may stand before "="
				if v[end] == '(' {
					end = skipComment(v, end)
				} else {
					end++
				}
			}
			if method := end < len(v) && (v[end] == '=' || v[end] == '/'); method {
				if containsFold(token, "hamlet") || containsFold(token, "spam") {
					return true
				}
			} else if len(token) == len("hamlet") && containsFold(token, "hamlet") {
				return true
			}
		default:
			i++
		}
	}
	return false
}

var endsToken = [256]bool{' ': true, '\t': true, '\n': true, ';': true, '=': true, '/': true, '(': true, '"': true}

// skipComment returns the position after the comment at v[i], which may hold others.
func skipComment(v []byte, i int) int {
	for depth := 0; i < len(v); i++ {
		switch v[i] {
		case '\\':
			i++
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(v)
}

// skipQuoted returns the position after the quoted string at v[i].
func skipQuoted(v []byte, i int) int {
	for i++; i < len(v); i++ {
		switch v[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(v)
}

// containsFold reports whether b contains word, in which all letters are lower case.
func containsFold(b []byte, word string) bool {
	for ; len(b) >= len(word); b = b[1:] {
		k := 0
		for k < len(word) && (b[k] == word[k] || b[k] == word[k]-('a'-'A')) {
			k++
		}
		if k == len(word) {
			return true
		}
	}
	return false
}
