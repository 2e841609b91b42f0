// Laboratory: the sources' tables and figures, computed again.

// Package papers holds `hamlet lab`: every table and figure of the sources, computed
// again beside the printed one. A package below it has the experiments of a source; how
// an experiment is written and judged stands in package experiment.
package papers

import (
	"fmt"
	"slices"
	"strings"

	"hamlet/cmd/internal/lab/experiment"
	"hamlet/cmd/internal/lab/papers/bblr"
	"hamlet/cmd/internal/lab/papers/blr"
	"hamlet/cmd/internal/lab/papers/poeboost"
	"hamlet/cmd/internal/lab/papers/slides"
	"hamlet/cmd/internal/lab/papers/viboost"
)

// all returns every experiment, by source in the order of experiment.Sources.
func all() []*experiment.Experiment {
	var list []*experiment.Experiment
	for _, source := range [][]experiment.Experiment{
		viboost.Experiments(), poeboost.Experiments(), blr.Experiments(), bblr.Experiments(), slides.Experiments(),
	} {
		for i := range source {
			list = append(list, &source[i])
		}
	}
	return list
}

// chosen returns the experiments that names mean: "all", a source, or one of them.
func chosen(list []*experiment.Experiment, names []string) ([]*experiment.Experiment, error) {
	var picked []*experiment.Experiment
	for _, name := range names {
		found := false
		for _, e := range list {
			if name != "all" && name != e.Source() && name != e.Name {
				continue
			}
			found = true
			if !slices.Contains(picked, e) {
				picked = append(picked, e)
			}
		}
		if !found {
			return nil, unknown(list, name)
		}
	}
	return picked, nil
}

// unknown names what is near.
func unknown(list []*experiment.Experiment, name string) error {
	source, what, _ := strings.Cut(name, "/")
	var near []string
	for _, e := range list {
		if e.Source() == source || what != "" && strings.HasSuffix(e.Name, "/"+what) {
			near = append(near, e.Name)
		}
	}
	if len(near) > 0 {
		return fmt.Errorf("there is no experiment %q; near it: %s", name, strings.Join(near, ", "))
	}
	return fmt.Errorf("there is no experiment %q: hamlet lab list shows all", name)
}
