package text_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"hamlet/algos/feature"
	"hamlet/algos/text"
)

// personals returns the personal variants of all experts that can be personal.
func personals() []*text.Entry {
	var originals []*text.Entry
	for _, name := range text.CanBePersonal() {
		originals = append(originals, text.ByName(name))
	}
	return text.Personal(originals)
}

// upTo returns a view of the indices below n.
func upTo(n int) *text.View {
	v := &text.View{}
	for i := range n {
		v.Index = append(v.Index, uint32(i))
	}
	return v
}

// Every tenant's indices are a permutation of all indices: none repeats and none is beyond
// the table.
func TestSaltIsAPermutation(t *testing.T) {
	for bits := feature.MinTableBits; bits <= 16; bits++ {
		all := upTo(1 << bits)
		for _, tenant := range []string{"", "default", "a.example", "b.example"} {
			var v text.View
			v.Salt(all, tenant, bits)
			if slices.Equal(v.Index, all.Index) {
				t.Errorf("%d bits, %q: no index moved", bits, tenant)
			}
			slices.Sort(v.Index)
			if !slices.Equal(v.Index, all.Index) {
				t.Fatalf("%d bits, %q: the indices are no permutation", bits, tenant)
			}
		}
	}
}

// Salt is its formula, in whole numbers of any size.
func TestSaltIsItsFormula(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	two := func(n int) *big.Int { return new(big.Int).Lsh(big.NewInt(1), uint(n)) }
	for range 300 {
		bits, tenant := feature.MinTableBits+r.IntN(feature.MaxTableBits-feature.MinTableBits+1), fmt.Sprint("tenant ", r.IntN(1000))
		i := r.IntN(1 << bits)
		h := new(big.Int).SetUint64(xxhash.Sum64String(tenant))
		a, m := new(big.Int).DivMod(h, two(32), new(big.Int))
		m.SetBit(m, 0, 1)
		j := new(big.Int).Mul(m, big.NewInt(int64(i)))
		j.Mod(j.Add(j, a), two(bits))
		j.Xor(j, new(big.Int).Div(j, two(bits/2)))
		want := j.Mod(j.Mul(m, j), two(bits)).Uint64()
		v := text.View{Sparse: feature.Sparse{Index: []uint32{uint32(i)}}}
		if v.Salt(&v, tenant, bits); uint64(v.Index[0]) != want {
			t.Fatalf("%d bits, %q: %d becomes %d, want %d", bits, tenant, i, v.Index[0], want)
		}
	}
}

// Two tenants' indices of the same features meet as often as chance has it: n features of
// each among 2^b slots share n²/2^b in the mean, here 61 (less than 61 + 5·√61 = 100).
func TestTenantsIndicesAreUnrelated(t *testing.T) {
	const bits, n = 18, 4000
	var h = feature.NewHasher(bits)
	var common text.View
	for i := range n {
		common.Index = h.Grams(common.Index, fmt.Appendf(nil, "%08d", i), 8)
	}
	for k := range 20 {
		var a, b text.View
		a.Salt(&common, fmt.Sprint("tenant", k), bits)
		b.Salt(&common, fmt.Sprint("tenant", k+1), bits)
		shared := 0
		for _, i := range b.Index {
			if slices.Contains(a.Index, i) {
				shared++
			}
		}
		if shared > 100 {
			t.Errorf("tenants %d and %d share %d of %d slots", k, k+1, shared, n)
		}
	}
}

// A personal list reads what its original reads, at the tenant's indices.
func TestPersonalListsReadTheSame(t *testing.T) {
	const bits = 12
	h := feature.NewHasher(bits)
	r := rand.New(rand.NewPCG(3, 4))
	for _, e := range personals() {
		original := text.ByName(strings.TrimPrefix(e.Name, "personal-"))
		if e.Reads.Salts != original.Reads || e.Reads.Bits != original.Reads.Bits {
			t.Fatalf("%s does not salt the list of %s", e.Name, original.Name)
		}
		for range 20 {
			p := &text.Parts{Tenant: fmt.Sprint(r.IntN(5)), Head: []byte("to: bob\n" + words(r)), Text: []byte(words(r))}
			var plain, want, got text.View
			original.Reads.Read(h, &plain, p)
			want.Salt(&plain, p.Tenant, bits)
			e.Reads.Read(h, &got, p)
			if !slices.Equal(got.Index, want.Index) || string(got.Bytes) != string(plain.Bytes) || len(got.Index) == 0 {
				t.Fatalf("%s reads %v %q, want %v %q", e.Name, got.Index, got.Bytes, want.Index, plain.Bytes)
			}
		}
	}
}

func words(r *rand.Rand) string {
	var b strings.Builder
	for range 30 {
		fmt.Fprintf(&b, "word%d ", r.IntN(10))
	}
	return b.String()
}

// What a tenant's labels teach a personal expert is not seen by another tenant: while no two
// features meet in a slot, an AdaGrad answers each tenant exactly as an expert of its own
// does that has learnt this tenant's messages only. A naive Bayes shares its totals; it knows
// no word of another tenant.
func TestTenantsDoNotSeeEachOther(t *testing.T) {
	const bits = 20 // few words: the features of three tenants meet nowhere, as the test checks
	h := feature.NewHasher(bits)
	tenants := []string{"", "a.example", "b.example"}
	for _, e := range personals() {
		t.Run(e.Name, func(t *testing.T) {
			original := text.ByName(strings.TrimPrefix(e.Name, "personal-"))
			shared := e.New(text.NewColumn(bits))
			own := map[string]text.Expert{}
			owner := map[uint32]string{}
			r := rand.New(rand.NewPCG(7, 8))
			for range 60 {
				p := &text.Parts{Tenant: tenants[r.IntN(2)], Head: []byte(words(r)), Text: []byte(words(r))}
				var plain, salted, stranger text.View
				original.Reads.Read(h, &plain, p)
				e.Reads.Read(h, &salted, p)
				q := *p
				q.Tenant = tenants[2]
				e.Reads.Read(h, &stranger, &q)
				for k, i := range slices.Concat(salted.Index, stranger.Index) {
					tenant := p.Tenant
					if k >= len(salted.Index) {
						tenant = q.Tenant
					}
					feature := fmt.Sprint(tenant, "/", plain.Index[k%len(plain.Index)])
					if known, ok := owner[i]; ok && known != feature {
						t.Fatalf("%s and %s meet: take other words", known, feature)
					}
					owner[i] = feature
				}
				if own[p.Tenant] == nil {
					own[p.Tenant] = original.New(text.NewColumn(bits))
				}
				was, alone := shared.Score(&salted), own[p.Tenant].Score(&plain)
				if !e.Counts && was != alone {
					t.Fatalf("to %q it says %+v, an expert of its own says %+v", p.Tenant, was, alone)
				}
				spam := (r.IntN(2) == 0) == (p.Tenant == "")
				shared.Learn(&salted, was, spam, 1)
				own[p.Tenant].Learn(&plain, alone, spam, 1)
				if shared.Score(&salted).LogOdds == 0 {
					t.Fatal("it has learnt nothing")
				}
				if shared.Score(&stranger).LogOdds != 0 {
					t.Fatalf("to a tenant without labels it says %+v", shared.Score(&stranger))
				}
			}
		})
	}
}

func TestWhatCannotBePersonal(t *testing.T) {
	if slices.Contains(text.CanBePersonal(), text.TextBytes) {
		t.Error("the byte model counts single bytes of all tenants together")
	}
	defer func() {
		if recover() == nil {
			t.Error("text-bytes was made personal")
		}
	}()
	text.Personal([]*text.Entry{text.ByName(text.TextBytes)})
}
