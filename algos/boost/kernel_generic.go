package boost

import "math"

// The innermost loops of LogitTrees, in Go. On amd64 kernel_amd64.s replaces them, most of them
// with AVX2, with the same bits, except with `-tags purego`.
//
// promising has no loop in Go: it may always say yes. It reports whether one of a histogram's
// cuts may gain more than a bound, from which searcher.doubt is taken off already.

// A splits is how a level divides: row i of node k goes right if bins[column[k]+i] > cut[k].
type splits struct {
	column [1 << (MaxDepth - 1)]int
	cut    [1 << (MaxDepth - 1)]uint8
	right  [1 << (MaxDepth - 1)]int32 // the number of kept rows that went right
}

// descendGo moves rows, from row first on, from a level's nodes to their children. kept is 255
// for the rows that s.right counts, and 0 for the others.
func descendGo(node, kept, bins []uint8, s *splits, nodes, first int) {
	for i := first; i < len(node); i++ {
		k := node[i] & (1<<(MaxDepth-1) - 1)
		right := uint8(0)
		if bins[s.column[k]+i] > s.cut[k] {
			right = 1
		}
		node[i] = 2*k + right
		s.right[k] += int32(right & kept[i])
	}
}

// cutGains is scratch for the gains of a histogram's cuts, and four beyond.
type cutGains [MaxBins + 5]float64

// bestCutGo returns the largest gain of the cuts of a histogram, and the first cut that has it. Where no cut
// divides the rows, the gain is −1, and the cut says nothing. tg and th are the node's slope and curvature.
func bestCutGo(h []int64, cuts int, tg, th, unit float64) (gain float64, cut int) {
	gain = -1
	left := int64(0)
	for k, v := range h[:cuts] {
		if v == 0 {
			continue // the cut before divides alike
		}
		left += v
		g, hl := unpack(left)
		r := tg - g
		if one := float64(g*g)/(hl+unit) + float64(r*r)/(th-hl+unit); one > gain {
			gain, cut = one, k
		}
	}
	return gain, cut
}

// pickGo writes the kept rows of small nodes to list, of which n are there, from row first on. It
// returns how many are there then. kept and small are 255 or 0; list is as long as node.
func pickGo(list []int32, node, kept []uint8, small *[1 << (MaxDepth - 1)]uint8, first, n int) int {
	for i := first; i < len(node); i++ {
		list[n] = int32(i)
		n += int(small[node[i]&(1<<(MaxDepth-1)-1)] & kept[i] & 1)
	}
	return n
}

// addGo adds the pairs of rows to h at their codes.
func addGo(h []int64, codes []uint16, rows []cells, pairs []int64) {
	for _, r := range rows {
		v := pairs[r.row]
		for _, c := range codes[r.from:r.to] {
			h[c] += v
		}
	}
}

// addByNodeGo is addGo to h from the place on that the row's node has.
func addByNodeGo(h []int64, at *[1 << (MaxDepth - 1)]uint32, node []uint8, codes []uint16, spans []span, rows []int32,
	pairs []int64) {
	for _, i := range rows {
		v, r, own := pairs[i], spans[i], h[at[node[i]&(1<<(MaxDepth-1)-1)]:]
		for _, c := range codes[r.from:r.to] {
			own[c] += v
		}
	}
}

// sum4Go returns the sum of trees of depth 4 at x, as grove has them.
func sum4Go(x []float64, features []int32, thresholds, leaves []float64) float64 {
	sum := 0.0
	for ; len(leaves) >= 16; leaves = leaves[16:] {
		f, t := (*[15]int32)(features), (*[15]float64)(thresholds)
		features, thresholds = features[15:], thresholds[15:]
		a := 1 + above(x[f[0]], t[0])
		b := 2*a + 1 + above(x[f[a]], t[a])
		c := 2*b + 1 + above(x[f[b]], t[b])
		d := 2*c + 1 + above(x[f[c]], t[c])
		sum += leaves[d-15]
	}
	return sum
}

// above returns 1 if v > t, else 0: a NaN is not above.
func above(v, t float64) int {
	if v > t {
		return 1
	}
	return 0
}

// weighGo multiplies each z by the factor of its leaf and class, and sets the pairs of slope
// and curvature. It returns sum + Σ ω|y₊−p|.
func weighGo(z, weights []float64, pairs []int64, node, class []uint8, factor *[2 << MaxDepth]float64,
	unit, sum float64) float64 {
	for i, ω := range weights {
		class := class[i]
		zi := min(float64(z[i]*factor[(int(node[i])<<1|int(class))&(2<<MaxDepth-1)]), largestZ)
		q := 1 / (1 + zi)
		s := float64(ω * float64(zi*q)) // ω|y₊−p|
		z[i] = zi
		sum += s
		u := float64(s * unit)
		g, h := nearest(u), nearest(float64(2*float64(u*q)))
		pairs[i] = (g-int64(class^1)*2*g)<<32 + h
	}
	return sum
}

// nearest returns the integer nearest to 0 ≤ v < 2⁵¹.
func nearest(v float64) int64 {
	const ones = 1 << 52 // from here on a float64 has no fraction
	return int64(math.Float64bits(v+ones)) - int64(math.Float64bits(ones))
}
