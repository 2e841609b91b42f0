package text

import (
	"slices"

	"github.com/cespare/xxhash/v2"

	"hamlet/algos/feature"
)

// Personal returns the personal variants of entries, which must be [Entry.CanBePersonal].
// A personal expert learns and answers as its original does. It reads the same features at
// other indices: each tenant has its own, so that what one tenant's labels teach it is
// about that tenant's mail only. All tenants share its table.
//
// Two features of different tenants may have one index, as two features of one tenant may.
// So a table is no secret between tenants: with 2^b slots, one of another tenant's features
// has a given index with the probability 2^−b.
//
// A personal expert keeps its products with facts and is a witness of a label's trust if its
// original is: without either, tenants who disagree lose up to a tenth. model/MEASURED.md has
// this and the cost.
//
// Personal experts of one list share a table, as their originals do. They have no surprise:
// all mail of a new tenant would be surprising.
func Personal(entries []*Entry) (personal []*Entry) {
	lists := map[*List]*List{}
	for _, e := range entries {
		if !e.CanBePersonal {
			panic("text: " + e.Name + " cannot be personal")
		}
		if lists[e.Reads] == nil {
			lists[e.Reads] = salted(e.Reads)
		}
		p := *e
		p.Name = "personal-" + e.Name
		p.Reads = lists[e.Reads]
		p.Surprise = false
		p.Inputs = nil
		for _, input := range e.Inputs {
			input.Name += " (personal)"
			p.Inputs = append(p.Inputs, input)
		}
		personal = append(personal, &p)
	}
	return personal
}

// salted returns the list of of's features at the indices of a tenant.
func salted(of *List) *List {
	l := &List{Bits: of.Bits, Part: of.Part, Salts: of}
	l.Read = func(h *feature.Hasher, v *View, p *Parts) {
		of.Read(h, v, p)
		v.Salt(v, p.Tenant, h.TableBits())
	}
	return l
}

// Salt sets v to from with the indices of a tenant, below 2^tableBits. v may be from; else
// it shares from's Value and Bytes. Distinct indices stay distinct. Nothing is hashed again
// but the tenant: a feature costs two multiplications.
//
// With h = xxhash64(tenant), m = h mod 2³² made odd and a = ⌊h/2³²⌋, the index i < 2^b
// becomes
//
//	j = (m·i + a) mod 2^b
//	m·(j xor ⌊j/2^⌊b/2⌋⌋) mod 2^b
//
// An odd m has an inverse mod 2^b, and the xor can be undone from the highest bit down: so
// this is a permutation of the indices. It mixes the high bits into the low ones, which a
// product alone does not.
func (v *View) Salt(from *View, tenant string, tableBits int) {
	hash := xxhash.Sum64String(tenant)
	m, a := uint32(hash)|1, uint32(hash>>32)
	mask, half := uint32(1)<<tableBits-1, tableBits/2
	index := slices.Grow(v.Index[:0], len(from.Index))[:len(from.Index)]
	for k, i := range from.Index {
		j := (m*i + a) & mask
		index[k] = m * (j ^ j>>half) & mask
	}
	v.Index, v.Value, v.Bytes = index, from.Value, from.Bytes
}
