package incidents

import (
	"fmt"
	"math"

	"hamlet/algos/drift"
	"hamlet/algos/model"
	"hamlet/cmd/internal/web/page"
	"hamlet/stream"
)

// A ruling says of one explanation whether the incident has its name, and why or why not.
type ruling struct {
	Name    string // "label noise"
	Verdict string // "named", "ruled out", "not decided", "not asked"
	Why     string
}

// explanations are the names that an incident can have, in the order in which they are asked:
// the first that holds names it.
var explanations = []struct{ kind, name string }{
	{stream.AlertSource, "a source's labels are wrong"},
	{stream.AlertLabelNoise, "labels went bad"},
	{stream.AlertCovariate, "the mail changed"},
	{stream.AlertConcept, "the same mail means something else"},
}

// rulings returns what was named and what was ruled out. It follows the rules of
// drift.Incidents: the order of explanations, and what each needs.
func rulings(i *Incident, now *facts) (all []ruling) {
	named := -1 // the last name in explanations
	raised := map[string]*stream.Alert{}
	for k := range i.Alerts {
		if a := &i.Alerts[k]; a.State == stream.AlertRaised {
			raised[a.Kind] = a
			for e := range explanations {
				if explanations[e].kind == a.Kind {
					named = e
				}
			}
		}
	}
	for e, explanation := range explanations {
		r := ruling{Name: explanation.name}
		a := raised[explanation.kind]
		switch {
		case explanation.kind == stream.AlertSource && i.Last().Accused != "" && a == nil:
			r.Verdict, r.Why = "named", "Source "+page.Visible(i.Last().Accused)+" was accused after the labels were named."
		case a != nil:
			r.Verdict, r.Why = "named", whyNamed(a)
		case i.Last().State == stream.AlertWithdrawn:
			r.Verdict, r.Why = "ruled out", "The signs went away, or 400 labels decided nothing, before this was proved."
		case named < 0:
			r.Verdict, r.Why = "not decided", missing(explanation.kind, i.Last().Body, now)
		case e > named:
			r.Verdict, r.Why = "not asked", "What was named is asked first, and the other signs may follow from it."
			if explanations[named].kind == stream.AlertLabelNoise && explanation.kind == stream.AlertConcept {
				r.Verdict, r.Why = "ruled out", "The labels that contradict the model do not follow from the mail by another "+
					"rule, or bad labels were proved first. Bad labels raise this alarm too."
			}
		default:
			r.Verdict, r.Why = "ruled out", whyNot[explanation.kind]
			if explanation.kind == stream.AlertLabelNoise && explanations[named].kind == stream.AlertConcept {
				r.Why = "The alarm for labels was not up by then, and flips explain the labels since the change worse than a " +
					"new rule does."
			}
		}
		all = append(all, r)
	}
	return all
}

// whyNot says why an explanation that is asked before the named one did not hold then.
var whyNot = map[string]string{
	stream.AlertSource:     "No source's labels contradicted those of the others enough to accuse it.",
	stream.AlertLabelNoise: "The alarm for labels was not up by then, or has an incident of its own.",
	stream.AlertCovariate:  "The mail was not unlike what the model had learnt: its alarm was not up by then.",
}

// whyNamed says what proved a name.
func whyNamed(a *stream.Alert) string {
	at := fmt.Sprintf("At event %d ", a.Event)
	switch a.Kind {
	case stream.AlertSource:
		if a.Accused == drift.Newcomers {
			return at + "new names that took turns gave labels that contradict those of the others."
		}
		return at + "labels of " + page.Visible(a.Accused) +
			" contradicted those of the others so much that the source is accused."
	case stream.AlertLabelNoise:
		switch share := strength(a.Kind, a.Level, a.Reference, a.Threshold); {
		case share > 1:
			return at + fmt.Sprintf("the level lay %.2f nats below its reference; %.2f raise the alarm.",
				a.Reference-a.Level, a.Threshold)
		case math.IsNaN(share):
			return at + "the labels since the change looked like flips: they follow from nothing in the mail. " +
				"The alarm itself had no reference yet."
		}
		return at + "the labels since the change looked like flips: they follow from nothing in the mail. " +
			"The alarm itself needs longer."
	case stream.AlertCovariate:
		return at + fmt.Sprintf("the last mail lay %.2f spreads above what the model had learnt; %.2f raise the alarm.",
			a.Level, a.Threshold)
	case stream.AlertConcept:
		return at + "the labels since the change followed from the mail by a new rule: " +
			"a model that forgets soon predicted them, and flips do not explain them."
	}
	return ""
}

// missing says how far the saved model is from a name.
func missing(kind, body string, now *facts) string {
	if kind == stream.AlertSource {
		return "No source is accused so far."
	}
	var alarm *model.Alarm
	if now != nil {
		for k := range now.Alarms {
			if now.Alarms[k].Kind == kind && now.Alarms[k].Body == body {
				alarm = &now.Alarms[k]
			}
		}
	}
	if alarm == nil || !alarm.Status.Known {
		return "Its alarm has no level yet, or no saved model says it."
	}
	share := strength(kind, alarm.Status.Level, alarm.Status.Reference, alarm.Status.Threshold)
	if math.IsNaN(share) {
		return "Its alarm has no threshold yet."
	}
	text := fmt.Sprintf("Its alarm is at %.0f %% of its threshold, as of event %d.", 100*max(0, share), now.Events)
	if kind != stream.AlertCovariate {
		text += " Thirty labels since the change, five of each class, may decide it too."
	}
	return text
}
