package drift

// A Status is how an alarm stands. Each alarm documents what its numbers mean and their
// units.
type Status struct {
	Raised    bool
	Since     uint64 // the event count of the last change of Raised, 0 if there was none
	Known     bool   // whether there is a level and a reference yet
	Level     float64
	Reference float64
	Threshold float64 // of what is compared: see each alarm
}

// A Diagnosis says in words what the three alarms together mean.
type Diagnosis uint8

const (
	Nothing        Diagnosis = iota // no alarm
	LabelsWentBad                   // label noise, whatever else is raised
	MailChanged                     // leverage, and no label noise
	MeaningChanged                  // loss alone
)

// Diagnose names the most specific alarm that is raised. Labels that went bad raise the
// loss too, and come first, because everything else is judged by them. Mail unlike
// anything learnt raises the loss until it is learnt. Loss alone means that the same mail
// means something else now. The loss is the fastest alarm: after a change MeaningChanged
// may stand for some hundred events until a more specific alarm is raised.
func Diagnose(noise, covariate, concept Status) Diagnosis {
	switch {
	case noise.Raised:
		return LabelsWentBad
	case covariate.Raised:
		return MailChanged
	case concept.Raised:
		return MeaningChanged
	}
	return Nothing
}

var diagnoses = [...]string{"nothing", "labels went bad", "the mail changed", "the world changed"}

// String returns the diagnosis in words, such as "labels went bad".
func (d Diagnosis) String() string {
	if int(d) < len(diagnoses) {
		return diagnoses[d]
	}
	return "unknown diagnosis"
}

// Config returns the alarm's configuration with its defaults filled in.
func (n *LabelNoise) Config() LabelNoiseConfig { return n.cfg }

// Config returns the alarm's configuration with its defaults filled in.
func (c *Covariate) Config() CovariateConfig { return c.cfg }

// Config returns the alarm's configuration with its defaults filled in.
func (p *PageHinkley) Config() PageHinkleyConfig { return p.cfg }
