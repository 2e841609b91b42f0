//go:build !amd64 || purego

package boost

func descend(node, kept, bins []uint8, s *splits, nodes int) {
	descendGo(node, kept, bins, s, nodes, 0)
}

func promising([]int64, float64, float64, float64, float64) bool { return true }

func bestCut(_ *cutGains, h []int64, cuts int, tg, th, unit float64) (gain float64, cut int) {
	return bestCutGo(h, cuts, tg, th, unit)
}

func pick(list []int32, node, kept []uint8, small *[1 << (MaxDepth - 1)]uint8) int {
	return pickGo(list, node, kept, small, 0, 0)
}

func add(h []int64, codes []uint16, rows []cells, pairs []int64) { addGo(h, codes, rows, pairs) }

func addByNode(h []int64, at *[1 << (MaxDepth - 1)]uint32, node []uint8, codes []uint16, spans []span, rows []int32,
	pairs []int64) {
	addByNodeGo(h, at, node, codes, spans, rows, pairs)
}

func sum4(x []float64, features []int32, thresholds, leaves []float64) float64 {
	return sum4Go(x, features, thresholds, leaves)
}

func weigh(z, weights []float64, pairs []int64, node, class []uint8, factor *[2 << MaxDepth]float64,
	unit float64) float64 {
	return weighGo(z, weights, pairs, node, class, factor, unit, 0)
}
