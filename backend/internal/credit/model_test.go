package credit_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/dbtest"
)

// The ledger on a real database, driven at random, agrees with a small model: the balance is the inflow minus the
// outflow, the held amount is the sum of the open holds, 0 <= held <= posted, a hold ends only once, no admission
// exceeds a cap, and after a sweep no open hold is past its lease. The balance is compared after each step. The other
// sums are compared less often and at the end, because a wrong sum stays wrong.
func TestCredit_FollowsModel(t *testing.T) {
	dbtest.SetModelRuns(t)
	dbtest.EachEngine(t, func(t *testing.T, database func(t *testing.T) string) {
		where, runs := database(t), 0
		rapid.Check(t, func(rt *rapid.T) {
			runs++
			m := newPurse(t, rt, where, runs)
			defer m.close()
			rt.Repeat(m.actions())
			m.checkBooks(rt)
		})
	})
}

// modelHold is a hold in the model.
type modelHold struct {
	credit.Hold
	day     string
	state   string
	charged credit.Amount
	turn    *turnLimits // nil for a call in text
}

// purse is a ledger and its model: one account with two projects.
type purse struct {
	t        *testing.T
	database string
	store    *db.DB
	ledger   *credit.Ledger
	now      time.Time
	account  string

	posted, operator credit.Amount
	holds            []*modelHold
	references       map[string]credit.Amount // negative if the money was taken
	caps             map[string]credit.Caps
	spent            map[string]credit.Amount // by project and period
	keySpent         map[string]credit.Amount // by project and day, of calls with a project key alone
	usage            map[string]usageSums     // by project and kind
	steps            int
}

var modelProjects = []string{"com.example.one", "com.example.two"}

func newPurse(t *testing.T, rt *rapid.T, database string, run int) *purse {
	m := &purse{
		t: t, database: database, now: time.Date(2030+run%5000, 1, 31, 23, 59, 0, 0, time.UTC),
		account: fmt.Sprintf("purse %d", run), posted: 2 * credit.USD, references: map[string]credit.Amount{},
		caps: map[string]credit.Caps{}, spent: map[string]credit.Amount{},
		keySpent: map[string]credit.Amount{}, usage: map[string]usageSums{},
	}
	m.open(rt)
	addPurse(t, m.store, m.account, m.now)
	return m
}

func (m *purse) open(rt *rapid.T) {
	var err error
	if m.store, err = db.Open(m.t.Context(), m.database, slog.New(slog.DiscardHandler)); err != nil {
		rt.Fatal(err)
	}
	m.ledger = newLedger(m.store, func() time.Time { return m.now })
	if m.operator, err = operatorBook(m.t.Context(), m.ledger); err != nil { // runs share a database
		rt.Fatal(err)
	}
}

func operatorBook(ctx context.Context, l *credit.Ledger) (credit.Amount, error) {
	r, err := l.Check(ctx)
	return r.Operator, err
}

func (m *purse) close() {
	if err := m.store.Close(); err != nil {
		m.t.Error(err)
	}
}

func (m *purse) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"":       m.check,
		"hold":   m.hold,
		"hold 2": m.hold,
		"settle": func(rt *rapid.T) {
			m.settle(rt, m.any(rt), credit.Amount(rapid.Int64Range(0, int64(credit.USD)).Draw(rt, "charge")), call("ok"))
		},
		"carry":   func(rt *rapid.T) { m.carry(rt, m.any(rt)) },
		"release": func(rt *rapid.T) { m.settle(rt, m.any(rt), 0, call("failed")) },
		"renew":   m.renew,
		"sweep":   m.sweep,
		"add":     func(rt *rapid.T) { m.transfer(rt, 1) },
		"take":    func(rt *rapid.T) { m.transfer(rt, -1) },
		"caps":    m.setCaps,
		"reopen": func(rt *rapid.T) {
			if rapid.IntRange(0, 4).Draw(rt, "rarely, since it takes long") > 0 {
				rt.Skip()
			}
			m.close()
			m.open(rt)
		},
		"time": func(rt *rapid.T) {
			m.now = m.now.Add(rapid.SampledFrom([]time.Duration{time.Millisecond, 20 * time.Second, credit.Lease,
				credit.Lease + time.Millisecond, -30 * time.Second, time.Hour, 25 * time.Hour}).Draw(rt, "time"))
		},
		"two settles": m.race,

		"turn":                func(rt *rapid.T) { m.holdTurn(rt) },
		"turns":               m.converse,
		"turn ends":           func(rt *rapid.T) { m.settleTurn(rt, m.anyTurn(rt), "ok", false) },
		"app leaves a turn":   func(rt *rapid.T) { m.settleTurn(rt, m.anyTurn(rt), "cancelled", false) },
		"turn has no receipt": func(rt *rapid.T) { m.settleTurn(rt, m.anyTurn(rt), "cancelled", true) },
	}
}

func (m *purse) any(rt *rapid.T) *modelHold {
	if len(m.holds) == 0 {
		rt.Skip("no hold yet")
	}
	return m.holds[len(m.holds)-1-min(rapid.SampledFrom([]int{0, 0, 1, 1, 2, 3, 5, 8}).Draw(rt, "hold"), len(m.holds)-1)]
}

func (m *purse) held(of func(*modelHold) bool) (sum credit.Amount) {
	for _, h := range m.holds {
		if h.state == "open" && of(h) {
			sum += h.Amount
		}
	}
	return sum
}

func isAnyHold(*modelHold) bool { return true }

// used returns the amount that a project or the account has spent and holds in a period.
func (m *purse) used(project, period string) credit.Amount {
	return m.spent[project+" "+period] + m.held(func(h *modelHold) bool {
		return (project == "" || h.Project == project) && (h.day == period || h.day[:7] == period)
	})
}

// refusal returns the model's reason to refuse a hold, or "".
func (m *purse) refusal(r credit.HoldRequest) (passing string) {
	switch held := m.held(isAnyHold); {
	case r.Amount > m.posted:
		return fmt.Sprintf("%T", &credit.NoCredit{})
	case r.Amount > m.posted-held:
		return fmt.Sprintf("%T", &credit.Reserved{})
	}
	day, month := credit.Periods(m.now)
	for _, project := range []string{r.Project, ""} {
		caps := m.caps[project]
		for period, limit := range map[string]*credit.Amount{day: caps.Day, month: caps.Month} {
			switch {
			case limit == nil || m.used(project, period)+r.Amount <= *limit:
			case m.spent[project+" "+period]+r.Amount > *limit:
				return fmt.Sprintf("%T", &credit.CapReached{})
			default: // unless another cap refuses the hold even without the calls in flight
				passing = fmt.Sprintf("%T", &credit.Reserved{})
			}
		}
	}
	if keys := m.caps[r.Project].Keys; r.ByKey && keys != nil {
		switch spent := m.keySpent[r.Project+" "+day]; {
		case spent+m.heldByKeys(r.Project, day)+r.Amount <= *keys:
		case spent+r.Amount > *keys:
			return fmt.Sprintf("%T", &credit.AttestationRequired{})
		default:
			passing = fmt.Sprintf("%T", &credit.Reserved{})
		}
	}
	return passing
}

// heldByKeys returns what calls with a key alone hold on a day.
func (m *purse) heldByKeys(project, day string) credit.Amount {
	return m.held(func(h *modelHold) bool { return h.ByKey && h.Project == project && h.day == day })
}

func (m *purse) hold(rt *rapid.T) {
	m.holdAmount(rt, credit.Amount(rapid.Int64Range(1, int64(credit.USD)).Draw(rt, "amount")), nil)
}

// holdAmount returns nil if the hold was refused, as in the model.
func (m *purse) holdAmount(rt *rapid.T, amount credit.Amount, turn *turnLimits) *modelHold {
	r := credit.HoldRequest{
		Account: m.account, Project: rapid.SampledFrom(modelProjects).Draw(rt, "project"), Amount: amount,
		ByKey: rapid.Bool().Draw(rt, "with a key alone"),
	}
	want := m.refusal(r)
	h, err := m.ledger.Hold(m.t.Context(), r)
	if got := kindOfRefusal(err); got != want {
		rt.Fatalf("hold of %s: got %v, want %q as in the model", r.Amount, err, want)
	}
	if err != nil {
		return nil
	}
	day, _ := credit.Periods(m.now)
	held := &modelHold{Hold: h, day: day, state: "open", turn: turn}
	m.holds = append(m.holds, held)
	return held
}

func (m *purse) settle(rt *rapid.T, h *modelHold, charge credit.Amount, c credit.Call) {
	got, err := m.ledger.Settle(m.t.Context(), h.ID, charge, c)
	if err != nil {
		rt.Fatal(err)
	}
	if want := m.settled(h, charge, c); got != want {
		rt.Fatalf("settling a hold that was %s charged %s, want %s as in the model", h.state, got, want)
	}
}

// settled returns the charge according to the model.
func (m *purse) settled(h *modelHold, charge credit.Amount, c credit.Call) credit.Amount {
	switch h.state {
	case "open":
		h.state, h.charged = "settled", min(charge, h.Amount)
		m.posted -= h.charged
		if h.ByKey {
			m.keySpent[h.Project+" "+h.day] += h.charged
		}
		for _, project := range []string{h.Project, ""} {
			m.spent[project+" "+h.day] += h.charged
			m.spent[project+" "+h.day[:7]] += h.charged
		}
	case "expired":
		h.state = "late"
	default:
		return h.charged
	}
	m.operator += charge - h.charged
	sums := m.usage[h.Project+" "+c.Kind]
	sums.add(usageOf(c, h.charged))
	m.usage[h.Project+" "+c.Kind] = sums
	return h.charged
}

// race settles a hold twice concurrently. Only one of the settlements takes effect.
func (m *purse) race(rt *rapid.T) {
	h, charges := m.any(rt), []credit.Amount{1000, 2000}
	type outcome struct {
		charged credit.Amount
		err     error
	}
	results := make(chan outcome, len(charges))
	for _, c := range charges {
		go func() {
			charged, err := m.ledger.Settle(m.t.Context(), h.ID, c, call("ok"))
			results <- outcome{charged, err}
		}()
	}
	one, two := <-results, <-results
	if one.err != nil || two.err != nil || one.charged != two.charged {
		rt.Fatalf("two concurrent settlements: %+v, %+v; want equal charges", one, two)
	}
	before, err := operatorBook(m.t.Context(), m.ledger)
	if err != nil {
		rt.Fatal(err)
	}
	first := before - m.operator + one.charged // only the sums show which of the two came first
	if first != charges[0] && first != charges[1] && (h.state == "open" || h.state == "expired") {
		rt.Fatalf("two concurrent settlements booked %s, want one of the two charges", first)
	}
	if want := m.settled(h, first, call("ok")); one.charged != want {
		rt.Fatalf("two concurrent settlements charged %s, want %s as in the model", one.charged, want)
	}
}

func (m *purse) renew(rt *rapid.T) {
	h := m.any(rt)
	err := m.ledger.Renew(m.t.Context(), h.ID)
	if want := h.state == "open"; (err == nil) != want || !want && !errors.Is(err, credit.ErrHoldEnded) {
		rt.Fatalf("renewing a hold that is %s: got %v, want success only if it is open", h.state, err)
	}
	if err == nil {
		h.LeaseUntil = m.now.Add(credit.Lease)
	}
}

func (m *purse) sweep(rt *rapid.T) {
	if err := m.ledger.Sweep(m.t.Context()); err != nil {
		rt.Fatal(err)
	}
	for _, h := range m.holds {
		if h.state == "open" && h.LeaseUntil.Before(m.now) {
			h.state = "expired"
		}
	}
}

func (m *purse) transfer(rt *rapid.T, sign credit.Amount) {
	reference := m.account + rapid.SampledFrom([]string{" a", " b", " c", " d"}).Draw(rt, "reference")
	amount := credit.Amount(rapid.SampledFrom([]int64{1, 700_000, 1_500_000}).Draw(rt, "amount"))
	book := m.ledger.Grant
	if sign < 0 {
		book = m.ledger.Take
	}
	booked, err := book(m.t.Context(), m.account, amount, reference, "", audit.Operator())
	before, known := m.references[reference]
	switch held := m.held(isAnyHold); {
	case known && before == sign*amount:
		if booked || err != nil {
			rt.Fatalf("repeating a transfer: got %v (error %v), want no booking", booked, err)
		}
	case known:
		if !errors.Is(err, credit.ErrReferenceUsed) {
			rt.Fatalf("another transfer with a used reference: got %v, want ErrReferenceUsed", err)
		}
	case sign < 0 && amount > m.posted-held:
		if kindOfRefusal(err) == "" || booked {
			rt.Fatalf("taking %s of %s while %s are held: got %v, want a refusal", amount, m.posted, held, err)
		}
	case err != nil || !booked:
		rt.Fatalf("transfer: got %v (error %v), want a booking", booked, err)
	default:
		m.references[reference], m.posted = sign*amount, m.posted+sign*amount
	}
}

func (m *purse) setCaps(rt *rapid.T) {
	project := rapid.SampledFrom(append([]string{""}, modelProjects...)).Draw(rt, "project")
	c := credit.Caps{Version: m.caps[project].Version}
	all := []**credit.Amount{&c.Day, &c.Month}
	if project != "" {
		all = append(all, &c.Keys)
	}
	for _, one := range all {
		if a := credit.Amount(rapid.Int64Range(-1_000_000, 2_000_000).Draw(rt, "cap")); a >= 0 {
			*one = &a
		}
	}
	if err := m.ledger.SetCaps(m.t.Context(), m.account, project, c, audit.Person()); err != nil {
		rt.Fatal(err)
	}
	if !slices.Equal(values(c), values(m.caps[project])) {
		c.Version++
	}
	m.caps[project] = c
}
