// Package spamd is the door for clients of SpamAssassin's spamd: spamc, Exim's
// "spam =", and many libraries.
//
//	door := g.Door("spamd")
//	l, err := gateway.Listen("127.0.0.1:783", 0)
//	err = door.Serve(ctx, l, spamd.New(door).Handle)
//
// # The protocol
//
// A connection has one request and its answer. Both have a first line, fields, an empty
// line and a body. Each side says that it has ended by closing its half.
//
//	PROCESS SPAMC/1.5                  SPAMD/1.1 0 EX_OK
//	User: alice                        Content-length: 1334
//	Content-length: 1204               Spam: True ; 7.1 / 5.0
//
//	(the message)                      (the message with our fields)
//
//	CHECK           Spam: alone
//	SYMBOLS         HAMLET_SPAM, HAMLET_HAM, HAMLET_UNSURE or HAMLET_UNAVAILABLE
//	REPORT          a text for people: p, its interval, and what moved them
//	REPORT_IFSPAM   that text if the message is spam, else an empty one
//	PROCESS         the message with the fields of gateway.Marks
//	HEADERS         its header only; see below
//	TELL            DidSet: local or DidRemove: local, once the learner's log has it
//	PING            SPAMD/1.5 0 PONG, whether or not the scoring service answers
//	SKIP            no answer
//
// Versions are 1.0 to 1.5, and later ones are answered as 1.5. Before 1.1 a request has
// no fields. Before 1.3 an answer has Spam or Content-length, never both. A body may be
// compressed (Compress: zlib); then it needs Content-length. Without Content-length a
// message ends where the client ends. One of another length than it says is refused:
// PROCESS would cut it.
//
// HEADERS answers what stands in place of the message up to its first empty line, which
// is the first "\n\n" or "\r\n\r\n". The client appends its own bytes behind it. Of a
// message without an empty line the answer is the whole message.
//
// # The score
//
//	score = required + min(logit p − logit spam-at, logit lo)      in nats
//
// required is 5.0. So a score reaches required exactly where the verdict is spam, and a
// client may compare the two numbers or read "True". The printed score is rounded away
// from required.
//
// # Without an answer
//
// A message without a verdict is answered as "False ; 0.0 / 5.0", its symbol is
// HAMLET_UNAVAILABLE, and PROCESS and HEADERS return it without fields of ours. They also
// take out such fields that came from outside. Where the message itself is forgotten,
// because it is too large or there is no memory, PROCESS and HEADERS answer with an
// error. spamc then delivers its own copy, unless it was told otherwise (-x).
//
//	65 EX_DATAERR      the message is larger than 25 MiB (PROCESS, HEADERS, TELL) or empty (TELL)
//	69 EX_UNAVAILABLE  a body that zlib cannot read; TELL where clients may not teach
//	75 EX_TEMPFAIL     no memory now (PROCESS, HEADERS, TELL); the label is not safe (TELL)
//	76 EX_PROTOCOL     a request that the protocol does not have
//	79 EX_TIMEOUT      half a request, and then nothing
package spamd
