package analytics

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Limits on a report.
const (
	MaxHours = 7 * 24 // points of an hourly report
	MaxDays  = 90     // points of a daily report
	maxNamed = 20     // names in a list; all further names are summed as Other
)

// Report returns the usage of an app. Hourly reports have up to MaxHours points and begin within HourlyRetention;
// daily reports have up to MaxDays points. From and To are widened to whole hours or days, and To is at most the end
// of the current one. The caller must check that the project exists. The error may wrap ErrInvalid; its text can be
// shown to users.
func (s *Service) Report(ctx context.Context, account, project string, q Query) (Report, error) {
	f, err := queryRange(q, s.Now().UTC())
	if err != nil {
		return Report{}, err
	}
	if err := checkFilter(q.Filter); err != nil {
		return Report{}, err
	}
	read := func(span Span, from, to int64, filter Slice) (counters []Counter) {
		if err == nil {
			counters, err = s.Store.AnalyticsCounters(ctx, account, project, span, from, to, filter)
		}
		return counters
	}
	counters := read(f.span, f.from, f.to, Slice{})
	slices, sliceErr := s.Store.AnalyticsSlices(ctx, account, project, f.span, f.from, f.to)
	before := read(f.span, f.from-(f.to-f.from), f.from, q.Filter)
	days, shown := counters, counters
	if f.span == SpanHour { // an install active in several hours counts once per day
		days = read(SpanDay, f.from/24, (f.to+23)/24, Slice{})
	}
	filtered := q.Filter != Slice{}
	if filtered {
		shown = read(f.span, f.from, f.to, q.Filter)
	}
	if err := cmp.Or(err, sliceErr); err != nil {
		return Report{}, err
	}
	r := f.report(project, shown)
	r.addSlices(counters, slices, q.Filter)
	worst := map[string]Count{}
	if !filtered {
		r.PeakActiveInstalls, worst = peakInstalls(days), worstVersions(counters)
	}
	past := Report{}
	for _, c := range before {
		past.addTotal(c)
	}
	r.Reading = reading(r, past, worst)
	return r, nil
}

func peakInstalls(days []Counter) (peak int64) {
	for _, d := range days {
		if d.Kind == KindTotal && d.Name == TotalInstalls {
			peak = max(peak, d.N)
		}
	}
	return peak
}

// timeRange is a range of whole hours or days since 1970; to is exclusive.
type timeRange struct {
	span     Span
	from, to int64
}

func (f timeRange) length() time.Duration {
	if f.span == SpanDay {
		return 24 * time.Hour
	}
	return time.Hour
}

func (f timeRange) time(at int64) time.Time {
	return time.Unix(at*int64(f.length()/time.Second), 0).UTC()
}

func queryRange(q Query, now time.Time) (timeRange, error) {
	from, to := q.From.UTC(), q.To.UTC()
	if q.To.IsZero() {
		to = now
	}
	if q.From.IsZero() {
		from = to.Add(-7 * 24 * time.Hour)
	}
	switch {
	case !from.Before(to):
		return timeRange{}, fmt.Errorf("%w: the end is before the start", ErrInvalid)
	case from.After(now):
		return timeRange{}, fmt.Errorf("%w: the range is in the future", ErrInvalid)
	case from.Unix() < 0:
		return timeRange{}, fmt.Errorf("%w: the range begins before 1970", ErrInvalid)
	}
	var f timeRange
	most := int64(MaxHours)
	switch q.Interval {
	case Hour:
		f.span = SpanHour
	case Day:
		f.span, most = SpanDay, MaxDays
	case "":
		if to.Sub(from) > 48*time.Hour {
			f.span, most = SpanDay, MaxDays
		}
	default:
		return timeRange{}, fmt.Errorf("%w: the interval must be hour or day", ErrInvalid)
	}
	unit := int64(f.length() / time.Second)
	f.from, f.to = from.Unix()/unit, min((to.UnixNano()/1e9+unit-1)/unit, now.Unix()/unit+1)
	if q.From.IsZero() { // keep the number of points; the last one is the current hour or day
		f.from = f.to - int64(to.Sub(from)/f.length())
	}
	switch {
	case f.to-f.from > most:
		return timeRange{}, fmt.Errorf("%w: a report by %s covers at most %d %ss", ErrInvalid, f.name(), most, f.name())
	case f.span == SpanHour && f.from < hourOf(now)-int64(HourlyRetention/time.Hour):
		return timeRange{}, fmt.Errorf("%w: hourly counts are kept for %d days, use the interval day", ErrInvalid,
			HourlyRetention/(24*time.Hour))
	}
	return f, nil
}

func (f timeRange) name() string {
	if f.span == SpanDay {
		return Day
	}
	return Hour
}

// report fills in all fields except the peak and the reading.
func (f timeRange) report(project string, counters []Counter) Report {
	r := Report{
		Project: project, From: f.time(f.from), To: f.time(f.to), Interval: f.name(),
		Series: make([]Point, f.to-f.from), Approximate: []string{},
	}
	for i := range r.Series {
		r.Series[i].At = f.time(f.from + int64(i))
	}
	names := map[Kind][]Count{}
	for _, c := range counters {
		if c.Kind != KindTotal {
			names[c.Kind] = append(names[c.Kind], Count{c.Name, c.N})
			continue
		}
		r.addTotal(c)
		p := &r.Series[c.At-f.from]
		c.addTo(&p.Sessions, &p.Events, &p.Errors)
		if c.Name == TotalInstalls {
			p.ActiveInstalls += c.N
		}
	}
	r.ByEvent, r.ByError, r.ByVersion = mostFrequent(names[KindEvent]), mostFrequent(names[KindError]),
		mostFrequent(names[KindVersion])
	r.ByPlatform, r.ByDevice = mostFrequent(names[KindPlatform]), mostFrequent(names[KindDevice])
	if r.Estimated {
		r.Approximate = []string{"totals", "series", "events", "errors", "versions", "platforms", "devices"}
	}
	return r
}

func (r *Report) addTotal(c Counter) {
	if c.Kind != KindTotal {
		return
	}
	c.addTo(&r.Sessions, &r.Events, &r.Errors)
	if c.Name == TotalSampled {
		r.Estimated = true
	}
}

// addTo adds c.N to the sum that c.Name selects. It ignores other names.
func (c Counter) addTo(sessions, events, failures *int64) {
	switch c.Name {
	case Session:
		*sessions += c.N
	case Custom:
		*events += c.N
	case Failure:
		*failures += c.N
	}
}

// mostFrequent returns the most frequent names, followed by Other with the sum of the remaining ones.
func mostFrequent(all []Count) []Count {
	slices.SortFunc(all, func(a, b Count) int { return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Name, b.Name)) })
	out, rest := make([]Count, 0, min(len(all), maxNamed)+1), int64(0)
	for _, c := range all {
		if c.Name == Other || len(out) == maxNamed {
			rest += c.N
			continue
		}
		out = append(out, c)
	}
	if rest > 0 {
		out = append(out, Count{Other, rest})
	}
	return out
}

// worstVersions returns the version in which each error is most frequent.
func worstVersions(counters []Counter) map[string]Count {
	worst := map[string]Count{}
	for _, c := range counters {
		if c.Kind != KindErrorVersion {
			continue
		}
		kind, version, ok := strings.Cut(c.Name, " ")
		if was := worst[kind]; ok && (c.N > was.N || c.N == was.N && version < was.Name) {
			worst[kind] = Count{version, c.N}
		}
	}
	return worst
}
