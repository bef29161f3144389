package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/analytics"
	"github.com/service-dev/service/backend/internal/audit"
)

// twoReplicas tests that events sent through two processes concurrently count once.
func twoReplicas(t *testing.T, f *analyticsFixture) {
	replicas := []*analytics.Service{f.replica(1 << 40), f.replica(1 << 40)}
	var mu sync.Mutex
	accepted := 0
	var group sync.WaitGroup
	for n := range 16 {
		var events []analytics.Event
		for i := range 100 {
			events = append(events, f.event(fmt.Sprint("e-", (i+n*10)%200), i))
		}
		group.Go(func() {
			a, err := replicas[n%2].Ingest(t.Context(), "ada", f.app, events)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			accepted += a.Accepted
		})
	}
	group.Wait()
	r := f.report(t, analytics.Query{})
	if accepted != 200 || r.Events != 200 || r.PeakActiveInstalls != 100 {
		t.Errorf("got %d accepted, %d events, %d installs; want 200, 200, 100", accepted, r.Events, r.PeakActiveInstalls)
	}
}

// overQuota tests that beyond the quota one install in ten is counted, with a weight of ten, and that responses and
// reports mention it.
func overQuota(t *testing.T, f *analyticsFixture) {
	f.Service = f.replica(1000)
	send := func(from, n int) (a analytics.Accepted) {
		var events []analytics.Event
		for i := from; i < from+n; i++ {
			events = append(events, f.event(fmt.Sprint("e-", i), i))
		}
		return f.ingest(t, events...)
	}
	for i := range 2 {
		if a := send(i*500, 500); a.Accepted != 500 || a.SampleRate != 1 {
			t.Errorf("within the quota: got %+v, want all 500 accepted at sample rate 1", a)
		}
	}
	if r := f.report(t, analytics.Query{}); r.Estimated || len(r.Approximate) > 0 || r.Events != 1000 ||
		r.PeakActiveInstalls != 1000 {
		t.Errorf("within the quota: %d events, %d installs, approximate %v; want 1000, 1000 and none", r.Events,
			r.PeakActiveInstalls, r.Approximate)
	}
	kept := 0
	for i := range 40 {
		a := send(1000+i*500, 500)
		if a.SampleRate != 10 || a.Accepted+a.Sampled != 500 {
			t.Fatalf("over the quota: got %+v, want sample rate 10 and 500 accepted or sampled", a)
		}
		kept += a.Accepted
	}
	r := f.report(t, analytics.Query{})
	if want := int64(1000 + 10*kept); r.Events != want || r.PeakActiveInstalls != want || r.Events < 18_000 ||
		r.Events > 24_000 {
		t.Errorf("21,000 events of 21,000 installs: %d events, %d installs; want %d", r.Events, r.PeakActiveInstalls, want)
	}
	if !r.Estimated || len(r.Approximate) == 0 || !strings.Contains(r.Reading, "about") {
		t.Errorf("the report does not mention the sampling: %v, %v, %q", r.Estimated, r.Approximate, r.Reading)
	}
	// An install that was counted within the quota keeps a weight of one.
	send(0, 1)
	f.ingest(t, f.event("again", 1))
	if again := f.report(t, analytics.Query{}); again.PeakActiveInstalls != r.PeakActiveInstalls {
		t.Errorf("got %d installs, then %d; want the same", r.PeakActiveInstalls, again.PeakActiveInstalls)
	}
	f.clock.pass(24 * time.Hour)
	if a := send(90_000, 10); a.SampleRate != 1 || a.Accepted != 10 {
		t.Errorf("the next day: got %+v, want 10 accepted at sample rate 1", a)
	}
}

// manyNames tests that events with many different names do not fill the store.
func manyNames(t *testing.T, f *analyticsFixture) {
	for batch := range 3 {
		var events []analytics.Event
		for i := range 150 {
			e := f.event(fmt.Sprint("e-", batch, "-", i), 1)
			e.Name = fmt.Sprintf("name-%d-%03d", batch, i)
			events = append(events, e)
		}
		f.ingest(t, events...)
	}
	one := f.event("known", 1)
	one.Name = "name-0-000"
	f.ingest(t, one)
	r := f.report(t, analytics.Query{})
	if len(r.ByEvent) != 21 || r.ByEvent[20].Name != analytics.Other || r.ByEvent[20].N != 451-21 || r.Events != 451 {
		t.Errorf("got %d events as %v, want 451 under 20 names and Other", r.Events, r.ByEvent)
	}
	if r.ByEvent[0] != (analytics.Count{Name: "name-0-000", N: 2}) {
		t.Errorf("the most frequent name is not first: %v", r.ByEvent[0])
	}
	sums, err := f.store.AnalyticsCounters(t.Context(), "ada", f.app, analytics.SpanDay, 0, 1<<40,
		analytics.Slice{})
	if err != nil || len(sums) > 210 {
		t.Errorf("%d rows are stored for 450 names, want at most 210 (error %v)", len(sums), err)
	}
}

// oldGoes tests that IDs, hashes and salts are deleted after days and hourly sums after months, and that daily reports
// do not change.
func oldGoes(t *testing.T, f *analyticsFixture) {
	f.ingest(t, f.event("a", 1), f.event("b", 2))
	first := f.clock.now()
	salt, err := f.store.AnalyticsSalt(t.Context(), first.Unix()/86400, []byte("new"))
	if err != nil || string(salt) == "new" {
		t.Fatalf("the day has no salt (error %v)", err)
	}
	f.clock.pass(71 * time.Hour)
	want(t, "sweep", f.Sweep(t.Context()), nil)
	again := f.event("a", 1)
	again.At = first
	if a := f.ingest(t, again); a.Duplicates != 1 {
		t.Errorf("an event sent again in time: got %+v, want a duplicate", a)
	}
	f.clock.pass(5 * 24 * time.Hour)
	want(t, "sweep", f.Sweep(t.Context()), nil)
	if a := f.ingest(t, again); a.Late != 1 {
		t.Errorf("an event sent again too late: got %+v, want it late", a)
	}
	if salt, err := f.store.AnalyticsSalt(t.Context(), first.Unix()/86400, []byte("new")); err != nil ||
		string(salt) != "new" {
		t.Errorf("the salt of the day is still stored (error %v)", err)
	}
	f.clock.pass(60 * 24 * time.Hour)
	want(t, "sweep", f.Sweep(t.Context()), nil)
	byHour := analytics.Query{From: first.Add(-time.Hour), To: first.Add(time.Hour), Interval: analytics.Hour}
	if r := f.report(t, byHour); r.Events != 2 || r.PeakActiveInstalls != 2 {
		t.Errorf("hours of two months ago: got %+v, want 2 events of 2 installs", r)
	}
	f.clock.pass(60 * 24 * time.Hour)
	want(t, "sweep", f.Sweep(t.Context()), nil)
	if sums, err := f.store.AnalyticsCounters(t.Context(), "ada", f.app, analytics.SpanHour, 0, 1<<40,
		analytics.Slice{}); err != nil || len(sums) != 0 {
		t.Errorf("%d hourly sums remain (error %v), want none", len(sums), err)
	}
	want(t, "hours that were deleted", errOf(f.Report(t.Context(), "ada", f.app, byHour)), analytics.ErrInvalid)
	if r := f.report(t, analytics.Query{From: first.Add(-24 * time.Hour), To: first.Add(24 * time.Hour),
		Interval: analytics.Day}); r.Events != 2 || r.PeakActiveInstalls != 2 {
		t.Errorf("days of four months ago: got %+v, want 2 events of 2 installs", r)
	}
}

func endsOfTime(t *testing.T, f *analyticsFixture) {
	at := func(id string, d time.Duration) analytics.Event {
		e := f.event(id, 1)
		e.At = e.At.Add(d)
		return e
	}
	a := f.ingest(t, at("now", 0), at("ahead", 10*time.Minute), at("future", 10*time.Minute+time.Millisecond),
		at("oldest", -72*time.Hour), at("older", -72*time.Hour-time.Millisecond), at("ahead", 10*time.Minute))
	if a.Accepted != 3 || a.Duplicates != 1 || a.Late != 1 || a.Rejected != 1 || a.Problems[0].Index != 2 {
		t.Errorf("got %+v, want 3 accepted, 1 duplicate, 1 late and 1 rejected at index 2", a)
	}
	// An event from the future counts when it arrives, and only once even if it is sent again on the next day.
	f.clock.pass(21 * time.Hour)
	if a := f.ingest(t, at("ahead", -21*time.Hour+10*time.Minute)); a.Duplicates != 1 {
		t.Errorf("the event sent again: got %+v, want a duplicate", a)
	}
	now := f.clock.now()
	for name, q := range map[string]analytics.Query{
		"backwards":      {From: now, To: now.Add(-time.Hour)},
		"in the future":  {From: now.Add(time.Hour), To: now.Add(2 * time.Hour)},
		"too many days":  {From: now.Add(-91 * 24 * time.Hour), To: now},
		"too many hours": {From: now.Add(-8 * 24 * time.Hour), To: now, Interval: analytics.Hour},
		"weeks":          {Interval: "week"},
		"before 1970":    {From: time.Unix(-1, 0), To: now},
	} {
		want(t, name, errOf(f.Report(t.Context(), "ada", f.app, q)), analytics.ErrInvalid)
	}
	if r := f.report(t, analytics.Query{}); len(r.Series) != 7 || r.Interval != analytics.Day {
		t.Errorf("by default the report has %d %ss, want 7 days", len(r.Series), r.Interval)
	}
	if r := f.report(t, analytics.Query{From: now.Add(-23 * time.Hour)}); len(r.Series) != 24 ||
		r.Interval != analytics.Hour {
		t.Errorf("a report from 23 hours ago has %d %ss, want 24 hours", len(r.Series), r.Interval)
	}
	if r, err := f.Report(t.Context(), "bob", f.app, analytics.Query{}); err != nil || r.Events != 0 {
		t.Errorf("another account's report counts %d events (error %v), want none", r.Events, err)
	}
}

// mergedCounts tests that a merge adds sums, and counts installs and events of both projects once.
func mergedCounts(t *testing.T, f *analyticsFixture) {
	into := f.app
	f.ingest(t, f.event("a", 1), f.event("b", 2))
	f.app = f.mint(t, "com.example.old")
	f.ingest(t, f.event("c", 2), f.event("d", 3))
	want(t, "merge", f.projects.Merge(t.Context(), "ada", f.app, into, audit.Person()), nil)
	f.app = into
	r := f.report(t, analytics.Query{From: f.clock.now().Add(-3 * time.Hour)})
	last := r.Series[len(r.Series)-1]
	if r.Events != 4 || r.PeakActiveInstalls != 3 || last.ActiveInstalls != 3 || r.ByEvent[0].N != 4 {
		t.Errorf("the merged report: got %+v, want 4 events of 3 installs", r)
	}
	if a := f.ingest(t, f.event("c", 2), f.event("e", 3)); a.Duplicates != 1 || a.Accepted != 1 {
		t.Errorf("events after the merge: got %+v, want 1 duplicate and 1 accepted", a)
	}
	fatal(t, f.projects.Delete(t.Context(), "ada", into, audit.Person()))
	if _, err := f.Ingest(t.Context(), "ada", into, []analytics.Event{f.event("z", 1)}); !errors.Is(err,
		analytics.ErrNoProject) {
		t.Errorf("events for a deleted project: got %v, want ErrNoProject", err)
	}
}
