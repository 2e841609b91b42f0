// Package mail turns a raw message into what a model learns from it, and reduces
// messages before they travel. It loses no message: what it cannot parse it reads
// as raw text.
//
//	for raw, err := range mail.Mbox(file) {
//		if err != nil {
//			return err
//		}
//		raw, err = mail.Reduce(raw) // at most 900 KiB: for Kafka, NATS
//		if err != nil {
//			return err
//		}
//		m := mail.Parse(raw)
//		learn(m.Head, m.Subject, m.Text, m.Parts)
//	}
//
// A scanner finds the structure (RFC 5322, 2045 to 2049) in one pass, as byte ranges
// of headers and bodies. Parse decodes the ranges that a model uses; Reduce copies
// the ranges that it keeps. Both see the same structure, so Parse(Reduce(raw)) and
// Parse(raw) agree wherever no text was cut. Reduce copies bytes, because the order,
// spelling, folding and line ends of a header are evidence.
//
//	raw ─ scan ─> byte ranges
//	  From a@b …                from            ─> Head
//	  Subject: =?…?=            header, fields  ─> Head, Subject
//	  --b
//	  …text/html, base64        body: transfer decoding ─> charset ─> stripHTML ─> Text
//	  --b
//	  …image/png                not decoded     ─> [[image/png]]
//	  --b--
//
// # Rules
//
//   - The same bytes always give the same Message. Nothing here races, reads a clock
//     or ranges over a map.
//   - Reduce(Reduce(raw)) equals Reduce(raw).
//   - Parse and Reduce neither keep nor change their argument. Reduce may return it.
//   - Time and memory are linear in the length of the message.
//   - Text is valid UTF-8. A charset that is unknown, or in which the bytes make no
//     sense, is read as UTF-8, and its other bytes as windows-1252.
//   - Reduce records the former length of a body that it cut in the part's header, as
//     X-Hamlet-Bytes. Parse reads it into BodyBytes and keeps it out of Head. A forged
//     one pretends a longer body, of at most MaxSize bytes.
//
// # What hamlet wrote itself
//
// A gateway writes its verdict into a message, and the message comes back as one to learn
// from. So nothing of that is in a Message:
//
//   - X-Hamlet and all fields X-Hamlet-….
//   - X-Spam-Flag, X-Spam-Status, X-Spam-Level and X-Spam-Score beside an X-Hamlet. Without
//     one they are another filter's.
//   - The tag before the subject. The field X-Hamlet-Tag has it, see [ValidTag]: a gateway
//     writes "Subject: TAG" and the subject as it was, encoded words included.
//
// [Identity] names a message. Nothing that hamlet writes, that Reduce cuts or that hops add
// changes it. A gateway removes such fields from outside: a forged tag hides up to 32
// bytes of the subject.
//
// # Hiding
//
// A sender may try to hide words from the model that a reader sees: behind long,
// late or repeated fields, or behind padding. So the first Content-Type,
// Content-Transfer-Encoding, Content-Disposition, Subject, From, Message-ID, X-Hamlet
// and X-Hamlet-Tag count wherever they stand. Parse reads exactly what Reduce keeps of a header. And the first 8 KiB
// of Text do not depend on where Reduce cuts. Two kinds of padding still hide words:
// 64 KiB of nothing in UTF-16 HTML, and of empty shifts in plain ISO-2022 text.
//
// # Why not a library
//
// Most charsets are go-message's, character references are x/net/html's. The rest is
// written here, to the byte as these read it. net/mail, go-message and enmime refuse
// malformed headers that old and hostile mail has, give no byte positions, and write
// headers in a form of their own. mime.WordDecoder and mime.ParseMediaType refuse
// what mail programs show. stripHTML says why it is not x/net/html's tokenizer.
package mail
