package scenario

import "slices"

// pair is a position of an alignment. It contains an index into each of two lists, or -1 if a list has no entry at this
// position.
type pair struct{ want, got int }

// Costs of an alignment. A changed entry costs less than a missing entry plus an extra one, so that a frame with
// another label counts as one difference, not two.
const (
	gapCost    = 100
	never      = 1 << 30 // for two entries that must not be paired
	maxCells   = 1 << 20 // limit of one table; longer lists are aligned in windows
	windowSize = 64
)

// align pairs the entries of two lists of lengths n and m at the lowest total cost. cost returns 0 for equal entries
// and never for entries that must not be paired.
func align(n, m int, cost func(want, got int) int) []pair {
	head := 0
	for head < min(n, m) && cost(head, head) == 0 {
		head++
	}
	tail := 0
	for tail < min(n, m)-head && cost(n-1-tail, m-1-tail) == 0 {
		tail++
	}
	list := make([]pair, 0, max(n, m))
	for i := range head {
		list = append(list, pair{i, i})
	}
	list = append(list, alignWindows(part{head, n - tail}, part{head, m - tail}, cost)...)
	for i := range tail {
		list = append(list, pair{n - tail + i, m - tail + i})
	}
	return list
}

// part is a half-open range of a list.
type part struct{ from, to int }

func (s part) len() int { return s.to - s.from }

func (s part) first(n int) part { return part{s.from, min(s.from+n, s.to)} }

// alignWindows aligns long lists in windows, which bounds time and memory. It keeps only the first half of each window,
// because the best alignment near a window's end depends on the entries after it.
func alignWindows(want, got part, cost func(want, got int) int) (list []pair) {
	for want.len()*got.len() > maxCells {
		window := alignTable(want.first(windowSize), got.first(windowSize), cost)
		for _, p := range window[:len(window)/2] {
			list = append(list, p)
			want.from = max(want.from, p.want+1)
			got.from = max(got.from, p.got+1)
		}
	}
	return append(list, alignTable(want, got, cost)...)
}

// alignTable aligns two parts with a table of all pairs.
func alignTable(want, got part, cost func(want, got int) int) []pair {
	n, m := want.len(), got.len()
	const changed, missing, extra = 0, 1, 2
	moves := make([]byte, (n+1)*(m+1))
	costs, above := make([]int, m+1), make([]int, m+1)
	for i := range n + 1 {
		for j := range m + 1 {
			best, move := never, byte(changed)
			if i == 0 && j == 0 {
				best = 0
			}
			if i > 0 && j > 0 {
				if c := cost(want.from+i-1, got.from+j-1); c < never {
					best = above[j-1] + c
				}
			}
			if i > 0 && above[j]+gapCost < best {
				best, move = above[j]+gapCost, missing
			}
			if j > 0 && costs[j-1]+gapCost < best {
				best, move = costs[j-1]+gapCost, extra
			}
			costs[j], moves[i*(m+1)+j] = best, move
		}
		costs, above = above, costs
	}
	list := make([]pair, 0, max(n, m))
	for i, j := n, m; i > 0 || j > 0; {
		switch moves[i*(m+1)+j] {
		case missing:
			i--
			list = append(list, pair{want.from + i, -1})
		case extra:
			j--
			list = append(list, pair{-1, got.from + j})
		default:
			i, j = i-1, j-1
			list = append(list, pair{want.from + i, got.from + j})
		}
	}
	slices.Reverse(list)
	return list
}
