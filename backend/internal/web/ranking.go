package web

// ranking lists names with a number each, largest first, as a table whose rows are also bars.
type ranking struct {
	ID, Title, File string
	About           string // the scope of the list, if it differs from the scope of the page
	Sum, Of         string // the number for the whole range and its unit, or ""
	What, Count     string // headings of the columns
	None            string // text shown if there are no rows
	Rows            []rank
}

// rank is a row of a ranking. Share is the length of its bar in percent of the longest bar.
type rank struct {
	Label, N string
	Share    int
}

// shownRanks is the number of rows that are visible before the list is expanded.
const shownRanks = 8

// Top returns the rows that are always visible.
func (r ranking) Top() []rank { return r.Rows[:min(len(r.Rows), shownRanks)] }

// More returns the rows that are hidden at first.
func (r ranking) More() []rank { return r.Rows[len(r.Top()):] }

// share returns n in percent of most. It returns at least 1 if n is not 0, so that the bar is visible.
func share(n, most float64) int {
	if n <= 0 || most <= 0 {
		return 0
	}
	return max(1, int(n/most*100))
}
