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

// A Diagnosis says in words what the open incidents together mean. The most urgent comes first.
type Diagnosis uint8

const (
	Nothing          Diagnosis = iota // no incident is open
	SourceIsWrong                     // a source is accused, whatever else is named
	LabelsWentBad                     // label noise, and no source is accused
	MailChanged                       // covariate, and nothing about labels
	MeaningChanged                    // concept alone
	SomethingChanged                  // a suspicion
)

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
