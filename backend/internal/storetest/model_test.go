package storetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/dbtest"
	"github.com/service-dev/service/backend/internal/link"
)

// The device-code implementation on a real database, driven at random, agrees with a small model. It does so for
// single operations, and for two concurrent operations, whose results must match one order of the two.
func TestDeviceCodes_FollowModel(t *testing.T) {
	dbtest.SetModelRuns(t)
	dbtest.EachEngine(t, func(t *testing.T, database func(t *testing.T) string) {
		where, runs := database(t), 0
		// All runs share one database. Each has its own accounts and its own year, so the codes of earlier runs have
		// expired.
		rapid.Check(t, func(rt *rapid.T) {
			runs++
			m := newMachine(t, rt, where, runs)
			defer m.close()
			rt.Repeat(m.actions())
			m.checkTrail(rt)
		})
	})
}

const modelPeople = 2

var (
	modelTimes = link.Settings{CodeTTL: 10 * time.Minute, PollInterval: 5 * time.Second, Grace: 30 * time.Second,
		UnusedAfter: time.Minute}
	passes = []time.Duration{200 * time.Millisecond, time.Second, 3200 * time.Millisecond, 3300 * time.Millisecond,
		5 * time.Second, 20 * time.Second,
		31 * time.Second, 59 * time.Second, 61 * time.Second, 5 * time.Minute, 10*time.Minute - time.Second, 10 * time.Minute,
		25 * time.Hour}
	// Times since the end of a code's window.
	moments = []time.Duration{-time.Millisecond, 0, modelTimes.Grace, modelTimes.Grace + time.Millisecond, 24 * time.Hour}
)

// op is an operation on a code or on an account.
type op struct {
	kind          string
	code, account int
}

// machine is the real implementation and its model.
type machine struct {
	t        *testing.T
	database string
	store    *db.DB
	links    *link.Service
	accounts *account.Service
	now      time.Time
	who      [modelPeople]string // account IDs

	mu     sync.Mutex
	codes  []link.Issued
	tokens []*link.Token // by code
	model  codeModel
}

func newMachine(t *testing.T, rt *rapid.T, database string, run int) *machine {
	m := &machine{t: t, database: database, now: time.Date(2030+run%5000, 1, 1, 0, 0, 0, 0, time.UTC)}
	m.open(rt)
	for i := range modelPeople {
		m.who[i], m.model.active[i] = fmt.Sprintf("person %d of run %d", i, run), true
		err := account.NewStore(m.store).InsertAccount(t.Context(), account.Account{ID: m.who[i], Email: m.who[i],
			PasswordHash: "x",
			Active:       true, PrivacyAccepted: m.now, CreatedAt: m.now})
		if err != nil {
			rt.Fatal(err)
		}
	}
	return m
}

func (m *machine) open(rt *rapid.T) {
	quiet := slog.New(slog.DiscardHandler)
	var err error
	if m.store, err = db.Open(m.t.Context(), m.database, quiet); err != nil {
		rt.Fatal(err)
	}
	clock := func() time.Time { return m.now } // the clock does not advance while operations run
	m.links = link.New(link.Options{Store: link.NewStore(m.store), Hasher: hash, Settings: modelTimes, Log: quiet,
		Now: clock})
	m.accounts = account.New(account.Options{Store: account.NewStore(m.store), Hasher: hash, Log: quiet, Now: clock})
}

func (m *machine) close() {
	if err := m.store.Close(); err != nil {
		m.t.Error(err)
	}
}

// actions lists the possible next steps of a run.
func (m *machine) actions() map[string]func(*rapid.T) {
	all := map[string]func(*rapid.T){
		"": m.checkStored,
		"issue": func(rt *rapid.T) {
			issued, err := m.links.Start(m.t.Context(), link.Requester{Host: "maple", IP: "192.0.2.1"})
			if err != nil {
				rt.Fatal(err)
			}
			m.codes, m.tokens = append(m.codes, issued), append(m.tokens, nil)
			m.model.issue(m.now)
		},
		"time": func(rt *rapid.T) { m.now = m.now.Add(rapid.SampledFrom(passes).Draw(rt, "time")) },
		"reopen": func(rt *rapid.T) {
			m.close()
			m.open(rt)
			m.model.reopen()
		},
		"two at once": m.race,
		// Random choice would rarely produce these sequences.
		"login": func(rt *rapid.T) {
			code := m.anyCode(rt)
			m.step(rt, op{kind: "approve", code: code, account: rapid.IntRange(0, modelPeople-1).Draw(rt, "account")})
			m.step(rt, op{kind: "poll", code: code})
		},
		"haste": func(rt *rapid.T) {
			for o := (op{kind: "poll", code: m.anyCode(rt)}); rapid.IntRange(0, 4).Draw(rt, "more") > 0; {
				m.step(rt, o)
			}
		},
		"last moment": func(rt *rapid.T) {
			code := m.anyCode(rt)
			m.step(rt, op{kind: rapid.SampledFrom([]string{"view", "approve"}).Draw(rt, "before"), code: code})
			if at := m.model.codes[code].expires.Add(rapid.SampledFrom(moments).Draw(rt, "moment")); at.After(m.now) {
				m.now = at
			}
			m.step(rt, op{kind: rapid.SampledFrom([]string{"poll", "poll", "approve", "view"}).Draw(rt, "then"), code: code})
		},
		"lost answer": func(rt *rapid.T) {
			code := m.anyCode(rt)
			m.step(rt, op{kind: "poll", code: code})
			if m.tokens[code] != nil && rapid.Bool().Draw(rt, "used") {
				m.step(rt, op{kind: "use", code: code})
			}
			m.step(rt, op{kind: "poll", code: code})
			m.now = m.now.Add(rapid.SampledFrom([]time.Duration{time.Minute, time.Minute + time.Millisecond}).Draw(rt, "time"))
			m.step(rt, op{kind: "sweep", code: code})
		},
	}
	for _, kind := range []string{"view", "approve", "deny", "poll", "poll again", "use", "revoke", "revoke all",
		"suspend", "restore", "sweep"} {
		all[kind] = func(rt *rapid.T) { m.step(rt, m.draw(rt, kind)) }
	}
	return all
}

func (m *machine) anyCode(rt *rapid.T) int {
	if len(m.codes) == 0 {
		rt.Skip("no code yet")
	}
	// Most operations use one of the latest codes; a few use any code.
	return len(m.codes) - 1 - min(rapid.SampledFrom([]int{0, 0, 0, 1, 1, 2, 3, 5, 8}).Draw(rt, "code"), len(m.codes)-1)
}

func (m *machine) draw(rt *rapid.T, kind string) op {
	o := op{kind: kind, code: m.anyCode(rt), account: rapid.IntRange(0, modelPeople-1).Draw(rt, "account")}
	if kind == "poll again" {
		o.kind = "poll"
	}
	if (kind == "use" || kind == "revoke") && m.tokens[o.code] == nil {
		rt.Skip("no link yet")
	}
	return o
}

// step performs one operation.
func (m *machine) step(rt *rapid.T, o op) {
	got := m.do(m.t.Context(), o)
	if want := m.model.do(o, m.now); got != want {
		rt.Fatalf("%+v: got %s, want %s as in the model", o, got, want)
	}
}

// race performs two operations concurrently. Their outcomes must match one order of the two.
func (m *machine) race(rt *rapid.T) {
	kinds := []string{"approve", "deny", "poll", "use", "revoke", "revoke all", "suspend", "restore", "sweep"}
	a := m.draw(rt, rapid.SampledFrom(kinds).Draw(rt, "first"))
	b := m.draw(rt, rapid.SampledFrom(kinds).Draw(rt, "second"))
	if rapid.Bool().Draw(rt, "same code") {
		b.code = a.code
		if (b.kind == "use" || b.kind == "revoke") && m.tokens[b.code] == nil {
			rt.Skip("no link yet")
		}
	}
	if a.kind == "poll" && b.kind == "poll" && a.code == b.code && m.model.codes[a.code].state == link.Pending {
		rt.Skip("two concurrent early polls may raise the interval once or twice")
	}
	var answers [2]string
	var wg sync.WaitGroup
	for i, o := range []op{a, b} {
		wg.Go(func() { answers[i] = m.do(m.t.Context(), o) })
	}
	wg.Wait()
	first, second := m.model.clone(), m.model.clone()
	one := [2]string{0: first.do(a, m.now), 1: first.do(b, m.now)}
	other := [2]string{1: second.do(b, m.now), 0: second.do(a, m.now)}
	switch {
	case answers == one && one == other && !first.like(second):
		m.model = first // only the stored state shows the order
		if !m.agree(rt) {
			m.model = second
		}
	case answers == one:
		m.model = first
	case answers == other:
		m.model = second
	default:
		rt.Fatalf("%+v and %+v, concurrently: got %v, want the result of either order, %v or %v", a, b, answers, one, other)
	}
}

// do performs an operation with the real implementation.
func (m *machine) do(ctx context.Context, o op) string {
	code := m.codes[o.code]
	switch o.kind {
	case "view":
		_, err := m.links.View(link.WithBrowser(ctx, "one browser"), code.UserCode)
		return outcome(err)
	case "approve":
		return outcome(m.links.Approve(ctx, code.UserCode, m.who[o.account]))
	case "deny":
		return outcome(m.links.Deny(ctx, code.UserCode))
	case "poll":
		poll, err := m.links.Poll(ctx, code.DeviceCode)
		if err != nil || poll.Token == nil {
			return outcome(err) + " " + poll.Interval.String()
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.tokens[o.code] != nil {
			return "a second token"
		}
		m.tokens[o.code] = poll.Token
		return "token"
	case "use":
		_, err := m.links.Authenticate(ctx, m.tokens[o.code].AuthToken)
		return outcome(err)
	case "revoke":
		token := m.tokens[o.code]
		return outcome(m.links.RevokeLink(ctx, token.AccountID, token.LinkID, audit.Person()))
	case "revoke all":
		n, err := m.links.RevokeAll(ctx, m.who[o.account], audit.Person())
		return fmt.Sprint(n, outcome(err))
	case "suspend":
		changed, err := m.accounts.Suspend(ctx, m.who[o.account], audit.Operator())
		return fmt.Sprint(changed, outcome(err))
	case "restore":
		changed, err := m.accounts.Restore(ctx, m.who[o.account], audit.Operator())
		return fmt.Sprint(changed, outcome(err))
	default: // sweep
		return outcome(m.links.Sweep(ctx))
	}
}

// checkStored compares the stored links and states with the model.
func (m *machine) checkStored(rt *rapid.T) {
	if !m.agree(rt) {
		rt.Fatalf("the stored links or states differ from the model: %+v", m.model)
	}
}

func (m *machine) agree(rt *rapid.T) bool {
	live, known := map[string]bool{}, 0
	for _, id := range m.who {
		all, err := link.NewStore(m.store).AllLinks(m.t.Context(), id)
		if err != nil {
			rt.Fatal(err)
		}
		known += len(all)
		for _, l := range all {
			live[l.ID] = l.RevokedAt.IsZero()
		}
	}
	for i, c := range m.model.codes {
		if c.linked {
			if known--; live[m.tokens[i].LinkID] == c.revoked {
				return false
			}
		}
	}
	return known == 0 && m.statesAgree(rt)
}

func (m *machine) statesAgree(rt *rapid.T) bool {
	for i, c := range m.model.codes {
		p, err := link.NewStore(m.store).Progress(m.t.Context(), hash.Hash("device_code", m.codes[i].DeviceCode))
		if err != nil && !errors.Is(err, link.ErrUnknown) {
			rt.Fatal(err)
		}
		if gone := err != nil; gone != c.gone || !gone && p.State != c.state {
			return false
		}
	}
	return true
}

// checkTrail compares the trail of each code with the code's history.
func (m *machine) checkTrail(rt *rapid.T) {
	if m.now.Sub(time.Date(m.now.Year(), 1, 1, 0, 0, 0, 0, time.UTC)) > audit.TrailKept-time.Hour {
		return // some lines may already be deleted
	}
	for i, c := range m.model.codes {
		lines, err := m.links.Trail(m.t.Context(), link.Asked{UserCode: m.codes[i].UserCode})
		if err != nil {
			rt.Fatal(err)
		}
		got := map[audit.TrailAction]int{}
		for _, l := range lines {
			got[l.Action]++
		}
		if fmt.Sprint(got) != fmt.Sprint(c.trail) {
			rt.Fatalf("the trail of code %d is %v, want %v as in the model", i, got, c.trail)
		}
	}
}
