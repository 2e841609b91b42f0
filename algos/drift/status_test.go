package drift

import "testing"

// Read says "labels went bad" where they did, whatever else is raised, and "the
// world changed" for loss alone.
func TestDiagnose(t *testing.T) {
	on, off := Status{Raised: true}, Status{}
	for _, c := range []struct {
		noise, covariate, concept Status
		want                      string
	}{
		{off, off, off, "nothing"},
		{on, off, off, "labels went bad"}, {on, on, on, "labels went bad"}, {on, off, on, "labels went bad"}, {on, on, off, "labels went bad"},
		{off, on, off, "the mail changed"}, {off, on, on, "the mail changed"},
		{off, off, on, "the world changed"},
	} {
		if got := Diagnose(c.noise, c.covariate, c.concept).String(); got != c.want {
			t.Errorf("noise %v, covariate %v, concept %v: %q, want %q", c.noise.Raised, c.covariate.Raised, c.concept.Raised, got, c.want)
		}
	}
	if got := Diagnosis(9).String(); got != "unknown diagnosis" {
		t.Errorf("diagnosis 9 is %q", got)
	}
}
