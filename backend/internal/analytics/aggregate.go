package analytics

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
)

// Span is the length of a counting period.
type Span int

// Spans of counters. The numbers are stored in the database.
const (
	SpanHour Span = 0
	SpanDay  Span = 1
)

// Kind is the category of a counter. The numbers are stored in the database.
type Kind int

// Kinds of counters. Each comment describes the names of its counters.
const (
	KindTotal        Kind = 0 // total; its names are Session, Custom, Failure and the constants below
	KindEvent        Kind = 1 // events by name
	KindError        Kind = 2 // errors by name
	KindVersion      Kind = 3 // events of every type by app version
	KindPlatform     Kind = 4
	KindDevice       Kind = 5
	KindErrorVersion Kind = 6 // errors by "<name> <version>"
)

// Additional names for counters of KindTotal.
const (
	TotalInstalls = "installs" // active installs
	TotalSampled  = "sampled"  // events that were sampled, so the other counts are scaled up
)

// Other is the name under which all names beyond maxNames are counted.
const Other = "other"

const (
	maxNames      = 200 // names of one kind in one period
	maxSlices     = 50  // combinations of a version and a platform in one period; see bounds.slice
	maxSliceNames = 400 // names of one kind in one period, in all slices together
	sampleRate    = 10
)

// Period is one hour or day, UTC.
type Period struct {
	Span Span
	At   int64 // hours or days since 1970-01-01
}

// Slice is the part of an app's usage that comes from one version on one platform. An empty field means that the events
// did not contain it. The zero Slice covers all usage of the app. Slices have counters of KindTotal (without
// TotalInstalls), KindEvent, KindError and KindDevice.
type Slice struct{ Version, Platform string }

// CounterKey identifies a counter of a project.
type CounterKey struct {
	Period
	Kind  Kind
	Name  string
	Slice Slice
}

// Counter is the value of one counter.
type Counter struct {
	CounterKey
	N int64
}

// InstallDay identifies an install on one day.
type InstallDay struct {
	Day  int64 // days since 1970-01-01
	Hash Install
}

// ActiveHours records in which hours of a day an install was active.
type ActiveHours struct {
	Hours  int64 // one bit per hour
	Weight int64 // number of installs this one represents; more than 1 if sampled
}

// aggregate counts batches of one project. It counts each new event once for its hour and once for its day, and
// returns the outcome of each batch. used is the number of the project's events that were already counted on the
// arrival day.
func aggregate(ctx context.Context, rows *projectRows, batches []Batch, used int64) ([]Outcome, error) {
	a := newAggregator(batches, used)
	fresh, err := rows.insertSeen(ctx, a.ids)
	if err != nil {
		return nil, err
	}
	a.count(fresh)
	if len(a.active) == 0 {
		return a.outcomes, nil
	}
	stored, err := rows.activeHours(ctx, slices.Collect(maps.Keys(a.active)))
	if err != nil {
		return nil, err
	}
	if err := rows.setActiveHours(ctx, a.mergeActive(stored)); err != nil {
		return nil, err
	}
	return a.outcomes, rows.addToCounters(ctx, sortedCounters(a.deltas), boundedDeltas)
}

// aggregator collects the changes of one Aggregate call.
type aggregator struct {
	rate       int64
	outcomes   []Outcome
	candidates []candidate // sorted by key, without duplicates
	ids        []Key       // IDs of the candidates
	deltas     map[CounterKey]int64
	active     map[InstallDay]ActiveHours
}

// candidate is an event that is counted unless its ID is already stored.
type candidate struct {
	event *AnonymousEvent
	batch int
}

// newAggregator returns an aggregator for the events that are neither sampled out nor duplicates within the batches.
func newAggregator(batches []Batch, used int64) *aggregator {
	a := &aggregator{
		rate: 1, outcomes: make([]Outcome, len(batches)), deltas: map[CounterKey]int64{},
		active: map[InstallDay]ActiveHours{},
	}
	if used >= batches[0].Quota {
		a.rate = sampleRate
	}
	for i := range batches {
		a.outcomes[i].SampleRate = int(a.rate)
		for j := range batches[i].Events {
			e := &batches[i].Events[j]
			if a.rate > 1 && e.Install[15]%sampleRate != 0 {
				a.outcomes[i].Sampled++
				continue
			}
			a.candidates = append(a.candidates, candidate{e, i})
		}
	}
	slices.SortStableFunc(a.candidates, func(x, y candidate) int { return bytes.Compare(x.event.Key[:], y.event.Key[:]) })
	unique := a.candidates[:0]
	for i, c := range a.candidates {
		if i > 0 && c.event.Key == a.ids[len(a.ids)-1] {
			a.outcomes[c.batch].Duplicates++
			continue
		}
		unique, a.ids = append(unique, c), append(a.ids, c.event.Key)
	}
	a.candidates = unique
	return a
}

// count counts the candidates whose IDs are fresh. The others are duplicates of stored events.
func (a *aggregator) count(fresh []bool) {
	alike := map[Traits]int64{}
	for i, c := range a.candidates {
		if !fresh[i] {
			a.outcomes[c.batch].Duplicates++
			continue
		}
		a.outcomes[c.batch].Accepted++
		e := c.event
		alike[e.Traits] += a.rate
		install := InstallDay{Day: e.Hour / 24, Hash: e.Install}
		a.active[install] = ActiveHours{Hours: a.active[install].Hours | 1<<(e.Hour%24), Weight: a.rate}
	}
	for e, n := range alike {
		a.add(Period{SpanHour, e.Hour}, e, n)
		a.add(Period{SpanDay, e.Hour / 24}, e, n)
	}
}

// add adds n events to the counters of a period.
func (a *aggregator) add(period Period, e Traits, n int64) {
	slice := Slice{e.Version, e.Platform}
	whole := func(kind Kind, name string) {
		if name != "" {
			a.deltas[CounterKey{Period: period, Kind: kind, Name: name}] += n
		}
	}
	add := func(kind Kind, name string) {
		whole(kind, name)
		if name != "" && slice != (Slice{}) {
			a.deltas[CounterKey{period, kind, name, slice}] += n
		}
	}
	add(KindTotal, e.Type)
	if a.rate > 1 {
		add(KindTotal, TotalSampled)
	}
	switch e.Type {
	case Custom:
		add(KindEvent, e.Name)
	case Failure:
		add(KindError, e.Name)
		if e.Version != "" {
			whole(KindErrorVersion, e.Name+" "+e.Version)
		}
	}
	add(KindDevice, e.Device)
	whole(KindVersion, e.Version)
	whole(KindPlatform, e.Platform)
}

// mergeActive returns the new and changed rows, and adds their changes to the counters.
func (a *aggregator) mergeActive(stored map[InstallDay]ActiveHours) map[InstallDay]ActiveHours {
	changed := map[InstallDay]ActiveHours{}
	for install, now := range a.active {
		was := stored[install]
		next := ActiveHours{Hours: was.Hours | now.Hours, Weight: now.Weight}
		if was.Weight > 0 {
			// An install that was counted before sampling began represents only itself.
			next.Weight = min(was.Weight, now.Weight)
		}
		if next == was {
			continue
		}
		changed[install] = next
		a.addInstalls(Period{SpanDay, install.Day}, next.Weight-was.Weight)
		for h := range int64(24) {
			before, after := was.Hours>>h&1, next.Hours>>h&1
			a.addInstalls(Period{SpanHour, install.Day*24 + h}, after*next.Weight-before*was.Weight)
		}
	}
	return changed
}

func (a *aggregator) addInstalls(period Period, n int64) {
	if n != 0 {
		a.deltas[CounterKey{Period: period, Kind: KindTotal, Name: TotalInstalls}] += n
	}
}

// boundedDeltas returns the deltas to add to counters. known are the keys of all counters of the same periods. Once a
// kind has the maximum number of names in a period, further names are counted as Other.
func boundedDeltas(deltas []Counter, known []CounterKey) []Counter {
	b := newBounds(known)
	bounded := map[CounterKey]int64{}
	for _, c := range deltas {
		bounded[b.fit(c.CounterKey)] += c.N
	}
	return sortedCounters(bounded)
}

// sortedCounters returns the non-zero deltas in a fixed order, so that every replica keeps the same names.
func sortedCounters(deltas map[CounterKey]int64) []Counter {
	counters := make([]Counter, 0, len(deltas))
	for key, n := range deltas {
		if n != 0 {
			counters = append(counters, Counter{key, n})
		}
	}
	slices.SortFunc(counters, func(a, b Counter) int {
		return cmp.Or(cmp.Compare(a.Span, b.Span), cmp.Compare(a.At, b.At), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.Slice.Version, b.Slice.Version),
			cmp.Compare(a.Slice.Platform, b.Slice.Platform))
	})
	return counters
}
