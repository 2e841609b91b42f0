package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"hamlet/algos/feature"
	"hamlet/algos/model"
	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/process/cli"
)

// Words holds the flags of `hamlet-lab bench words`.
type Words struct {
	Stream

	Words int    `help:"How many words are taken out." default:"5" placeholder:"N"`
	From  int    `help:"Leave the first N messages out of the figures." default:"0" placeholder:"N"`
	Seed  uint64 `help:"Seed of the words that are drawn." default:"1" placeholder:"S"`
	Output
}

// Help is shown by kong below the flags.
func (Words) Help() string {
	return `Examples:
  hamlet-lab bench words --index index.csv corpus.tar.gz
  hamlet-lab bench words --spam Junk/ --ham INBOX/ --from 1000 --experts lean

Do the words of an explanation decide? Each message is explained before it is learnt. Of a spam
message, the words of subject and text that add most to the log-odds are taken out, wherever they
stand in either, and what is left is scored by the same model. Header fields and links stay.
Beside it, as many words are drawn from all others of subject and text.

The table also says how far words and rest are from adding up to the mean of the log-odds, how
many of the words share a slot of a table with another, and how long an answer takes.`
}

// A wordsReplay is the replay of one stream.
type wordsReplay struct {
	*wordsResult
	predictor *model.Predictor
	random    *rand.Rand
}

// A wordsResult is its measurement.
type wordsResult struct {
	Command string  `json:"command"`
	Events  int     `json:"events"` // explained
	Spam    int     `json:"spam"`
	NoWord  int     `json:"spam_without_word"` // in which no word speaks for spam
	Error   float64 `json:"largest_error"`     // of the sum of words and rest, nats
	Shared  float64 `json:"shared"`            // share of the words taken out

	Top   removal `json:"top"`
	Drawn removal `json:"drawn"`

	PredictMS   float64 `json:"predict_ms"` // medians
	ExplainMS   float64 `json:"explain_ms"`
	AttributeMS float64 `json:"attribute_ms"`

	words, taken, shared        int
	predict, explain, attribute []float64
}

// A removal says what taking words out of spam did.
type removal struct {
	Messages int     `json:"messages"`
	Lowered  float64 `json:"lowered"`      // share of messages with lower log-odds
	Median   float64 `json:"median_fall"`  // of the log-odds, nats
	Called   float64 `json:"sum_of_words"` // median of what the words were said to add
	Ham      float64 `json:"turned"`       // share with p ≥ ½ before and below ½ after

	falls, said   []float64
	lower, turned int
}

func (r *removal) add(before, after model.Prediction, said float64) {
	fall := before.LogOdds - after.LogOdds
	r.falls, r.said = append(r.falls, fall), append(r.said, said)
	if fall > 0 {
		r.lower++
	}
	if before.LogOdds >= 0 && after.LogOdds < 0 {
		r.turned++
	}
}

func (r *removal) close() {
	r.Messages = len(r.falls)
	n := float64(max(1, r.Messages))
	r.Lowered, r.Ham, r.Median, r.Called = float64(r.lower)/n, float64(r.turned)/n, midpoint(r.falls), midpoint(r.said)
}

// midpoint returns the median of v, which it sorts; 0 of nothing.
func midpoint(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return v[len(v)/2]
}

// explainOne explains a body, and takes words out of it if it is spam.
func (w *wordsReplay) explainOne(body *model.Body, spam bool) error {
	start := time.Now()
	if _, err := w.predictor.Predict(body); err != nil {
		return err
	}
	predicted := time.Now()
	if _, _, err := w.predictor.Explain(body); err != nil {
		return err
	}
	explained := time.Now()
	a, err := w.predictor.Attribute(body)
	if err != nil {
		return err
	}
	r := w.wordsResult
	r.predict = append(r.predict, milliseconds(predicted.Sub(start)))
	r.explain = append(r.explain, milliseconds(explained.Sub(predicted)))
	r.attribute = append(r.attribute, milliseconds(time.Since(explained)))
	r.Events++
	r.Error = max(r.Error, wordsError(&a))
	if !spam {
		return nil
	}
	r.Spam++
	var top, others []model.Word // others in the order of their words, so that the seed decides
	for _, word := range a.Words {
		switch {
		case word.Where != feature.InText && word.Where != feature.InSubject:
		case word.Contribution > 0 && len(top) < w.words:
			top = append(top, word)
		default:
			others = append(others, word)
		}
	}
	if len(top) == 0 {
		r.NoWord++
		return nil
	}
	for _, word := range top {
		r.taken++
		if word.Shared {
			r.shared++
		}
	}
	if err := w.without(&r.Top, body, a.Prediction, top); err != nil {
		return err
	}
	if len(others) < len(top) {
		return nil
	}
	w.random.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	return w.without(&r.Drawn, body, a.Prediction, others[:len(top)])
}

// without scores body without words and adds the outcome to r.
func (w *wordsReplay) without(r *removal, body *model.Body, before model.Prediction, words []model.Word) error {
	out, said := map[string]bool{}, 0.0
	for _, word := range words {
		out[word.Text] = true
		said += word.Contribution
	}
	left := *body
	left.Message = withoutWords(body.Message, out)
	after, err := w.predictor.Predict(&left)
	if err != nil {
		return err
	}
	r.add(before, after, said)
	return nil
}

// withoutWords returns m without these words of subject and text.
func withoutWords(m *feature.Message, out map[string]bool) *feature.Message {
	left := *m
	subject := func(token feature.Token) bool { return token.Where == feature.InSubject && out[string(token.Text)] }
	left.Head = cutTokens(m.Head, 0, feature.HeadTokens(nil, m.Head), subject)
	prefix := 0
	var whole []byte // as AppendT has it, uncut
	if m.Subject != nil {
		whole = fmt.Appendf(nil, "subject: %s\n\n", m.Subject)
		prefix = len(whole)
	}
	tokens := m.TextTokens(nil, append(whole, m.Body...))
	if m.Subject != nil {
		left.Subject = cutTokens(m.Subject, len("subject: "), tokens, subject)
	}
	left.Body = cutTokens(m.Body, prefix, tokens, func(token feature.Token) bool {
		return token.Where == feature.InText && out[string(token.Text)]
	})
	return &left
}

// cutTokens returns text without the tokens that are out. text begins at byte offset of
// what the tokens are of.
func cutTokens(text []byte, offset int, tokens []feature.Token, out func(feature.Token) bool) []byte {
	left := []byte{} // a subject stays one, though empty
	at := 0
	for _, token := range tokens {
		if begin, end := token.Begin-offset, token.End-offset; begin >= at && end <= len(text) && out(token) {
			left, at = append(left, text[at:begin]...), end
		}
	}
	return append(left, text[at:]...)
}

// wordsError returns by how much words and rest miss the mean.
func wordsError(a *model.Attribution) float64 {
	sum := -a.Prediction.Mean
	for _, w := range a.Words {
		sum += w.Contribution
	}
	for _, c := range a.Rest {
		sum += c.Contribution
	}
	return math.Abs(sum)
}

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

func (r *wordsResult) close() {
	r.Shared = float64(r.shared) / float64(max(1, r.taken))
	r.Top.close()
	r.Drawn.close()
	r.PredictMS, r.ExplainMS, r.AttributeMS = midpoint(r.predict), midpoint(r.explain), midpoint(r.attribute)
}

// Run replays the source and prints the figures.
func (c *Words) Run(ctx context.Context, stdio cli.IO) error {
	if err := atLeast(limit{"--words", c.Words, 1}, limit{"--from", c.From, 0}); err != nil {
		return err
	}
	return c.run(ctx, stdio, c.Output, c.measure)
}

// measure explains each message, takes words out of it, and then teaches it.
func (c *Words) measure(ctx context.Context, set *population, show *phases) (measurement, error) {
	m, err := model.New(set.model)
	if err != nil {
		return nil, err
	}
	w := &wordsReplay{wordsResult: &wordsResult{Command: commandLine(), words: c.Words}, predictor: m.NewPredictor(),
		random: rand.New(rand.NewPCG(c.Seed, 0))}
	var done atomic.Int64
	stop := show.begin("messages", len(set.set), &done)
	defer stop()
	for i := range set.set {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		done.Add(1)
		ex := &set.set[i]
		if i >= c.From && ex.Body.Message != nil {
			if err := w.explainOne(&ex.Body, ex.Spam); err != nil {
				return nil, fmt.Errorf("event %s: %w", ex.ID, err)
			}
		}
		if _, err := m.Apply(ex); err != nil {
			return nil, fmt.Errorf("event %s: %w", ex.ID, err)
		}
	}
	if w.Events == 0 {
		return nil, errors.New("the source holds no message that can be explained")
	}
	w.close()
	return w.wordsResult, nil
}

// section has a line for each choice of words.
func (r *wordsResult) section() *experiment.Section {
	t := experiment.Table{Right: true, Head: [][]string{{"words taken out of spam", "messages", "log-odds lower",
		"median fall, nats", "words' sum, median", "below one half"}}}
	add := func(name string, m *removal) {
		t.Addf("%s\t%d\t%.1f %%\t%.2f\t%.2f\t%.1f %%", name, m.Messages, 100*m.Lowered, m.Median, m.Called, 100*m.Ham)
	}
	add(fmt.Sprintf("the top %d", r.words), &r.Top)
	add("as many drawn of the others", &r.Drawn)
	return &experiment.Section{Table: t,
		Lead: experiment.Plain(fmt.Sprintf("%d messages explained, %d spam, of which %d have no word for spam",
			r.Events, r.Spam, r.NoWord)),
		Notes: experiment.Plain(
			fmt.Sprintf("Words and rest miss the mean by at most %.1g nats. %.1f %% of the top words share a slot.",
				r.Error, 100*r.Shared),
			fmt.Sprintf("Median time of an answer: %.2f ms, with inputs %.2f ms, with words %.2f ms.", r.PredictMS,
				r.ExplainMS, r.AttributeMS),
			"Made by: "+r.Command)}
}
