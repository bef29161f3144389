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
	MaxHours = 7 * 24 // points of a report by hour
	MaxDays  = 90     // points of a report by day
	maxTold  = 20     // names in a list; the rest is Other
)

// Report tells what an app did. Reports by hour have up to MaxHours points and begin within KeptHours, those by day up to
// MaxDays; From and To are widened to whole hours or days, and To is no later than the end of the present one. The
// project is not looked up: the caller has. The error may wrap ErrInvalid, with words.
func (s *Service) Report(ctx context.Context, account, project string, q Query) (Report, error) {
	f, err := frameOf(q, s.Now().UTC())
	if err != nil {
		return Report{}, err
	}
	sums, err := s.Store.AnalyticsSums(ctx, account, project, f.span, f.from, f.to)
	if err != nil {
		return Report{}, err
	}
	before, err := s.Store.AnalyticsSums(ctx, account, project, f.span, f.from-(f.to-f.from), f.from)
	if err != nil {
		return Report{}, err
	}
	r := f.report(project, sums)
	days := sums
	if f.span == OfHour { // how many were active on a day is no sum of hours
		if days, err = s.Store.AnalyticsSums(ctx, account, project, OfDay, f.from/24, (f.to+23)/24); err != nil {
			return Report{}, err
		}
	}
	for _, d := range days {
		if d.Kind == KindTotal && d.Name == TotalInstalls {
			r.PeakActiveInstalls = max(r.PeakActiveInstalls, d.N)
		}
	}
	past := Report{}
	for _, sum := range before {
		past.total(sum)
	}
	r.Reading = reading(r, past, failing(sums))
	return r, nil
}

// frame is a range in whole hours or days since 1970; to is behind the last.
type frame struct {
	span     Span
	from, to int64
}

func (f frame) length() time.Duration {
	if f.span == OfDay {
		return 24 * time.Hour
	}
	return time.Hour
}

func (f frame) time(at int64) time.Time { return time.Unix(at*int64(f.length()/time.Second), 0).UTC() }

func frameOf(q Query, now time.Time) (frame, error) {
	from, to := q.From.UTC(), q.To.UTC()
	if q.To.IsZero() {
		to = now
	}
	if q.From.IsZero() {
		from = to.Add(-7 * 24 * time.Hour)
	}
	switch {
	case !from.Before(to):
		return frame{}, fmt.Errorf("%w: it ends before it begins", ErrInvalid)
	case from.After(now):
		return frame{}, fmt.Errorf("%w: it is in the future", ErrInvalid)
	case from.Unix() < 0:
		return frame{}, fmt.Errorf("%w: it begins before 1970", ErrInvalid)
	}
	var f frame
	most := int64(MaxHours)
	switch q.Interval {
	case Hour:
		f.span = OfHour
	case Day:
		f.span, most = OfDay, MaxDays
	case "":
		if to.Sub(from) > 48*time.Hour {
			f.span, most = OfDay, MaxDays
		}
	default:
		return frame{}, fmt.Errorf("%w: the interval is hour or day", ErrInvalid)
	}
	unit := int64(f.length() / time.Second)
	f.from, f.to = from.Unix()/unit, min((to.UnixNano()/1e9+unit-1)/unit, now.Unix()/unit+1)
	if q.From.IsZero() { // as many points as the range has hours or days, the present one being the last
		f.from = f.to - int64(to.Sub(from)/f.length())
	}
	switch {
	case f.to-f.from > most:
		return frame{}, fmt.Errorf("%w: by %s it is %d %ss at most", ErrInvalid, f.name(), most, f.name())
	case f.span == OfHour && f.from < hourOf(now)-int64(KeptHours/time.Hour):
		return frame{}, fmt.Errorf("%w: counts by hour are kept for %d days, ask by day", ErrInvalid, KeptHours/(24*time.Hour))
	}
	return f, nil
}

func (f frame) name() string {
	if f.span == OfDay {
		return Day
	}
	return Hour
}

// report fills in everything but the peak and the reading.
func (f frame) report(project string, sums []Sum) Report {
	r := Report{Project: project, From: f.time(f.from), To: f.time(f.to), Interval: f.name(), Series: make([]Point, f.to-f.from), Approximate: []string{}}
	for i := range r.Series {
		r.Series[i].At = f.time(f.from + int64(i))
	}
	names := map[Kind][]Count{}
	for _, sum := range sums {
		if sum.Kind != KindTotal {
			names[sum.Kind] = append(names[sum.Kind], Count{sum.Name, sum.N})
			continue
		}
		r.total(sum)
		p := &r.Series[sum.At-f.from]
		switch sum.Name {
		case Session:
			p.Sessions += sum.N
		case Custom:
			p.Events += sum.N
		case Failure:
			p.Errors += sum.N
		case TotalInstalls:
			p.ActiveInstalls += sum.N
		}
	}
	r.ByEvent, r.ByError, r.ByVersion = most(names[KindEvent]), most(names[KindError]), most(names[KindVersion])
	r.ByPlatform, r.ByDevice = most(names[KindPlatform]), most(names[KindDevice])
	if r.Estimated {
		r.Approximate = []string{"totals", "series", "events", "errors", "versions", "platforms", "devices"}
	}
	return r
}

func (r *Report) total(sum Sum) {
	if sum.Kind != KindTotal {
		return
	}
	switch sum.Name {
	case Session:
		r.Sessions += sum.N
	case Custom:
		r.Events += sum.N
	case Failure:
		r.Errors += sum.N
	case TotalSampled:
		r.Estimated = true
	}
}

// most gives the most frequent, and the rest as Other, which stands last.
func most(all []Count) []Count {
	slices.SortFunc(all, func(a, b Count) int { return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Name, b.Name)) })
	out, rest := make([]Count, 0, min(len(all), maxTold)+1), int64(0)
	for _, c := range all {
		if c.Name == Other || len(out) == maxTold {
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

// failing gives, of the most frequent error, the version that has most of it.
func failing(sums []Sum) map[string]Count {
	worst := map[string]Count{}
	for _, sum := range sums {
		if sum.Kind != KindFailing {
			continue
		}
		kind, version, ok := strings.Cut(sum.Name, " ")
		if was := worst[kind]; ok && (sum.N > was.N || sum.N == was.N && version < was.Name) {
			worst[kind] = Count{version, sum.N}
		}
	}
	return worst
}
