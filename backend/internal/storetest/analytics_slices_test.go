package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/analytics"
	"github.com/service-dev/service/backend/internal/audit"
)

// sliceModel counts what a report contains about versions and platforms.
type sliceModel struct {
	filter                analytics.Slice
	uses                  map[string]*analytics.VersionUse
	ofPlatform, ofVersion map[string]int64 // versions on the filter's platform, platforms of the filter's version
	versions, platforms   map[string]bool
}

func newSliceModel(filter analytics.Slice) *sliceModel {
	return &sliceModel{filter: filter, uses: map[string]*analytics.VersionUse{}, ofPlatform: map[string]int64{},
		ofVersion: map[string]int64{}, versions: map[string]bool{}, platforms: map[string]bool{}}
}

func (m *sliceModel) hasVersion(e analytics.Event) bool {
	return m.filter.Version == "" || m.filter.Version == e.AppVersion
}

func (m *sliceModel) hasPlatform(e analytics.Event) bool {
	return m.filter.Platform == "" || m.filter.Platform == e.Platform
}

func (m *sliceModel) selects(e analytics.Event) bool { return m.hasVersion(e) && m.hasPlatform(e) }

func (m *sliceModel) take(e analytics.Event) {
	m.versions[e.AppVersion], m.platforms[e.Platform] = true, true
	if m.hasVersion(e) {
		m.ofVersion[e.Platform]++
	}
	if !m.hasPlatform(e) {
		return
	}
	m.ofPlatform[e.AppVersion]++
	use := m.uses[e.AppVersion]
	if use == nil {
		use = &analytics.VersionUse{Version: e.AppVersion}
		m.uses[e.AppVersion] = use
	}
	switch e.Type {
	case analytics.Session:
		use.Sessions++
	case analytics.Failure:
		use.Errors++
	}
}

func (m *sliceModel) fill(r *analytics.Report) {
	sorted := func(names map[string]bool) []string {
		all := []string{}
		for name := range names {
			if name != "" {
				all = append(all, name)
			}
		}
		slices.Sort(all)
		return all
	}
	r.Versions, r.Platforms, r.VersionUse = sorted(m.versions), sorted(m.platforms), []analytics.VersionUse{}
	for _, name := range r.Versions {
		if use := m.uses[name]; use != nil && use.Sessions+use.Errors > 0 {
			r.VersionUse = append([]analytics.VersionUse{*use}, r.VersionUse...)
		}
	}
}

// manyVersions tests that an app with many versions does not fill the store, and that its newest counts still add up.
func manyVersions(t *testing.T, f *analyticsFixture) {
	var events []analytics.Event
	for i := range 180 {
		e := f.event(fmt.Sprint("e-", i), 1)
		e.Type, e.Name = analytics.Failure, fmt.Sprintf("error-%03d", i)
		e.AppVersion, e.Platform = fmt.Sprintf("1.%d.0", i), []string{"ios", "android"}[i%2]
		events = append(events, e)
	}
	f.ingest(t, events[:90]...)
	f.ingest(t, events[90:]...)
	whole := must(f.store.AnalyticsSlices(t.Context(), "ada", f.app, analytics.SpanDay, 0, 1<<40))(t)
	counted, combinations := int64(0), map[analytics.Slice]bool{}
	for _, c := range whole {
		counted += c.N
		combinations[c.Slice] = true
	}
	if counted != 180 || len(combinations) > 60 {
		t.Errorf("%d errors are counted in %d slices, want 180 in at most 60", counted, len(combinations))
	}
	r := f.report(t, analytics.Query{Filter: analytics.Slice{Platform: "ios"}})
	if r.Errors != 90 || r.Unsliced || len(r.Versions) > 20 {
		t.Errorf("on iOS: %d errors, %d versions to choose from, unsliced %t; want 90, at most 20 and false", r.Errors,
			len(r.Versions), r.Unsliced)
	}
	want(t, "no such platform", errOf(f.Report(t.Context(), "ada", f.app,
		analytics.Query{Filter: analytics.Slice{Platform: "plan9"}})), analytics.ErrInvalid)
	want(t, "no such version", errOf(f.Report(t.Context(), "ada", f.app,
		analytics.Query{Filter: analytics.Slice{Version: "1.0'; --"}})), analytics.ErrInvalid)
	f.clock.pass(110 * 24 * time.Hour)
	want(t, "sweep", f.Sweep(t.Context()), nil)
	if left := must(f.store.AnalyticsSlices(t.Context(), "ada", f.app, analytics.SpanHour, 0, 1<<40))(t); len(left) > 0 {
		t.Errorf("%d hourly counters of slices remain after the sweep, want none", len(left))
	}
	if r := f.report(t, analytics.Query{From: f.clock.now().Add(-111 * 24 * time.Hour),
		To: f.clock.now().Add(-109 * 24 * time.Hour), Interval: analytics.Day,
		Filter: analytics.Slice{Version: "1.2.0"}}); r.Errors != 1 {
		t.Errorf("days of old: got %d errors of one version, want 1", r.Errors)
	}
}

// beforeFilters tests that a report states whether its range includes counts from a server without filters, and that a
// merge adds the counts of both projects.
func beforeFilters(t *testing.T, f *analyticsFixture) {
	event := func(id string) analytics.Event {
		e := f.event(id, 1)
		e.AppVersion = "1.0.0"
		return e
	}
	into := f.app
	f.ingest(t, event("a"))
	f.app = f.mint(t, "com.example.old")
	f.ingest(t, event("b"))
	want(t, "merge", f.projects.Merge(t.Context(), "ada", f.app, into, audit.Person()), nil)
	f.app = into
	q := analytics.Query{Filter: analytics.Slice{Version: "1.0.0"}}
	if r := f.report(t, q); r.Events != 2 || r.Unsliced {
		t.Errorf("after the merge: %d events, unsliced %t; want 2 and false", r.Events, r.Unsliced)
	}
	f.store.exec(`DELETE FROM analytics_slices`)
	if r := f.report(t, q); r.Events != 0 || !r.Unsliced {
		t.Errorf("without slices: %d events, unsliced %t; want 0 and true", r.Events, r.Unsliced)
	}
}
