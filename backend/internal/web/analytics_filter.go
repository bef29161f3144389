package web

import (
	"errors"
	"net/url"
	"slices"

	"github.com/service-dev/service/backend/internal/analytics"
)

// analyticsFilter is the chosen version and platform, and the choices.
type analyticsFilter struct {
	analytics.Slice
	VersionChoices, PlatformChoices []choice
	Refused                         bool // the query named a version or platform that no event can have
	Incomplete                      bool // part of the range cannot be filtered
}

// On reports whether a filter is set.
func (f analyticsFilter) On() bool { return f.Slice != analytics.Slice{} }

// Offered reports whether there are any choices.
func (f analyticsFilter) Offered() bool {
	return f.On() || len(f.VersionChoices) > 1 || len(f.PlatformChoices) > 1
}

// Text describes the selection: "version 1.4.0 on iOS".
func (f analyticsFilter) Text() string {
	switch {
	case f.Platform == "":
		return "version " + f.Version
	case f.Version == "":
		return platformName(f.Platform)
	}
	return "version " + f.Version + " on " + platformName(f.Platform)
}

// Versions returns the heading of the comparison of versions if a filter is on.
func (f analyticsFilter) Versions() string {
	switch {
	case !f.On():
		return ""
	case f.Platform == "":
		return "All versions, to compare with."
	}
	return "All versions on " + platformName(f.Platform) + "."
}

// Platforms describes which platforms are compared if a filter is on.
func (f analyticsFilter) Platforms() string {
	switch {
	case !f.On():
		return ""
	case f.Version == "":
		return "All platforms, to compare with."
	}
	return "All platforms of version " + f.Version + "."
}

// values returns the query parameters of the filter.
func (f analyticsFilter) values() url.Values {
	v := url.Values{}
	if f.Version != "" {
		v.Set("version", f.Version)
	}
	if f.Platform != "" {
		v.Set("platform", f.Platform)
	}
	return v
}

// filteredReport returns the report of the range, filtered by ?version= and ?platform=. If they are invalid, it returns
// the whole report and sets Refused.
func (w *Web) filteredReport(c *call, span analyticsRange) (analytics.Report, analyticsFilter, error) {
	q := c.URL.Query()
	f := analyticsFilter{Slice: analytics.Slice{Version: q.Get("version"), Platform: q.Get("platform")}}
	report := func() (analytics.Report, error) {
		q := span.query(w.Now())
		q.Filter = f.Slice
		return w.Analytics.Report(c.Context(), c.account.ID, c.project.ID, q)
	}
	r, err := report()
	if errors.Is(err, analytics.ErrInvalid) && f.On() {
		f.Slice, f.Refused = analytics.Slice{}, true
		r, err = report()
	}
	if err != nil {
		return analytics.Report{}, analyticsFilter{}, err
	}
	f.Incomplete = f.On() && r.Unsliced
	slices.Reverse(r.Versions) // newest first
	f.VersionChoices = filterChoices("Every version", f.Version, r.Versions, versionName)
	f.PlatformChoices = filterChoices("Every platform", f.Platform, r.Platforms, platformName)
	return r, f, nil
}

// filterChoices lists the choice of everything, followed by the names. It includes the chosen name even if the range
// has no event with it.
func filterChoices(every, chosen string, names []string, label func(string) string) []choice {
	if chosen != "" && !slices.Contains(names, chosen) {
		names = append([]string{chosen}, names...)
	}
	all := []choice{{Label: every, On: chosen == ""}}
	for _, name := range names {
		all = append(all, choice{ID: name, Label: label(name), On: name == chosen})
	}
	return all
}
