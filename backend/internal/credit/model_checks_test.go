package credit_test

import (
	"errors"
	"maps"

	"pgregory.net/rapid"

	"github.com/service-dev/service/backend/internal/credit"
)

// checkEvery is the number of steps between comparisons of every sum with the model.
const checkEvery = 10

// check compares the balance with the model's.
func (m *purse) check(rt *rapid.T) {
	b, err := credit.NewStore(m.store).Balance(m.t.Context(), m.account)
	if errors.Is(err, credit.ErrNoBook) && len(m.holds) == 0 { // the balance has not been opened
		return
	}
	if held := m.held(isAnyHold); err != nil || b.Posted != m.posted || b.Held != held || b.Free != 2*credit.USD ||
		b.Held < 0 || b.Held > b.Posted {
		rt.Fatalf("got balance %s, held %s (error %v), want %s, %s as in the model", b.Posted, b.Held, err, m.posted, held)
	}
	if m.steps++; m.steps%checkEvery == 0 {
		m.checkBooks(rt)
	}
}

// checkSpending compares the spending that counts towards caps with the model's.
func (m *purse) checkSpending(rt *rapid.T) {
	day, month := credit.Periods(m.now)
	for _, project := range append([]string{""}, modelProjects...) {
		p, err := m.ledger.Project(m.t.Context(), m.account, project)
		if err != nil {
			rt.Fatal(err)
		}
		if p.Day.Spent+p.Day.Held != m.used(project, day) || p.Month.Spent+p.Month.Held != m.used(project, month) ||
			p.Day.Spent != m.spent[project+" "+day] || project != "" &&
			p.Keys != (credit.Spent{Spent: m.keySpent[project+" "+day], Held: m.heldByKeys(project, day)}) {
			rt.Fatalf("spending of %q: got %+v, %+v, want %s, %s as in the model", project, p.Day, p.Month, m.used(project, day),
				m.used(project, month))
		}
	}
}

// checkBooks makes the slower comparisons: all sums of the database, and the counted calls.
func (m *purse) checkBooks(rt *rapid.T) {
	r, err := m.ledger.Check(m.t.Context())
	if err != nil || len(r.Differences) > 0 || r.Operator != m.operator {
		rt.Fatalf("got error %v, differences %+v, the operator pays %s, want %s as in the model",
			err, r.Differences, r.Operator, m.operator)
	}
	if r.Free+r.PaidIn+r.Operator != r.Posted+r.Used+r.Closed {
		rt.Fatalf("the books do not sum to zero: %+v", r)
	}
	m.checkSpending(rt)
	m.checkUsage(rt)
}

// checkUsage compares the counted calls with the model's: each call counts once, with its charge and its tokens of each
// class.
func (m *purse) checkUsage(rt *rapid.T) {
	got, charged := map[string]usageSums{}, credit.Amount(0)
	err := m.ledger.Usage(m.t.Context(), credit.UsageQuery{AccountID: m.account, To: m.now.AddDate(1, 0, 0)},
		func(u credit.UsageRow) error {
			sums := got[u.Project+" "+u.Kind]
			sums.add(usageSums{u.Calls, u.Failed, u.Cancelled, u.Estimated, u.Charged,
				classes{u.TextIn, u.TextCached, u.TextOut, u.AudioIn, u.AudioCached, u.AudioOut}})
			got[u.Project+" "+u.Kind] = sums
			charged += u.Charged
			return nil
		})
	if err != nil {
		rt.Fatal(err)
	}
	want := credit.Amount(0)
	for _, h := range m.holds {
		want += h.charged
	}
	if !maps.Equal(got, m.usage) || charged != want {
		rt.Fatalf("counted %+v and %s, want %+v and %s as in the model", got, charged, m.usage, want)
	}
}
