package analytics

import (
	"cmp"
	"maps"
	"slices"
)

// Span is the length of time that a sum is over.
type Span int

// Spans.
const (
	OfHour Span = 0
	OfDay  Span = 1
)

// Kind is what a sum counts. The numbers are in the database.
type Kind int

// Kinds of sums.
const (
	KindTotal    Kind = 0 // by Session, Custom, Failure, and the names below
	KindEvent    Kind = 1 // events by name
	KindError    Kind = 2 // errors by kind
	KindVersion  Kind = 3 // whatever was counted, by the app's version
	KindPlatform Kind = 4
	KindDevice   Kind = 5
	KindFailing  Kind = 6 // errors by "<kind> <version>"
)

// Further names of KindTotal.
const (
	TotalInstalls = "installs" // active ones
	TotalSampled  = "sampled"  // how much of the other counts is scaled up from a sample
)

// Other is the name under which what has no room of its own is counted.
const Other = "other"

const (
	maxNames   = 200 // of one kind in one hour or day
	sampleRate = 10
)

// Moment is one hour or day.
type Moment struct {
	Span Span
	At   int64 // hours or days since 1970
}

// Slot is what a sum stands under.
type Slot struct {
	Moment
	Kind Kind
	Name string
}

// Sum is how often something was counted.
type Sum struct {
	Slot
	N int64
}

// Seat is an install on a day.
type Seat struct {
	Day  int64
	Hash Install
}

// Presence tells in which hours of its day an install was active, a bit each, and for how many installs it stands.
type Presence struct {
	Hours  int64
	Weight int64
}

// Tally is the arithmetic of one write to one project: the store asks it what to look up, tells it what it found, and
// stores the differences that come out. While it does, the project is locked.
type Tally struct {
	batches  []Batch
	rate     int64
	outcomes []Outcome
	keys     []Key
	first    map[Key]*Mark // the one that counts, of each new id
	of       map[Key]int   // whose batch it is in
	sums     map[Slot]int64
	present  map[Seat]Presence
}

// NewTally begins with batches of one project; used is how many of its events were counted on their day of arrival.
func NewTally(batches []Batch, used int64) *Tally {
	t := &Tally{batches: batches, rate: 1, outcomes: make([]Outcome, len(batches)), first: map[Key]*Mark{}, of: map[Key]int{},
		sums: map[Slot]int64{}, present: map[Seat]Presence{}}
	if used >= batches[0].Quota {
		t.rate = sampleRate
	}
	for i := range batches {
		t.outcomes[i].SampleRate = int(t.rate)
		for j := range batches[i].Marks {
			m := &batches[i].Marks[j]
			if t.rate > 1 && m.Install[15]%sampleRate != 0 {
				t.outcomes[i].Sampled++
				continue
			}
			if t.first[m.Key] != nil {
				t.outcomes[i].Duplicates++
				continue
			}
			t.first[m.Key], t.of[m.Key] = m, i
			t.keys = append(t.keys, m.Key)
		}
	}
	return t
}

// Keys are the ids that count unless the store has seen them; each once.
func (t *Tally) Keys() []Key { return t.keys }

// Count takes the ids that the store had not seen.
func (t *Tally) Count(fresh []Key) {
	for _, k := range fresh {
		m := t.first[k]
		t.outcomes[t.of[k]].Accepted++
		for _, moment := range []Moment{{OfHour, m.Hour}, {OfDay, m.Hour / 24}} {
			t.add(moment, m)
		}
		seat := Seat{Day: m.Hour / 24, Hash: m.Install}
		p := t.present[seat]
		t.present[seat] = Presence{Hours: p.Hours | 1<<(m.Hour%24), Weight: t.rate}
		delete(t.first, k)
	}
	for k := range t.first { // what is left was seen before
		t.outcomes[t.of[k]].Duplicates++
	}
}

func (t *Tally) add(at Moment, m *Mark) {
	plus := func(kind Kind, name string) {
		if name != "" {
			t.sums[Slot{at, kind, name}] += t.rate
		}
	}
	plus(KindTotal, m.Type)
	if t.rate > 1 {
		plus(KindTotal, TotalSampled)
	}
	switch m.Type {
	case Custom:
		plus(KindEvent, m.Name)
	case Failure:
		plus(KindError, m.Name)
		if m.Version != "" {
			plus(KindFailing, m.Name+" "+m.Version)
		}
	}
	plus(KindVersion, m.Version)
	plus(KindPlatform, m.Platform)
	plus(KindDevice, m.Device)
}

// Seats are the installs whose presence the store looks up.
func (t *Tally) Seats() map[int64][]Install {
	out := map[int64][]Install{}
	for s := range t.present {
		out[s.Day] = append(out[s.Day], s.Hash)
	}
	return out
}

// Seated takes what is stored of the installs and gives what to store: only what is new or different.
func (t *Tally) Seated(stored map[Seat]Presence) map[Seat]Presence {
	changed := map[Seat]Presence{}
	for seat, now := range t.present {
		was := stored[seat]
		next := Presence{Hours: was.Hours | now.Hours, Weight: now.Weight}
		if was.Weight > 0 {
			next.Weight = min(was.Weight, now.Weight) // counted for itself once, it is no sample of others
		}
		if next == was {
			continue
		}
		changed[seat] = next
		t.installs(Moment{OfDay, seat.Day}, next.Weight-was.Weight)
		for h := range int64(24) {
			before, after := was.Hours>>h&1, next.Hours>>h&1
			t.installs(Moment{OfHour, seat.Day*24 + h}, after*next.Weight-before*was.Weight)
		}
	}
	return changed
}

func (t *Tally) installs(at Moment, n int64) {
	if n != 0 {
		t.sums[Slot{at, KindTotal, TotalInstalls}] += n
	}
}

// Moments are the hours and days that get something.
func (t *Tally) Moments() []Moment {
	seen := map[Moment]bool{}
	var out []Moment
	for s := range t.sums {
		if !seen[s.Moment] {
			seen[s.Moment] = true
			out = append(out, s.Moment)
		}
	}
	return out
}

// Sums gives what to add to the stored sums. known are the slots that those moments have already: a kind that has
// maxNames names there gets no more of them, and the rest counts as Other.
func (t *Tally) Sums(known []Slot) []Sum {
	type room struct {
		Moment
		Kind Kind
	}
	taken, has := map[room]int{}, make(map[Slot]bool, len(known))
	for _, s := range known {
		has[s] = true
		taken[room{s.Moment, s.Kind}]++
	}
	out := map[Slot]int64{}
	for _, slot := range sorted(t.sums) {
		n := t.sums[slot]
		in := room{slot.Moment, slot.Kind}
		if !has[slot] && slot.Kind != KindTotal && slot.Name != Other {
			if taken[in] >= maxNames {
				slot.Name = Other
			} else {
				taken[in]++
			}
		}
		out[slot] += n
	}
	sums := make([]Sum, 0, len(out))
	for _, slot := range sorted(out) {
		if out[slot] != 0 {
			sums = append(sums, Sum{slot, out[slot]})
		}
	}
	return sums
}

// Outcomes tells of each batch what became of it; Accepted how many events were counted, for the quota.
func (t *Tally) Outcomes() []Outcome { return t.outcomes }

// sorted gives the slots in an order that is the same everywhere: two writers never wait for each other's rows.
func sorted(m map[Slot]int64) []Slot {
	return slices.SortedFunc(maps.Keys(m), func(a, b Slot) int {
		return cmp.Or(cmp.Compare(a.Span, b.Span), cmp.Compare(a.At, b.At), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
}
