package model_test

import (
	"fmt"

	"hamlet/algos/feature"
	"hamlet/algos/model"
)

func Example() {
	m, err := model.New(model.Config{TableBits: 12})
	if err != nil {
		fmt.Println(err)
		return
	}
	text := func(s string) model.Body {
		return model.Body{Message: &feature.Message{Body: []byte(s), BodyBytes: len(s)}}
	}
	for i := range 50 { // fifty reports from the abuse desk
		for _, report := range []struct {
			text string
			spam bool
		}{{"minutes of the meeting", false}, {"cheap pills, order now!!!", true}} {
			if _, err := m.Apply(&model.Example{
				ID: fmt.Sprint(report.spam, i), Source: "abuse-desk", Spam: report.spam, Body: text(report.text),
			}); err != nil {
				fmt.Println(err)
				return
			}
		}
	}

	saved, err := m.AppendBinary(nil) // what a checkpoint holds
	if err != nil {
		fmt.Println(err)
		return
	}
	if m, err = model.Restore(saved); err != nil {
		fmt.Println(err)
		return
	}
	body := text("order pills!")
	p, reasons, err := m.NewPredictor().Explain(&body)
	if err != nil {
		fmt.Println(err)
		return
	}
	lo, _ := p.Interval(1.645)
	fmt.Printf("after %d events: spam %v, surely %v; first of all: %s\n", m.Events(), p.P() > 0.5, lo > 0.5, reasons[0].Name)
	// Output: after 100 events: spam true, surely true; first of all: text words (naive Bayes), loudest
}
