package main

import (
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"hamlet/algos/feature"
	"hamlet/algos/model"
	"hamlet/cmd/internal/data/source"
	"hamlet/cmd/internal/service/example"
	"hamlet/stream"
	"hamlet/stream/mail"
)

// assassin is the configuration of the SpamAssassin mail in time order.
func assassin() source.Config {
	return source.Config{
		Paths: []string{filepath.Join(data, "spamassassin/spamassassin.tar.gz")},
		Index: filepath.Join(data, "spamassassin/index.csv"),
	}
}

// BenchmarkEndToEndOverParsing reads the SpamAssassin mail and parses it, and
// takes the same mail from its raw bytes through the model: parsed, answered and
// learnt, by a new model each time. A round does both, one after the other; what
// counts is the median of the rounds' ratios of CPU time, all threads and the
// garbage collector included. In archive both unpack, index and reduce the
// messages as well; in memory the raw messages are there, and what is
// divided by is mail.Parse alone.
//
//	go test -run - -bench EndToEndOverParsing -benchtime 9x ./cmd/hamlet
func BenchmarkEndToEndOverParsing(b *testing.B) {
	b.Run("archive", func(b *testing.B) {
		rounds(b,
			func() (n int) { return eachMail(b, parseMail) },
			func() (n int) { return eachMail(b, apply(b)) })
	})
	b.Run("memory", func(b *testing.B) {
		var events []stream.Event
		eachMail(b, func(e *stream.Event) { events = append(events, *e) })
		each := func(do func(*stream.Event)) int {
			for i := range events {
				do(&events[i])
			}
			return len(events)
		}
		rounds(b,
			func() int { return each(parseMail) },
			func() int { return each(apply(b)) })
	})
}

// eachMail reads the SpamAssassin mail and returns how many messages it has.
func eachMail(b *testing.B, do func(*stream.Event)) (n int) {
	b.Helper()
	src, err := source.Open(assassin())
	if err != nil {
		b.Skipf("the data set is not there: %v", err)
	}
	defer src.Close()
	for item, err := range src.Events() {
		if err != nil {
			b.Fatal(err)
		}
		do(&item.Event)
		n++
	}
	return n
}

// sink keeps what is parsed from being optimised away.
var sink mail.Message

func parseMail(e *stream.Event) { sink = mail.Parse(e.Body.Mail) }

// apply returns what parses, answers and learns a message, with a new model.
func apply(b *testing.B) func(*stream.Event) {
	m, err := model.New(model.Config{})
	if err != nil {
		b.Fatal(err)
	}
	return func(e *stream.Event) {
		ex, _, err := example.Of(e)
		if err != nil {
			b.Fatal(err)
		}
		if effect, err := m.Apply(&ex); err != nil || effect.Duplicate {
			b.Fatal(effect, err)
		}
	}
}

// rounds reports the CPU time per message of two ways to go through the same
// mail, in turns, and the median of their ratio.
func rounds(b *testing.B, parse, all func() (messages int)) {
	var parses, alls, ratios []float64
	for range b.N {
		p, n := cpuTime(parse)
		a, m := cpuTime(all)
		if n != m {
			b.Fatalf("%d messages parsed, %d learnt", n, m)
		}
		parses, alls, ratios = append(parses, p/float64(n)), append(alls, a/float64(n)), append(ratios, a/p)
	}
	b.ReportMetric(median(parses), "parse-ns/mail")
	b.ReportMetric(median(alls), "all-ns/mail")
	b.ReportMetric(median(ratios), "all/parse")
	b.ReportMetric(0, "ns/op")
}

// cpuTime returns the user and system time in ns that the process uses in f.
func cpuTime(f func() int) (ns float64, n int) {
	runtime.GC() // what was left by others
	before := processTime()
	n = f()
	return float64(processTime() - before), n
}

func processTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err) // it fails for a wrong argument alone
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkPathOverHashing takes the SpamAssassin mail, parsed, to the answers
// of a model that has learnt it, and through a no-op that makes the indices of
// the very features that the experts read and does nothing with them; in turns.
// It reports the median of the ratio of their CPU times, and the allocations of
// the answers.
//
//	go test -run - -bench PathOverHashing -benchtime 9x ./cmd/hamlet
func BenchmarkPathOverHashing(b *testing.B) {
	m, err := model.New(model.Config{})
	if err != nil {
		b.Fatal(err)
	}
	type read struct {
		body model.Body
		h, t []byte
	}
	var mails []read
	eachMail(b, func(e *stream.Event) {
		ex, _, err := example.Of(e)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := m.Apply(&ex); err != nil {
			b.Fatal(err)
		}
		mails = append(mails, read{ex.Body, ex.Body.Message.AppendH(nil, nil), ex.Body.Message.AppendT(nil)})
	})

	const opening = 2000 // bytes of T, as the fourth expert reads them
	hasher := feature.NewHasher(model.DefaultTableBits)
	var index []uint32
	hash := func() int {
		for _, r := range mails {
			index = hasher.Words(index[:0], r.h)
			index = hasher.Grams(index[:0], r.t, 5)
			index = hasher.Words(index[:0], r.t)
			index = hasher.Grams(index[:0], r.t[:min(len(r.t), opening)], 4)
		}
		return len(mails)
	}
	predictor := m.NewPredictor()
	answer := func() int {
		for i := range mails {
			if _, err := predictor.Predict(&mails[i].body); err != nil {
				b.Fatal(err)
			}
		}
		return len(mails)
	}
	hash()
	answer() // scratch grows to the longest message

	var hashes, answers, ratios []float64
	for range b.N {
		h, n := cpuTime(hash)
		a, _ := cpuTime(answer)
		hashes, answers, ratios = append(hashes, h/float64(n)), append(answers, a/float64(n)), append(ratios, a/h)
	}
	b.ReportMetric(median(hashes), "hash-ns/mail")
	b.ReportMetric(median(answers), "answer-ns/mail")
	b.ReportMetric(median(ratios), "answer/hash")
	b.ReportMetric(testing.AllocsPerRun(10, func() { answer() })/float64(len(mails)), "allocs/mail")
	b.ReportMetric(0, "ns/op")
}
