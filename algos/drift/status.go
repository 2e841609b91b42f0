package drift

// A Status is what an alarm shows of itself. What its numbers mean, and their
// units, is said with each alarm.
type Status struct {
	Raised    bool
	Since     uint64 // the event count of the last change of Raised, 0 if there was none
	Known     bool   // whether there is a level and a reference yet
	Level     float64
	Reference float64
	Threshold float64 // of what is compared: see each alarm
}

// A Reading says in words what the three alarms together mean.
type Reading uint8

const (
	Nothing       Reading = iota // no alarm
	LabelsWentBad                // label noise, whatever else is raised
	MailChanged                  // leverage, and no label noise
	WorldChanged                 // loss alone
)

// Read joins the three alarms. Labels that went bad raise the loss too, and are
// the first thing to see to, because everything else is judged by them. Mail
// unlike anything learnt raises the loss until it is learnt. What is left is loss
// alone: the same mail means something else now. The loss is the fastest of the
// three: after a change WorldChanged may stand for some hundred events until a
// slower and more specific alarm says why.
func Read(noise, covariate, concept Status) Reading {
	switch {
	case noise.Raised:
		return LabelsWentBad
	case covariate.Raised:
		return MailChanged
	case concept.Raised:
		return WorldChanged
	}
	return Nothing
}

var readings = [...]string{"nothing", "labels went bad", "the mail changed", "the world changed"}

// String returns the reading in words, such as "labels went bad".
func (r Reading) String() string {
	if int(r) < len(readings) {
		return readings[r]
	}
	return "unknown reading"
}

// Config returns the alarm's configuration with its defaults filled in.
func (n *LabelNoise) Config() LabelNoiseConfig { return n.cfg }

// Config returns the alarm's configuration with its defaults filled in.
func (c *Covariate) Config() CovariateConfig { return c.cfg }

// Config returns the alarm's configuration with its defaults filled in.
func (p *PageHinkley) Config() PageHinkleyConfig { return p.cfg }
