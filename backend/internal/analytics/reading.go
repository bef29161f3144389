package analytics

import (
	"fmt"
	"strings"
)

// minForTrend is the smallest number of sessions for which a trend is reported.
const minForTrend = 20

// reading summarises a report in two to four sentences. past is the report of the preceding range of the same length,
// without names. worst maps each error to the version in which it is most frequent.
func reading(r, past Report, worst map[string]Count) string {
	all, before := r.Sessions+r.Events+r.Errors, past.Sessions+past.Events+past.Errors
	length := count(int64(len(r.Series)), r.Interval)
	these := "these " + length
	if len(r.Series) == 1 {
		these, length = "this "+r.Interval, r.Interval
	}
	if all == 0 {
		text := "Nothing was counted in " + these + "."
		if before > 0 {
			return text + fmt.Sprintf(" In the %s before there were %s.", length, count(past.Sessions, "session"))
		}
		return text + " The app has sent nothing yet, or it was not used."
	}
	about := ""
	if r.Estimated {
		about = "about "
	}
	parts := []string{
		fmt.Sprintf("In %s there were %s%s, %s and %s.", these, about,
			count(r.Sessions, "session"), count(r.Events, "event"), count(r.Errors, "error")),
		trend(r.Sessions, past.Sessions, all+before, length),
	}
	if r.PeakActiveInstalls > 0 {
		parts = append(parts, fmt.Sprintf("The busiest day had %s%s.", about, count(r.PeakActiveInstalls, "active install")))
	}
	if len(r.ByError) > 0 && r.ByError[0].Name != Other {
		e := r.ByError[0]
		text := fmt.Sprintf("The most frequent error is %s, %s of %s", e.Name, thousands(e.N), count(r.Errors, "error"))
		if v := worst[e.Name]; 2*v.N > e.N {
			text += fmt.Sprintf(", mostly in version %s", v.Name)
			if v.N == e.N {
				text = strings.Replace(text, "mostly", "all", 1)
			}
		}
		parts = append(parts, text+".")
	}
	return strings.Join(parts, " ")
}

// trend compares the sessions of a range with the sessions of the preceding range.
func trend(now, before, all int64, length string) string {
	switch {
	case all < minForTrend:
		return "That is too few sessions for a trend."
	case before == 0 && now == 0:
		return "There were no sessions in the " + length + " before either."
	case before == 0:
		return "There were no sessions in the " + length + " before."
	}
	change := (now - before) * 100 / before
	switch {
	case change > 1:
		return fmt.Sprintf("Sessions are up by %s %% from the %s before.", thousands(change), length)
	case change < -1:
		return fmt.Sprintf("Sessions are down by %s %% from the %s before.", thousands(-change), length)
	}
	return fmt.Sprintf("The number of sessions is about the same as in the %s before.", length)
}

func count(n int64, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return thousands(n) + " " + of + "s"
}

// thousands formats 1234567 as 1,234,567.
func thousands(n int64) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
