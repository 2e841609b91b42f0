//go:build !purego

package boost

import "hamlet/algos/internal/cpu"

// cpu.AVX2 chooses the kernels of kernel_amd64.s whose names end in AVX2. All give the bits of
// kernel_generic.go.

//go:noescape
func descendAVX2(node, kept, bins *uint8, s *splits, nodes, n int)

func descend(node, kept, bins []uint8, s *splits, nodes int) {
	n := len(node) &^ 31
	if !cpu.AVX2 || n == 0 {
		descendGo(node, kept, bins, s, nodes, 0)
		return
	}
	_ = kept[n-1]
	for _, at := range s.column[:nodes] {
		_ = bins[at : at+n]
	}
	descendAVX2(&node[0], &kept[0], &bins[0], s, nodes, n)
	descendGo(node, kept, bins, s, nodes, n)
}

//go:noescape
func promisingAVX2(h *int64, n int, tg, th, unit, bound float64) bool

func promising(h []int64, tg, th, unit, bound float64) bool {
	if !cpu.AVX2 || len(h)&3 != 0 || len(h) == 0 {
		return true
	}
	return promisingAVX2(&h[0], len(h), tg, th, unit, bound)
}

//go:noescape
func bestCutAVX2(gains *cutGains, h *int64, cuts int, tg, th, unit float64) (gain float64, cut int)

func bestCut(gains *cutGains, h []int64, cuts int, tg, th, unit float64) (gain float64, cut int) {
	if !cpu.AVX2 || len(h)&3 != 0 || cuts < 1 || cuts >= len(h) || len(h) > MaxBins+1 {
		return bestCutGo(h, cuts, tg, th, unit)
	}
	return bestCutAVX2(gains, &h[0], cuts, tg, th, unit)
}

//go:noescape
func pickAVX2(list *int32, node, kept *uint8, small *[1 << (MaxDepth - 1)]uint8, n int) int

func pick(list []int32, node, kept []uint8, small *[1 << (MaxDepth - 1)]uint8) int {
	n := len(node) &^ 31
	if !cpu.AVX2 || n == 0 {
		return pickGo(list, node, kept, small, 0, 0)
	}
	_, _ = list[len(node)-1], kept[len(node)-1]
	return pickGo(list, node, kept, small, n, pickAVX2(&list[0], &node[0], &kept[0], small, n))
}

// atOnce is how many rows a kernel adds in a call: Go cannot stop assembly, and a collection of garbage waits for it.
const atOnce = 1024

//go:noescape
func addASM(h *int64, codes *uint16, rows *cells, n int, pairs *int64)

func add(h []int64, codes []uint16, rows []cells, pairs []int64) {
	for ; len(rows) > 0; rows = rows[min(len(rows), atOnce):] {
		addASM(&h[0], &codes[0], &rows[0], min(len(rows), atOnce), &pairs[0])
	}
}

//go:noescape
func addByNodeASM(h *int64, at *[1 << (MaxDepth - 1)]uint32, node *uint8, codes *uint16, spans *span, rows *int32,
	n int, pairs *int64)

func addByNode(h []int64, at *[1 << (MaxDepth - 1)]uint32, node []uint8, codes []uint16, spans []span, rows []int32,
	pairs []int64) {
	for ; len(rows) > 0 && len(codes) > 0; rows = rows[min(len(rows), atOnce):] {
		addByNodeASM(&h[0], at, &node[0], &codes[0], &spans[0], &rows[0], min(len(rows), atOnce), &pairs[0])
	}
}

//go:noescape
func sum4ASM(x *float64, features *int32, thresholds, leaves *float64, trees int) float64

func sum4(x []float64, features []int32, thresholds, leaves []float64) float64 {
	trees := len(leaves) / 16
	if trees == 0 {
		return 0
	}
	_, _ = features[15*trees-1], thresholds[15*trees-1]
	return sum4ASM(&x[0], &features[0], &thresholds[0], &leaves[0], trees)
}

//go:noescape
func weighAVX2(z, weights *float64, pairs *int64, node, class *uint8, factor *[2 << MaxDepth]float64,
	most, unit, sum float64, n int) float64

func weigh(z, weights []float64, pairs []int64, node, class []uint8, factor *[2 << MaxDepth]float64,
	unit float64) float64 {
	n := len(z) &^ 3
	if !cpu.AVX2 || n == 0 {
		return weighGo(z, weights, pairs, node, class, factor, unit, 0)
	}
	_, _, _, _ = weights[n-1], pairs[n-1], node[n-1], class[n-1]
	sum := weighAVX2(&z[0], &weights[0], &pairs[0], &node[0], &class[0], factor, largestZ, unit, 0, n)
	return weighGo(z[n:], weights[n:], pairs[n:], node[n:], class[n:], factor, unit, sum)
}
