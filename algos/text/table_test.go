package text

import "testing"

// The tables of experts lie side by side. Each is of its own size, and none overlaps another.
func TestTablesAreApart(t *testing.T) {
	const bits = 8
	entries := append(byNames(Set(Full)), Vectors...)
	experts, tables := Experts(entries, bits)
	total := 0
	for i, table := range tables {
		for k := range table.pairs {
			if table.pairs[k] != (pair{}) {
				t.Fatalf("pair %d of table %d is shared with table %v", k, i, table.pairs[k].a)
			}
			table.pairs[k] = pair{a: float32(i) + 1}
		}
		if cap(table.pairs) != len(table.pairs) {
			t.Errorf("table %d can grow into the next one", i)
		}
		total += len(table.pairs)
	}
	want := 0
	for k, e := range entries {
		if experts[k] == nil {
			t.Errorf("%s: no expert", e.Name)
		}
		want += 1 << (bits + e.Reads.Bits)
	}
	if total != want {
		t.Errorf("%d pairs in all tables, want %d", total, want)
	}
}

func byNames(names []string) (entries []*Entry) {
	for _, name := range names {
		entries = append(entries, ByName(name))
	}
	return entries
}
