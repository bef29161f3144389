package analytics

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Bounds of a report.
const (
	MaxHours = 7 * 24 // points of an hourly report
	MaxDays  = 90     // points of a daily report
	maxNamed = 20     // names in a list; the others are counted as Other
)

// Report returns the usage of an app. Hourly reports have up to MaxHours points and begin within HourlyRetention;
// daily reports have up to MaxDays points. From and To are widened to whole hours or days, and To is at most the end
// of the current one. The caller must have checked that the project exists. The error may wrap ErrInvalid; its text
// is meant for the user.
func (s *Service) Report(ctx context.Context, account, project string, q Query) (Report, error) {
	f, err := queryRange(q, s.Now().UTC())
	if err != nil {
		return Report{}, err
	}
	counters, err := s.Store.AnalyticsCounters(ctx, account, project, f.span, f.from, f.to)
	if err != nil {
		return Report{}, err
	}
	before, err := s.Store.AnalyticsCounters(ctx, account, project, f.span, f.from-(f.to-f.from), f.from)
	if err != nil {
		return Report{}, err
	}
	r := f.report(project, counters)
	days := counters
	if f.span == SpanHour { // the installs of a day are not the sum of those of its hours
		if days, err = s.Store.AnalyticsCounters(ctx, account, project, SpanDay, f.from/24, (f.to+23)/24); err != nil {
			return Report{}, err
		}
	}
	for _, d := range days {
		if d.Kind == KindTotal && d.Name == TotalInstalls {
			r.PeakActiveInstalls = max(r.PeakActiveInstalls, d.N)
		}
	}
	past := Report{}
	for _, c := range before {
		past.addTotal(c)
	}
	r.Reading = reading(r, past, worstVersions(counters))
	return r, nil
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
		return timeRange{}, fmt.Errorf("%w: it ends before it begins", ErrInvalid)
	case from.After(now):
		return timeRange{}, fmt.Errorf("%w: it is in the future", ErrInvalid)
	case from.Unix() < 0:
		return timeRange{}, fmt.Errorf("%w: it begins before 1970", ErrInvalid)
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
		return timeRange{}, fmt.Errorf("%w: the interval is hour or day", ErrInvalid)
	}
	unit := int64(f.length() / time.Second)
	f.from, f.to = from.Unix()/unit, min((to.UnixNano()/1e9+unit-1)/unit, now.Unix()/unit+1)
	if q.From.IsZero() { // as many points as the range has hours or days, the current one being the last
		f.from = f.to - int64(to.Sub(from)/f.length())
	}
	switch {
	case f.to-f.from > most:
		return timeRange{}, fmt.Errorf("%w: by %s it is %d %ss at most", ErrInvalid, f.name(), most, f.name())
	case f.span == SpanHour && f.from < hourOf(now)-int64(HourlyRetention/time.Hour):
		return timeRange{}, fmt.Errorf("%w: counts by hour are kept for %d days, ask by day", ErrInvalid,
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

// report fills in everything but the peak and the reading.
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

// addTo adds a total of events to the matching sum, if there is one.
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

// mostFrequent returns the most frequent names, followed by the sum of the others as Other.
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

// worstVersions returns, for each error, the version in which it is most frequent.
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
