package feature_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"hamlet/algos/feature"
)

// marks are fields that filters, servers and mail programs write, at least one for each
// entry of the list.
var marks = []string{
	"x-hamlet: spam", "x-hamlet-score: .99", "x-hamlet-bytes: 7", "x-ham-report: none",
	"x-spam: yes", "x-spam-status: Yes, score=9", "x-spam-flag: YES", "x-spam-level: ***", "x-spam-report: …",
	"x-spam-checker-version: SpamAssassin", "x-spam_score_int: 90", "x-spam-result: A=0.1", "x-old-spam-flag: NO",
	"x-rspamd-score: 9", "x-rspamd-queue-id: 7", "x-spamd-result: default: False", "x-spamd-bar: ++", "x-bogosity: Spam, tests=bogofilter", "x-bogofilter-status: x",
	"x-dspam-result: Spam", "x-dspam-signature: 4f", "x-spambayes-classification: spam; 1.00", "x-spamprobe: SPAM .99",
	"x-crm114-status: SPAM ( pR: -9 )", "x-crm114-cacheid: sfid", "x-spampal: PASS", "x-imail-spam-statistic: (1, .9)",
	"x-ms-exchange-organization-scl: 6", "x-ms-exchange-organization-pcl: 2", "x-ms-exchange-organization-antispam-report: SCLFilter",
	"x-ms-exchange-antispam-messagedata: x", "x-ms-exchange-organization-phishthresholdlevel: 2",
	"x-ms-exchange-crosstenant-antispam: x", "x-forefront-antispam-report: SFV:SPM", "x-forefront-antispam-report-untrusted: SFV:NSPM",
	"x-microsoft-antispam: BCL:9", "x-microsoft-antispam-mailbox-delivery: dest:J", "x-microsoft-antispam-message-info: q",
	"spamdiagnosticoutput: 1:99", "spamdiagnosticmetadata: NSPM", "x-message-delivery: Vj0xLjE=",
	"x-mailscanner: Found to be clean", "x-mailscanner-spamcheck: spam", "x-example-org-mailscanner-information: x",
	"x-barracuda-spam-score: 9", "x-barracuda-bayes: INNOCENT", "x-ironport-anti-spam-filtered: true", "x-ironport-av: x", "ironport-sdr: x",
	"x-proofpoint-spam-details: rule=spam", "x-clx-shades: Junk", "x-clx-score: 1", "x-gmx-antispam: 5",
	"x-ui-filterresults: junk:10", "x-ui-out-filterresults: notjunk:1", "x-cloudmark-score: 1", "x-cm-score: 0.00",
	"x-cm-analysis: v=2.4", "x-cmae-score: 0", "x_cmae_category: , ,", "x-cnfs-analysis: v=2.3", "x-authority-analysis: v=2.4", "x-sendmail-cm-score: 0.00",
	"x-pstn-levels: (S:0.1)", "x-purgate: clean", "x-purgate-type: spam", "x-ctch-refid: str=1", "x-brightmail-tracker: AAAA", "x-brightmailfiltered: true",
	"x-tm-as-result: No--5", "x-tmase-result: 10--9", "x-imss-scan-details: No--3", "x-feas-bannedword: x", "x-lased-hits: X",
	"x-pmx-version: 6", "x-perlmx-spam: Gauge=I", "x-vr-status: SPAM", "x-ovh-spamcause: gg", "x-vade-x: 1", "x-mlf-threat: spam", "x-nas-bayes: #0: 0", "x-analysisout: [v=1.0]",
	"x-messagesniffer-scan-result: 0", "x-gbudb-analysis: 1", "x-mirapoint-ip-reputation: bad", "x-junkmail-status: score=9",
	"x-declude-scan: Score [9]", "x-assp-spam-prob: 1.0", "x-hmailserver-reason-score: 9", "x-haraka-karma: score: 5", "x-mras: Ok", "x-aol-global-disposition: S",
	"x-aol-scoll-score: 1", "x-yahoofilteredbulk: 10.0.0.1", "x-ymailisg: x", "x-annoyance-filter-classification: Junk", "x-sa-exim-scanned: Yes",
	"x-amavis-alert: BAD HEADER", "x-quarantine-id: <x>", "x-suspicious-flag: YES", "x-suspected-spam: true", "x-ksmg-antiphishing: Clean",
	"x-mimecast-impersonation-protect: Policy", "x-cloud-sec-av-info: x", "x-gm-phishy: 1",
	"x-gmail-labels: Spam", "x-gm-labels: Spam", "x-mozilla-keys: Junk", "x-keywords: $Junk", "x-label: spam", "x-folder: Junk",
	"x-text-classification: spam", "x-popfile-link: http://127.0.0.1",
}

// results are Authentication-Results that state a filter's verdict.
var results = []string{
	"authentication-results: mx.example; x-hamlet=spam",
	"authentication-results: mx.example 1; spf=pass smtp.mailfrom=a@b;\tX-Hamlet=ham (p=.01) policy.score=.01",
	"authentication-results: mx.example (c; d); spf=pass; (why) x-spam-status (x (y)) /1 = fail",
	"authentication-results: hamlet; none",
	"authentication-results: Hamlet 1; none",
	"authentication-results: mx; rspamd=reject",
	"arc-authentication-results: i=1; mx.example; x-hamlet=spam",
	"arc-authentication-results: i=1; hamlet; none",
	"x-original-authentication-results: mx; hamlet=spam", "original-authentication-results: mx; hamlet=spam",
	"authentication-results-original: mx; hamlet=spam", "x-authentication-results: mx; hamlet=spam",
}

// ordinary are fields that only resemble marks, or are evidence that no filter's verdict made.
var ordinary = []string{
	"x-hamle: x", "x-hamburg: x", "hamlet: x", "spam-status: yes", "xspam: x", "x-spa: x", "x-bogo: x", "bogosity: x", "x-crm: x", "x-keyword: x", "keywords: $Junk",
	"x-mozilla-status: 0001", "status: RO", "x-status: A", "x-uid: 9", "x-virus-scanned: yes", "x-virus-status: Clean", "x-antivirus: x",
	"x-ms-exchange-organization-authas: Anonymous", "x-ms-exchange-organization-messagedirectionality: Incoming", "x-ms-exchange-organization-scheduled: x",
	"x-proofpoint-guid: x", "x-greylist: delayed", "x-dcc-metrics: bulk", "x-rbl-warning: listed", "x-pyzor: 5", "x-mailer: spam", "x-priority: 1", "x-antiabuse: x", "x-: y", "x: spam",
	"received-spf: fail", "dkim-signature: v=1", "subject: x-spam-status: yes", "to: x-hamlet@spam.example", "received: by x-spam.example", "sender: spam@hamlet.example", "in-reply-to: <spam>", "organization: spam",
	"authentication-results: mx.example; spf=fail smtp.mailfrom=spam.example; dkim=none",
	"authentication-results: mx.hamlet.example; dmarc=pass",
	"authentication-results: hamlets; none", "authentication-results: spam.example; none",
	"authentication-results: mx; spf=pass smtp.mailfrom=\"a; x-spam=b\"@evil.example", // chosen by the sender
	"authentication-results: mx; spf=pass smtp.mailfrom=x-spam=b@evil.example",
	"authentication-results: mx; spf=pass (a\\); x-hamlet=spam) smtp.helo=h", "authentication-results: mx; dkim=pass reason=\"; x-spam=1", "authentication-results:",
	"authentication-results: mx; spf=pass (; x-hamlet=spam", "authentication-results: mx; none; hamletx",
	"arc-authentication-results: i=1; mx.hamlet.example; spf=pass", "arc-seal: i=1; cv=none; x-spam=1", "x-authentication-warning: x; x-spam=1",
}

func head(t *testing.T, lines ...string) string {
	t.Helper()
	m := feature.Message{Head: []byte(strings.Join(lines, "\n") + "\n")}
	return string(m.AppendH(nil, nil))
}

func TestMarksAreNotInH(t *testing.T) {
	for _, mark := range slices.Concat(marks, results) {
		if got := head(t, "from: a", mark, "to: b"); got != "from: a\nto: b\n" {
			t.Errorf("%q is read", mark)
		}
	}
	for _, field := range ordinary {
		if got, want := head(t, "from: a", field, "to: b"), "from: a\n"+field+"\nto: b\n"; got != want {
			t.Errorf("%q is not read", field)
		}
	}
	if got := head(t, "from: a", "x-spam"); got != "from: a\nx-spam\n" {
		t.Error("a line without a colon is not read, and is no field")
	}
	m := feature.Message{Head: []byte("to: b\nx-spam-status: yes")} // cut within the field
	if got := string(m.AppendH([]byte("before "), nil)); got != "before to: b\n" {
		t.Errorf("H = %q", got)
	}
}

// H is the first 3,000 bytes of what the marks leave. A slow, obvious version: split,
// drop, join, cut.
func TestMarksAreDroppedBeforeTheCut(t *testing.T) {
	skip := []string{feature.FromLine, "received"}
	for n := range 120 {
		lines := []string{"From a@b Mon"}
		var kept []string
		for i := range n {
			lines = append(lines, marks[(i*7)%len(marks)], ordinary[(i*5)%len(ordinary)], "received: "+strings.Repeat("r", i))
			kept = append(kept, ordinary[(i*5)%len(ordinary)])
		}
		kept = slices.DeleteFunc(kept, func(s string) bool { return strings.HasPrefix(s, "received:") })
		var want []byte
		for _, k := range kept {
			want = append(want, k+"\n"...)
		}
		want = want[:min(len(want), feature.HeadBytes)]
		m := feature.Message{Head: []byte(strings.Join(lines, "\n") + "\n")}
		whole := bytes.Clone(m.Head)
		if got := m.AppendH(nil, skip); !bytes.Equal(got, want) {
			t.Fatalf("%d lines: H has %d bytes, want %d\n%s\n%s", len(lines), len(got), len(want), got, want)
		}
		if !bytes.Equal(m.Head, whole) {
			t.Fatal("AppendH changed the message")
		}
	}
}

// No header panics, and without a line that could be a mark H is the head's beginning.
func FuzzHead(f *testing.F) {
	for _, field := range slices.Concat(marks, results, ordinary) {
		f.Add([]byte(field + "\nto: b\n"))
	}
	f.Add([]byte("\n\nx\nx-\n:\na(:\nauthentication-results:;\"\\"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := feature.Message{Head: b}
		h := m.AppendH(nil, nil)
		if len(h) > feature.HeadBytes {
			t.Fatalf("%d bytes of H", len(h))
		}
		again := feature.Message{Head: h}
		if len(b) <= feature.HeadBytes && !bytes.Equal(again.AppendH(nil, nil), h) {
			t.Fatalf("H of H is not H: %q", h)
		}
		if !bytes.ContainsAny(b, "xais") && !bytes.Contains(b, []byte("o")) && !bytes.Equal(h, b[:min(len(b), feature.HeadBytes)]) {
			t.Fatalf("H = %q of %q", h, b)
		}
	})
}

func BenchmarkHead(b *testing.B) {
	m := feature.Message{Head: bytes.Repeat([]byte("received: from a.example by b.example with esmtp id 7; Mon, 1 Jan\nto: a@b.example\ndate: now\nx-mailer: a b c d e f\nmessage-id: <20261122100000.7@a.example>\nmime-version: 1.0\ncontent-type: text/plain\n"), 20)}
	var h []byte
	for b.Loop() {
		h = m.AppendH(h[:0], nil)
	}
}
