// Package feature turns a message or a vector of named numbers into what the
// learners read: indices of hashed features for the sparse experts, and a few
// dense numbers for the head.
//
// A [Message] is read as two byte strings,
//
//	H  its headers (with the mbox "From " line, if there is one), the first 3,000 bytes
//	T  "subject: …\n\n" and its stripped text, the first 8,000 bytes; for plain text, the text
//
// and as eight facts ([Facts]). A [Hasher] turns a byte string into the indices
// of its features in a table of 2^b slots, each index once a message:
//
//	Words  words, and pairs of neighbouring words
//	Grams  byte n-grams, n ≤ 8
//
// ASCII letters count in lower case. A word is a run of a–z, 0–9, ' - $ . _ @
// and bytes ≥ 128, of which the first 30 count. Each feature is hashed once, by
// two multiplications of its up to 64 bits; a pair's hash is made of its words'
// hashes. Collisions within the table are the hashing trick's price
// (Weinberger et al., Feature hashing for large scale multitask learning, 2009)
// and are not resolved.
//
// Named numbers come in two kinds. Those that are dense inputs of the head pass
// through [SignedLog] and a [Standardiser], whose running means and variances
// are part of the model; the others are hashed by name, with their values
// ([Hasher.Numbers]).
//
// # Cost
//
// Hashing takes time linear in the text, some 2.5 ns a byte for words and pairs
// and 3 ns for n-grams (one core of a 2026 server, SpamAssassin), and allocates
// nothing once its scratch has grown to the longest text. No step branches on
// the text but where a word is longer than eight bytes: a wrong guess of the
// processor costs more than hashing a feature.
//
// Nothing here depends on time, randomness or the order of a map, and the bits
// are the same on every CPU: what is hashed and standardised changes a model.
package feature
