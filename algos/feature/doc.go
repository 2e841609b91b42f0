// Package feature turns a message or a vector of named numbers into the learners' inputs:
// indices of hashed features for the sparse experts, a few dense numbers for the head.
//
// A [Message] is read as two byte strings,
//
//	H  its headers (with the mbox "From " line, if there is one) without the marks of
//	   filters, the first 3,000 bytes of what is left
//	T  "subject: …\n\n" and its stripped text, the first 8,000 bytes; for plain text, the text
//
// and as eight facts ([Facts]). A [Hasher] turns a byte string into the indices of its
// features in a table of 2^b slots. A message has each index once:
//
//	Words          words, and pairs of neighbouring words
//	WordsByLength  the same, other features for each ⌊log₂(bytes+1)⌋ of the text, and that itself
//	Grams          byte n-grams, n ≤ 8
//	Shapes         n-grams of the text's shape: a for a lower-case letter, u for an upper-case
//	               one, 9 for a digit, ~ for a byte ≥ 128, and runs cut to two
//
// [Hasher.Strings] is for sequences and repeats indices: it has those of the strings of 2 to
// L bytes that end at each byte.
//
// ASCII letters are folded to lower case, except by Shapes and Strings. A word is a run of a–z, 0–9, ' - $ . _ @ and
// bytes ≥ 128, cut after 30 bytes. A feature is hashed by two multiplications; a pair's
// hash combines the hashes of its words. Collisions in the table are not resolved
// (Weinberger et al., Feature hashing for large scale multitask learning, 2009).
//
// A [Trace] says where the features stand that a Hasher reads. [HeadTokens] and
// [Message.TextTokens] cut H and T into the words, marks and links that people see.
//
// A named number is dense or hashed. Dense numbers are inputs of the head. They pass
// through [SignedLog] and a [Standardiser], whose running means and variances are part of
// the model. [Hasher.Numbers] hashes the other names and keeps their values.
//
// # Marks of filters
//
// A mark is a field in which a filter, or a mailbox, has written its judgement of the
// message. A model that read marks would learn its own verdicts, and other filters', from
// the Junk folder. So marks are not in H, neither to score nor to learn. This is part of
// the mathematics and no setting. The marks are removed before H is cut: a message with
// marks and the same message without them have the same features, and a message can be
// withdrawn as a mailbox keeps it. The list is in marks.go; names are in lower case:
//
//	x-hamlet*                     hamlet's own
//	x-…spam…                      X-Spam-*, X-Rspamd-*, X-DSPAM-*, X-Microsoft-Antispam*,
//	                              X-Forefront-Antispam-*, X-GMX-Antispam and many others
//	x-…phish…, x-…mailscanner…    verdicts; all fields of MailScanner, with any organisation
//	x-bogosity, x-crm114-*, …     filters whose names have none of these words
//	x-ms-exchange-organization-scl…, -pcl…, spamdiagnostic…    Exchange
//	x-barracuda-*, ironport-*, x-pstn-*, x-clx-*, x-purgate*, … gateways, with all their fields
//	x-keywords, x-gmail-labels, x-mozilla-keys, x-label, x-folder    where a user, a program
//	                              or a filter has filed the message
//	authentication-results        if a method names hamlet or spam ("x-hamlet=spam"), or if
//	                              the authserv-id is "hamlet"; also its forms for ARC and
//	                              for former results. The whole field is a mark.
//
// No message says which server wrote a field. So "hamlet's own" results are all that carry
// hamlet's name, forged ones included; a forged mark tells the model nothing. Whatever of
// hamlet's writes Authentication-Results must name its method "x-hamlet…". Facts about the
// transport stay: SPF, DKIM, DMARC, lists of addresses, checksums (DCC, Pyzor), greylisting,
// virus scanners. So do the mailbox's flags (Status, X-Status, X-Mozilla-Status): they say
// what was read, not what was judged. A subject that another filter has rewritten is not
// restored. Hamlet's own tag is gone already: mail is parsed without it.
//
// # Cost
//
// Hashing is linear in the text: some 2.5 ns per byte for words and pairs, 3 ns for
// n-grams (one core of a 2026 server, SpamAssassin). It allocates nothing once its buffers
// are large enough. It branches on the text only in words longer than eight bytes, because
// a mispredicted branch costs more than hashing a feature.
//
// Results never depend on time, randomness or map order. They are the same bits on every
// CPU, because they become part of the model.
package feature
