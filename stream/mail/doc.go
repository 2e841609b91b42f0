// Package mail turns a raw message into what a model learns of it, and reduces
// messages before they travel. It never loses one: what cannot be parsed is
// read as raw text.
//
//	mbox ─ Mbox ─> raw ─ Reduce ─> ≤ 900 KiB ══ Kafka, NATS ══> Parse ─> Message
//	                                                              │
//	raw ─ scan ─> parts as byte ranges:                           │
//	  From a@b …            span "From "                          ├─> Head
//	  Subject: =?…?=        header, fields                        ├─> Head, Subject
//	  Content-Type: multipart/mixed; boundary=b                   │
//	                                                              │
//	  --b                                                         │
//	  …text/html, base64    text:  go-message ─> charset ─> strip ├─> Text
//	  --b                            └ refuses ─> enmime          │
//	  …image/png            other: not decoded ─────────────────> └─> [[image/png]]
//	  --b--
//
// # One scanner, two readers
//
// A scanner finds the structure (RFC 5322, 2045 to 2049) in one pass and as
// byte ranges: of each part the header and the body. [Parse] decodes the ranges
// that a model uses, [Reduce] copies the ranges that it keeps. Since both see
// the same structure, Parse(Reduce(raw)) and Parse(raw) agree on every fact
// wherever no text was cut; over all of the SpamAssassin mail this is a test.
// Since Reduce copies bytes wherever that does, a header stays the evidence that
// it is: its order, its spelling, its folding, its line ends. The readers
// of libraries give no positions, and writing a message anew does not keep
// these; the scanner is compared with go-message over the same mail instead.
//
// What Reduce cut or took out of a part it records in the part's header as
//
//	X-Hamlet-Bytes: 48213
//
// the length of the body before. Parse reads it into [Message.BodyBytes] and
// keeps it out of Head. Whoever forges the field gains what a longer body would
// have given, at most that of MaxSize bytes.
//
// # Hiding
//
// Whoever writes a mail may try to keep words from the model that a reader is
// shown: behind long, late or repeated header fields, or behind padding. So of
// Content-Type, Content-Transfer-Encoding, Content-Disposition, Subject and From
// the first counts wherever it stands and however long it is; Parse reads of a
// header what Reduce keeps of it, no more and no less; and the first 8 KiB of
// Text stay what they are wherever Reduce cuts. Where bytes alone cannot do that,
// Reduce writes anew: an overlong Content-Type with boundary and charset, a
// Subject as encoded words, a text behind padding in its own encoding, a
// structure beyond 900 KiB as one text with empty parts to keep the counts. A
// test with generated messages holds that H, Subject and T survive. Two paddings
// do not yield: 64 KiB of nothing in UTF-16 HTML, or of empty shifts in plain
// ISO-2022 text.
//
// # Tolerance
//
// The scanner takes what old and hostile mail has: an mbox "From " line, stray
// lines within a header, a body without an empty line before it, inner
// multiparts that are not closed, boundaries never used, parameters without
// semicolons. Transfer encodings are undone by go-message and, where it
// refuses, by enmime. A charset that is unknown, or in which the bytes make no
// sense, is read as UTF-8 where it is valid and as windows-1252 elsewhere, as
// browsers do; so text is always valid UTF-8 and no byte is dropped. A part that
// promises a structure that it does not have is read as raw text, as is all that
// lies beyond a limit; [Message.Raw] and [Message.Reason] say so. Of the 6,046
// messages of SpamAssassin that happens to 54, all of them multiparts without
// their closing boundary.
//
// # Cost
//
// Time and memory are linear in the length of the message, whatever it holds:
// boundaries of all open multiparts are looked for at once, HTML is read on the
// bytes as they lie, and the tolerant decoder has a budget. 25 MiB of the worst
// input known to the benchmarks take 0.4 s on one core of a 2026 server, a
// message of SpamAssassin (5.4 KB in the mean) 16 µs and 7 allocations, and
// Reduce 1.7 µs where nothing is cut.
//
// # Invariants
//
//   - The same bytes give the same Message, always: nothing here guesses with
//     goroutines that race (enmime's charset detection does), reads a clock or
//     ranges over a map.
//   - Reduce(Reduce(raw)) equals Reduce(raw).
//   - Neither function keeps or changes its argument. Reduce may return it.
package mail
