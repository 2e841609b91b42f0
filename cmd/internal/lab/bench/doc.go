// Laboratory: comparisons with other filters and other detectors of change.

// Package bench is `hamlet bench`. Each of its commands prints one table and the
// command that made it.
//
// [Mail] replays a labelled mailbox through hamlet and through other filters. Every
// message is classified before it is taught. All filters get the same bytes: the
// reduced message that hamlet's services carry. Other filters run behind the
// commands of the TREC spam track (initialize, classify, train, finalize).
//
//	source ─> schedule ─┬─> hamlet ─────────> outcome ─┐
//	                    └─> other filters ──> outcome ─┴─> rankings ─> bootstrap ─> table, page
//
// [Alarms] runs the model once over streams with and without a fault, and records
// its predictions and alarms. Other detectors are replayed over the record, at many
// thresholds.
//
//	population ─┬─> clean streams ───> series ─> thresholds with our number of false alarms ─┐
//	            └─> fault ─> change ─> series ───────────────────────────────────────────────┴─> delays ─> table, page
//
// [Attackers] lets sources lie about a stream, and counts the errors on the honest one:
// with all labels counted the same, by the sources' standing, and with an anchor.
//
// [Selective] labels only some of a stream, and lets the model assume the rest of its answers.
//
// [Review] labels one message in ten, and compares ways to choose it.
//
// [Coverage] asks how often the 90 % interval holds the true probability, on simulated
// streams where it is known.
//
// A measurement, in a few lines:
//
//	hamlet bench mail --bogofilter --spam Junk/ --ham INBOX/ --report page/
//	hamlet bench alarms --events 100000 --seeds 10
//	hamlet bench attackers SMSSpamCollection
//
// Rules: the same data and seeds give the same figures, except times. Intervals are
// 95 %. Ratios of two filters are paired on the same resamples. hamlet runs alone, and
// the others after it, so that times do not overlap.
//
// MEASURED.md holds figures, each with its command and date.
package bench
