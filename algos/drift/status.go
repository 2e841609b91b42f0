package drift

// A Status is how an alarm stands. Each alarm documents what its numbers mean and their
// units.
type Status struct {
	Raised    bool
	Since     uint64 // the event count of the last change of Raised, 0 if there was none
	Known     bool   // whether there is a level and a reference yet
	Level     float64
	Reference float64
	Threshold float64 // each alarm says what it compares with this
}

// A Diagnosis says in words what the alarms together mean. The most urgent comes first.
type Diagnosis uint8

const (
	Nothing          Diagnosis = iota // no alarm
	SourceIsWrong                     // a source is accused, whatever else is raised
	LabelsWentBad                     // label noise, and no source is accused
	MailChanged                       // leverage, and no label noise
	MeaningChanged                    // loss alone
	SomethingChanged                  // a suspicion, and no alarm
)

// Diagnose names the most specific alarm that is raised. Bad labels come first: they raise
// the loss too, and the other alarms depend on them. New kinds of mail raise the loss until
// they are learnt. If only the loss is high, the same mail means something else now. The loss
// is the fastest alarm: a more specific one may follow some hundred events later.
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

var diagnoses = [...]string{
	"nothing", "a source gives wrong labels", "labels went bad", "the mail changed", "the world changed",
	"something changed, not yet known what",
}

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
