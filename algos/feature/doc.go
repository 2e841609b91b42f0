// Package feature turns a message or a vector of named numbers into the learners' inputs:
// indices of hashed features for the sparse experts, a few dense numbers for the head.
//
// A [Message] is read as two byte strings,
//
//	H  its headers (with the mbox "From " line, if there is one), the first 3,000 bytes
//	T  "subject: …\n\n" and its stripped text, the first 8,000 bytes; for plain text, the text
//
// and as eight facts ([Facts]). A [Hasher] turns a byte string into the indices of its
// features in a table of 2^b slots. A message has each index once:
//
//	Words  words, and pairs of neighbouring words
//	Grams  byte n-grams, n ≤ 8
//
// ASCII letters are folded to lower case. A word is a run of a–z, 0–9, ' - $ . _ @ and
// bytes ≥ 128, cut after 30 bytes. A feature is hashed by two multiplications; a pair's
// hash combines the hashes of its words. Collisions in the table are not resolved
// (Weinberger et al., Feature hashing for large scale multitask learning, 2009).
//
// A named number is dense or hashed. Dense numbers are inputs of the head. They pass
// through [SignedLog] and a [Standardiser], whose running means and variances are part of
// the model. [Hasher.Numbers] hashes the other names and keeps their values.
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
