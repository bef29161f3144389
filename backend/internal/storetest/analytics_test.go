package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/service-dev/service/backend/internal/analytics"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/projects"
)

var analyticsTests = map[string]func(*testing.T, *analyticsFixture){
	"a thousand installs":      thousandInstalls,
	"two replicas at once":     twoReplicas,
	"over the quota":           overQuota,
	"more names than fit":      manyNames,
	"what is old goes":         oldGoes,
	"ends of time":             endsOfTime,
	"a project that is gone":   noProject,
	"projects that are merged": mergedCounts,
	"more versions than fit":   manyVersions,
	"before filters existed":   beforeFilters,
}

func TestAnalytics(t *testing.T) {
	eachEngine(t, analyticsTests, func(t *testing.T, db *database, test func(*testing.T, *analyticsFixture)) {
		f := &analyticsFixture{store: db, clock: newClock()}
		for _, id := range []string{"ada", "bob"} {
			addAccount(t, db, f.clock, id, id+"@example.org")
		}
		f.projects = &projects.Service{Store: db.projectsStore, Hasher: hash, Now: f.clock.now}
		f.app = f.mint(t, "com.example.app")
		f.Service = f.replica(1 << 40)
		test(t, f)
	})
}

type analyticsFixture struct {
	*analytics.Service
	store    *database
	clock    *clock
	projects *projects.Service
	app      string
}

func (f *analyticsFixture) mint(t *testing.T, app string) string {
	t.Helper()
	must(f.projects.MintKey(t.Context(), "ada", app, "test", audit.Person()))(t)
	return app
}

// replica is another process on the same store.
func (f *analyticsFixture) replica(quota int) *analytics.Service {
	return analytics.New(analytics.Options{Store: f.store.analyticsStore, Hasher: hash, Quota: quota, Now: f.clock.now})
}

func (f *analyticsFixture) ingest(t *testing.T, events ...analytics.Event) analytics.Accepted {
	t.Helper()
	a := must(f.Ingest(t.Context(), "ada", f.app, events))(t)
	if n := a.Accepted + a.Duplicates + a.Late + a.Sampled + a.Rejected; n != len(events) {
		t.Fatalf("the result accounts for %d of %d events, want all: %+v", n, len(events), a)
	}
	return a
}

func (f *analyticsFixture) report(t *testing.T, q analytics.Query) analytics.Report {
	t.Helper()
	return must(f.Report(t.Context(), "ada", f.app, q))(t)
}

func (f *analyticsFixture) event(id string, install int) analytics.Event {
	return analytics.Event{ID: id, Type: analytics.Custom, Name: "photo.taken", At: f.clock.now(),
		InstallID: fmt.Sprintf("install-%04d", install)}
}

// eventModel counts in memory. Unlike the service, it keeps every event.
type eventModel struct {
	seen map[string]bool
	at   []analytics.Event
}

func (m *eventModel) take(e analytics.Event, now time.Time) {
	if !m.seen[e.ID] && !e.At.Before(now.Add(-72*time.Hour)) {
		m.seen[e.ID] = true
		m.at = append(m.at, e)
	}
}

func (m *eventModel) report(
	project, interval string, from, to time.Time, filter analytics.Slice,
) analytics.Report {
	r := analytics.Report{Project: project, From: from, To: to, Interval: interval, Approximate: []string{}}
	slices := newSliceModel(filter)
	step := 24 * time.Hour
	if interval == analytics.Hour {
		step = time.Hour
	}
	active, busy := make([]map[string]bool, to.Sub(from)/step), map[string]map[string]bool{}
	for at := from; at.Before(to); at = at.Add(step) {
		active[len(r.Series)] = map[string]bool{}
		r.Series = append(r.Series, analytics.Point{At: at})
	}
	lists := map[*[]analytics.Count]map[string]int64{&r.ByEvent: {}, &r.ByError: {}, &r.ByVersion: {}, &r.ByPlatform: {},
		&r.ByDevice: {}}
	for _, e := range m.at {
		if day := e.At.Format(time.DateOnly); !e.At.Before(from.Truncate(24*time.Hour)) && e.At.Before(to) &&
			filter == (analytics.Slice{}) {
			if busy[day] == nil {
				busy[day] = map[string]bool{}
			}
			busy[day][e.InstallID] = true
			r.PeakActiveInstalls = max(r.PeakActiveInstalls, int64(len(busy[day])))
		}
		if e.At.Before(from) || !e.At.Before(to) {
			continue
		}
		slices.take(e)
		if !slices.selects(e) {
			continue
		}
		i := e.At.Sub(from) / step
		if filter == (analytics.Slice{}) { // installs are counted only for the whole app
			active[i][e.InstallID] = true
			r.Series[i].ActiveInstalls = int64(len(active[i]))
		}
		switch e.Type {
		case analytics.Session:
			r.Sessions++
			r.Series[i].Sessions++
		case analytics.Custom:
			r.Events++
			r.Series[i].Events++
			lists[&r.ByEvent][e.Name]++
		case analytics.Failure:
			r.Errors++
			r.Series[i].Errors++
			lists[&r.ByError][e.Name]++
		}
		lists[&r.ByDevice][e.DeviceModel]++
	}
	lists[&r.ByVersion], lists[&r.ByPlatform] = slices.ofPlatform, slices.ofVersion
	slices.fill(&r)
	for list, counts := range lists {
		*list = ranked(counts)
	}
	return r
}

func ranked(counts map[string]int64) []analytics.Count {
	all := make([]analytics.Count, 0, len(counts))
	for name, n := range counts {
		if name != "" {
			all = append(all, analytics.Count{Name: name, N: n})
		}
	}
	slices.SortFunc(all, func(a, b analytics.Count) int {
		if a.N != b.N {
			return int(b.N - a.N)
		}
		return map[bool]int{true: -1, false: 1}[a.Name < b.Name]
	})
	return all
}

// thousandInstalls sends events over 30 days to two replicas, several batches at a time. One event in ten is sent
// again in the same or a later batch, and some arrive too late.
func thousandInstalls(t *testing.T, f *analyticsFixture) {
	total := 20_000
	if os.Getenv("SERVICE_TEST_FULL") != "" {
		total = 100_000
	}
	const days, batch, parts = 30, 200, 4
	replicas := []*analytics.Service{f.Service, f.replica(1 << 40)}
	start := f.clock.now().Truncate(24 * time.Hour)
	rounds := total / batch / parts
	traffic := &eventTraffic{random: rand.New(rand.NewPCG(4, 6)), model: &eventModel{seen: map[string]bool{}}}
	for round := range rounds {
		elapsed := time.Duration(float64(days*24*time.Hour) * float64(round) / float64(rounds))
		f.clock.pass(start.Add(elapsed + time.Hour).Sub(f.clock.now()))
		var group sync.WaitGroup
		for part := range parts {
			events := traffic.batch(batch, f.clock.now())
			group.Go(func() {
				a, err := replicas[part%2].Ingest(t.Context(), "ada", f.app, events)
				if err != nil {
					t.Error(err)
				}
				traffic.took(a)
			})
		}
		group.Wait()
		if round%(rounds/5) == 1 { // sums must outlive the IDs and hashes from which they were computed
			fatal(t, f.Sweep(t.Context()))
		}
	}
	if traffic.accepted != len(traffic.model.at) || traffic.rejected != 0 {
		t.Errorf("accepted %d, want %d as in the model; rejected or sampled %d, want none", traffic.accepted,
			len(traffic.model.at), traffic.rejected)
	}
	f.agrees(t, traffic.model, start)
}

// eventTraffic holds the events of the installs and the service's results.
type eventTraffic struct {
	random             *rand.Rand
	model              *eventModel
	sent               []analytics.Event
	ids                int
	mu                 sync.Mutex
	accepted, rejected int
}

func (e *eventTraffic) batch(n int, now time.Time) []analytics.Event {
	if len(e.sent) > 10_000 {
		e.sent = slices.Clone(e.sent[len(e.sent)-5000:])
	}
	events := make([]analytics.Event, n)
	for i := range events {
		if len(e.sent) > 0 && e.random.IntN(10) == 0 {
			events[i] = e.sent[max(0, len(e.sent)-1-e.random.IntN(3000))]
		} else {
			e.ids++
			events[i] = randomEvent(e.random, e.ids, now)
		}
		e.sent = append(e.sent, events[i])
		e.model.take(events[i], now)
	}
	return events
}

func (e *eventTraffic) took(a analytics.Accepted) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.accepted += a.Accepted
	e.rejected += a.Rejected + a.Sampled
}

// agrees compares the reports for days, for early hours and for the last day with the model.
func (f *analyticsFixture) agrees(t *testing.T, model *eventModel, start time.Time) {
	t.Helper()
	end := f.clock.now().Truncate(time.Hour).Add(time.Hour)
	for _, q := range []analytics.Query{
		{From: start.Add(-72 * time.Hour), To: end, Interval: analytics.Day},
		{From: start.Add(5*24*time.Hour + 7*time.Hour), To: start.Add(12*24*time.Hour + 7*time.Hour),
			Interval: analytics.Hour},
		{From: end.Add(-24 * time.Hour), To: end, Interval: analytics.Hour},
		{From: start, To: end, Interval: analytics.Day, Filter: analytics.Slice{Version: "1.4.1"}},
		{From: start, To: end, Interval: analytics.Day, Filter: analytics.Slice{Platform: "ios"}},
		{From: end.Add(-24 * time.Hour), To: end, Interval: analytics.Hour,
			Filter: analytics.Slice{Version: "1.5.0-beta", Platform: "android"}},
	} {
		before := time.Now()
		got := f.report(t, q)
		t.Logf("%d points in %s: %s", len(got.Series), time.Since(before).Round(time.Millisecond), got.Reading)
		if got.Reading == "" {
			t.Error("the report has no reading")
		}
		got.Reading = ""
		if diff := cmp.Diff(model.report(f.app, q.Interval, got.From, got.To, q.Filter), got); diff != "" {
			t.Errorf("%s from %s, filter %+v: (-model +report)\n%s", q.Interval, q.From, q.Filter, diff)
		}
	}
}

func randomEvent(random *rand.Rand, id int, now time.Time) analytics.Event {
	ago := time.Duration(random.Int64N(int64(2 * time.Hour)))
	switch random.IntN(50) {
	case 0: // the install was offline
		ago = time.Duration(random.Int64N(int64(80 * time.Hour)))
	case 1: // exactly at the end
		ago = 72 * time.Hour
	}
	e := analytics.Event{ID: fmt.Sprint("e-", id), At: now.Add(-ago).Truncate(time.Millisecond),
		InstallID:  fmt.Sprintf("install-%04d", random.IntN(1000)),
		AppVersion: []string{"1.4.0", "1.4.1", "1.5.0-beta"}[random.IntN(3)], Platform: []string{"ios", "android",
			""}[random.IntN(3)],
		DeviceModel: []string{"rayban_display", "even_g1"}[random.IntN(2)], Type: analytics.Session}
	switch kind := random.IntN(10); {
	case kind > 3:
		e.Type, e.Name = analytics.Custom, fmt.Sprint("screen.", random.IntN(15))
	case kind == 3:
		e.Type, e.Name = analytics.Failure, []string{"timeout", "camera.denied", "no_network"}[random.IntN(3)]
	}
	return e
}

func noProject(t *testing.T, f *analyticsFixture) {
	_, err := f.Ingest(t.Context(), "ada", "com.example.gone", []analytics.Event{f.event("e", 1)})
	if !errors.Is(err, analytics.ErrNoProject) {
		t.Errorf("ingest for an unknown project: got %v, want ErrNoProject", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Ingest(ctx, "ada", f.app, []analytics.Event{f.event("e", 1)}); err == nil {
		t.Error("a cancelled call succeeded")
	}
}
