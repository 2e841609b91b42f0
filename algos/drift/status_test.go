package drift

import "testing"

// The diagnosis says "labels went bad" where they did, whatever else is named, and "the
// world changed" for concept alone.
func TestDiagnosis(t *testing.T) {
	open := func(n *Incidents, slots ...int) *Incidents {
		for _, k := range slots {
			n.named[k].number = 1
		}
		return n
	}
	accused := open(new(Incidents), aboutLabels, aboutMail)
	accused.named[aboutLabels].accused = true
	suspected := new(Incidents)
	suspected.suspicion.number = 1
	for _, c := range []struct {
		incidents *Incidents
		want      string
	}{
		{new(Incidents), "nothing"},
		{open(new(Incidents), aboutLabels), "labels went bad"},
		{open(new(Incidents), aboutLabels, aboutMail, aboutWorld), "labels went bad"},
		{open(new(Incidents), aboutMail), "the mail changed"}, {open(new(Incidents), aboutMail, aboutWorld), "the mail changed"},
		{open(new(Incidents), aboutWorld), "the world changed"},
		{accused, "a source gives wrong labels"},
		{suspected, "something changed, not yet known what"},
	} {
		if got := c.incidents.Diagnosis().String(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.incidents.named, got, c.want)
		}
	}
	if got := Diagnosis(9).String(); got != "unknown diagnosis" {
		t.Errorf("diagnosis 9 is %q", got)
	}
}
