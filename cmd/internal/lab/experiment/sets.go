package experiment

import (
	"maps"
	"slices"
)

// A Set is a public data set: files with known contents.
type Set struct {
	Name  string
	What  string // rows, inputs, classes
	Where string // where it may be had
	Files []File
	table *layout // how Table reads it; nil: Table does not
}

// A File is a part of a set. Its path is below the data folder.
type File struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256,omitempty"` // "": any file in the documented form is taken
}

// Sets returns all data sets by name.
func Sets() []Set {
	var all []Set
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		s := sets[name]
		s.Name = name
		all = append(all, s)
	}
	return all
}

// uci is where most sets come from. Files elsewhere often have a header, other line
// ends or another order of rows.
const uci = "archive.ics.uci.edu"

var sets = map[string]Set{
	"spambase": {What: "4,601 mails of 57 numbers, 1,813 spam", Where: uci + ", Spambase",
		Files: []File{{"spambase/spambase.data", "b1ef93de71f97714d3d7d4f58fc9f718da7bbc8ac8a150eff2778616a8097b12"}},
		table: &layout{positive: is("1")}},
	"ionosphere": {What: "351 radar returns of 34 numbers, 225 good", Where: uci + ", Ionosphere",
		Files: []File{{"ionosphere/ionosphere.data", "46d52186b84e20be52918adb93e8fb9926b34795ff7504c24350ae0616a04bbd"}},
		table: &layout{drop: []int{2}, positive: is("g")}},
	"wdbc": {What: "569 tumours of 30 numbers, 212 malignant", Where: uci + ", Breast Cancer Wisconsin (Diagnostic)",
		Files: []File{{"wdbc/wdbc.data", "d606af411f3e5be8a317a5a8b652b425aaf0ff38ca683d5327ffff94c3695f4a"}},
		table: &layout{label: 2, drop: []int{1}, positive: is("M")}},
	"breast": {What: "683 tumours of 9 integers, 239 malignant (16 more have gaps)", Where: uci + ", Breast Cancer Wisconsin (Original)",
		Files: []File{{"breast-cancer-wisconsin/breast-cancer-wisconsin.data", "402c585309c399237740f635ef9919dc512cca12cbeb20de5e563a4593f22b64"}},
		table: &layout{drop: []int{1}, positive: is("4")}},
	"pima": {What: "768 patients of 8 numbers, 268 with diabetes", Where: "OpenML, diabetes; UCI has withdrawn it",
		Files: []File{{"pima/pima-indians-diabetes.data", "06f5b7c2cd7bca686fda4f92eab5f61e7ff6426a9acefa2e3dda04fc54293cf5"}},
		table: &layout{positive: is("1")}},
	"letter-ab": {What: "1,555 letters A and B of 16 integers, 789 A", Where: uci + ", Letter Recognition; the rows of A and B alone",
		Files: []File{{"letter-ab/letter-ab.data", "3317c6464e5469072696397acb8b179154d448f3f0f5166a65fd0181bca092bb"}},
		table: &layout{label: 1, positive: is("A")}},
	"wine-red": {What: "1,599 wines of 11 numbers; quality 5 and more is +1", Where: uci + ", Wine Quality",
		Files: []File{{"wine-red/winequality-red.csv", "4a402cf041b025d4566d954c3b9ba8635a3a8a01e039005d97d6a710278cf05e"}},
		table: &layout{header: true, positive: func(quality string) bool { return quality >= "5" }}},
	"heart": {What: "270 patients of 13 numbers, 120 with disease", Where: uci + ", Statlog (Heart)",
		Files: []File{{"heart/heart.dat", "f5f3b4204c285bafadd85cb735f38b47689f2be7047feb172dcbeab648110bf9"}},
		table: &layout{positive: is("2")}},
	"liver": {What: "345 men of 6 numbers, 200 of selector 2", Where: uci + ", Liver Disorders",
		Files: []File{{"liver/bupa.data", "a166a3e7a6f4dc41aaaedc59a107e57d8adcaeb8821f0873d756982f1ea74c92"}},
		table: &layout{positive: is("2")}},
	"w8a": {What: "49,749 + 14,951 web pages of 300 binary features", Where: "LIBSVM's collection, w8a; gzip",
		Files: []File{
			{"w8a/w8a.gz", "96662ca00ad3620d18e30f9359627aeacebcda9be9381005c551e405220cc9d9"},
			{"w8a/w8a.t.gz", "d66cdbb04d6bed2f4402ec9e34fb484ea5f71474db626a6ba46dcc2b9f44dc71"}}},
	"sms": {What: "5,574 texts, 747 spam", Where: uci + ", SMS Spam Collection",
		Files: []File{{"sms/SMSSpamCollection", "7d039a24a6083ed9ef0f806ebad56bbb976e3aeb8de05669173bfdc4996c239d"}}},
	"state": {What: "145 documents of 22,648 words, about Illinois (+1) or Michigan (−1), as svmlight",
		Where: "the documents of reference [8] of the VIBoost paper, one line `±1 index:1 …` a document",
		Files: []File{{Path: "state/state.svm"}}},
	"reviews-books":       review("books"),
	"reviews-dvd":         review("dvd"),
	"reviews-electronics": review("electronics"),
	"reviews-kitchen":     review("kitchen"),
}

// review is a domain of the reviews of products by Blitzer, Dredze and Pereira (2007).
func review(domain string) Set {
	return Set{What: "reviews of products, domain " + domain + ", ±1 and word counts as svmlight",
		Where: "the multi-domain sentiment data set of Blitzer, Dredze and Pereira (2007), its processed form, one line `±1 index:count …` a review",
		Files: []File{{Path: "reviews/" + domain + ".svm"}}}
}
