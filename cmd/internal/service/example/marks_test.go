package example_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"hamlet/algos/model"
	"hamlet/cmd/internal/service/example"
	"hamlet/stream"
)

// rawMarks are marks as filters write them in raw mail: in any case, folded, with blanks
// before the colon.
var rawMarks = []string{
	"X-Hamlet: spam p=.99\r\n", "X-HAMLET-SCORE : .99\r\n",
	"X-Spam-Status: Yes, score=9.1 required=5\r\n\ttests=BAYES_99,\r\n URIBL_BLACK autolearn=no\r\n",
	"x-spam-flag: YES\r\n", "X-SPAM-REPORT:\r\n\t* 9 PILLS\r\n\t* 1 MEET\r\n",
	"X-Bogosity: Spam, tests=bogofilter,\r\n  spamicity=1.0\r\n",
	"X-MS-Exchange-Organization-SCL: 9\r\n", "X-Forefront-Antispam-Report: CIP:192.0.2.1;\r\n\tSFV:SPM;pill\r\n",
	"Authentication-Results: mx.example;\r\n\tspf=pass smtp.mailfrom=a@b.example;\r\n\tX-Hamlet=spam policy.p=.99\r\n",
	"X-Gmail-Labels: Spam,pill\r\n", "X-Keywords: $Junk\r\n",
}

// mails returns n labelled mails as fields and a body.
func mails(n int) (fields [][]string, bodies []string, spam []bool) {
	r := rand.New(rand.NewPCG(7, 12))
	for range n {
		is := r.IntN(2) == 0
		word := func() string {
			if r.IntN(4) == 0 {
				is := !is
				return fmt.Sprint(is, r.IntN(30))
			}
			return fmt.Sprint(is, r.IntN(30))
		}
		f := []string{"From: " + word() + "@example.org\r\n", "Subject: " + word() + "\r\n", "X-Mailer: " + word() + "\r\n",
			"Authentication-Results: mx.example; spf=" + word() + "\r\n"}
		for range r.IntN(80) { // some heads are longer than H
			f = append(f, "Received: from "+word()+" by "+word()+".example with ESMTP; Mon, 1 Jan 2001\r\n")
		}
		fields, bodies, spam = append(fields, f), append(bodies, word()+" "+word()+"\r\n"), append(spam, is)
	}
	return fields, bodies, spam
}

func mailOf(t *testing.T, fields []string, body string) model.Body {
	t.Helper()
	b, how, err := example.Body("", &stream.Body{Kind: stream.Mail, Mail: []byte(strings.Join(fields, "") + "\r\n" + body)})
	if err != nil || how.Raw {
		t.Fatal(err, how)
	}
	return b
}

// marked returns the fields with some marks anywhere between them.
func marked(r *rand.Rand, fields []string) []string {
	all := append([]string(nil), fields...)
	for range r.IntN(12) {
		at := r.IntN(len(all) + 1)
		all = append(all[:at:at], append([]string{rawMarks[r.IntN(len(rawMarks))]}, all[at:]...)...)
	}
	return all
}

// Marks change no bit: neither of what is predicted nor of what is learnt. And an event
// learnt without marks is withdrawn by its mail with marks, as a mailbox keeps it.
func TestMarksChangeNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	newModel := func() *model.Model {
		m, err := model.New(model.Config{TableBits: 10})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	image := func(m *model.Model) []byte {
		b, err := m.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	apply := func(m *model.Model, ex model.Example) {
		if _, err := m.Apply(&ex); err != nil {
			t.Fatal(err)
		}
	}
	plain, with := newModel(), newModel()
	plainScores, withScores := plain.NewPredictor(), with.NewPredictor()
	fields, bodies, spam := mails(300)
	differ := false
	for i := range fields {
		a := mailOf(t, fields[i], bodies[i])
		b := mailOf(t, marked(r, fields[i]), bodies[i])
		differ = differ || !bytes.Equal(a.Message.Head, b.Message.Head)
		p, err := plainScores.Predict(&a)
		if err != nil {
			t.Fatal(err)
		}
		q, err := withScores.Predict(&b)
		if err != nil {
			t.Fatal(err)
		}
		if p != q {
			t.Fatalf("mail %d: without marks %+v, with marks %+v", i, p, q)
		}
		ex := model.Example{ID: fmt.Sprint(i), Source: "desk", Spam: spam[i], Body: a}
		apply(plain, ex)
		ex.Body = b
		apply(with, ex)
		if i%5 == 4 { // withdraw an earlier one, with other marks than it was learnt with
			of := i - i%4
			w := model.Example{ID: fmt.Sprint("u", i), Source: "desk", Action: model.Unlearn, Of: fmt.Sprint(of)}
			w.Body = mailOf(t, marked(r, fields[of]), bodies[of])
			apply(plain, w)
			w.Body = mailOf(t, marked(r, fields[of]), bodies[of])
			apply(with, w)
		}
	}
	if !differ {
		t.Fatal("no mail had a mark")
	}
	if !bytes.Equal(image(plain), image(with)) {
		t.Error("the models differ")
	}
}
