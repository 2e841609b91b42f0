// Laboratory: the experiments of one source.

// Package poeboost computes the tables and claims of Boosting as a Product of Experts
// again, by Edakunni, Brown and Kovacs.
package poeboost

import "hamlet/cmd/internal/lab/experiment"

// Experiments returns all of them, in the order of the source.
func Experiments() []experiment.Experiment {
	return []experiment.Experiment{bounds, table1, table2}
}

// A column holds a number that table 2 prints, and its deviation in brackets.
type column struct{ accuracy, likelihood printed }

type printed struct {
	number    string
	deviation float64
}

// A set is one of the six public ones of tables 1 and 2.
type set struct {
	name, short, data string
	rows, features    string // table 1
	realAdaBoost, poe column // table 2
}

var sets = []set{
	{"Ionosphere", "Iono", "ionosphere", "351", "33",
		column{printed{"0.78", .03}, printed{"-0.52", .05}}, column{printed{"0.85", .03}, printed{"-0.41", .05}}},
	{"Breast cancer", "Breast", "wdbc", "569", "30",
		column{printed{"0.84", .04}, printed{"-0.51", .02}}, column{printed{"0.96", .02}, printed{"-0.12", .03}}},
	{"Spambase", "Spam", "spambase", "4601", "56",
		column{printed{"0.78", .01}, printed{"-0.65", .00}}, column{printed{"0.86", .01}, printed{"-0.39", .01}}},
	{"Pima Indians", "Pima", "pima", "768", "8",
		column{printed{"0.71", .03}, printed{"-0.63", .02}}, column{printed{"0.73", .03}, printed{"-0.56", .03}}},
	{"Letter", "Letter", "letter-ab", "1555", "16",
		column{printed{"0.54", .02}, printed{"-0.59", .02}}, column{printed{"0.94", .01}, printed{"-0.15", .02}}},
	{"Wine quality", "Wine", "wine-red", "1599", "11",
		column{printed{"0.96", .01}, printed{"-0.16", .02}}, column{printed{"0.96", .01}, printed{"-0.16", .02}}},
}

func names() []string {
	var all []string
	for _, s := range sets {
		all = append(all, s.data)
	}
	return all
}
