package web

// ranking lists names with a number each, the largest first, as a table whose rows are also bars.
type ranking struct {
	ID, Title, File string
	About           string // what the list compares, if that is not everything that the page shows
	Sum, Of         string // the number of the whole range and what it counts, or ""
	What, Count     string // column heads
	None            string // text shown if there are no rows
	Rows            []rank
}

// rank is a row of a ranking. Share is the length of its bar in percent of the longest.
type rank struct {
	Label, N string
	Share    int
}

// shownRanks is how many rows are visible before the reader unfolds the others.
const shownRanks = 8

// Top returns the rows that are always visible.
func (r ranking) Top() []rank { return r.Rows[:min(len(r.Rows), shownRanks)] }

// More returns the rows to unfold.
func (r ranking) More() []rank { return r.Rows[len(r.Top()):] }

// share returns n in percent of most, and at least 1 if n is not 0, so that its bar is visible.
func share(n, most float64) int {
	if n <= 0 || most <= 0 {
		return 0
	}
	return max(1, int(n/most*100))
}
