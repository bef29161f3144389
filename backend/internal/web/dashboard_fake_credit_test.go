package web

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/gateway/wire"
)

// fakeCredit is the credit of one account and its projects.
type fakeCredit struct {
	*fakeDashboard
	account   credit.Account
	caps      map[string]credit.Caps // by project; "" for the account
	transfers []credit.Transfer
	usage     []credit.UsageRow
	refusals  []credit.Refusal
	notices   []credit.Notice
	source    string // the key source; "" means credit
}

func newFakeCredit(h *fakeDashboard) *fakeCredit {
	return &fakeCredit{fakeDashboard: h, caps: map[string]credit.Caps{}, account: credit.Account{
		Balance: credit.Balance{Book: "acct_0123456789abcdef0123456789abcdef", Posted: 1_873_200, Held: 20_000,
			Free: 2_000_000, OpenedAt: then},
		Day: credit.Spent{Spent: 12_500, Held: 20_000}, Month: credit.Spent{Spent: 126_800, Held: 20_000},
	}}
}

// spend sets the transfers to the free credit followed by n calls.
func (f *fakeCredit) spend(n int) {
	f.transfers = []credit.Transfer{{ID: "free:x", Debit: credit.BookFree, Amount: 2_000_000, At: then}}
	for i := range n {
		f.transfers = append([]credit.Transfer{{ID: fmt.Sprintf("call:%d", i), Credit: credit.BookUsed,
			Amount: credit.Amount(i + 1), At: then.Add(time.Duration(i) * time.Minute)}}, f.transfers...)
	}
}

func (f *fakeCredit) Account(_ context.Context, account string) (credit.Account, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if account != adaID {
		return credit.Account{}, nil
	}
	own := f.account
	own.Caps = f.caps[""]
	return own, nil
}

func (f *fakeCredit) Transfers(_ context.Context, _ string, skip, limit int) ([]credit.Transfer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.transfers[min(skip, len(f.transfers)):]
	return list[:min(limit, len(list))], nil
}

func (f *fakeCredit) Project(_ context.Context, _, project string) (credit.Project, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return credit.Project{Caps: f.caps[project],
		Day: credit.Spent{Spent: 12_500}, Month: credit.Spent{Spent: 126_800}}, nil
}

func (f *fakeCredit) SetCaps(_ context.Context, _, project string, c credit.Caps, by audit.Actor) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if was := f.caps[project].Version; c.Version != was {
		return &credit.ConflictError{Current: was}
	}
	c.Version++
	f.caps[project] = c
	f.note(by, "credit.caps_changed", project, "spending caps").Before = []byte(`{"day":null}`)
	return nil
}

func (f *fakeCredit) UndoCaps(_ context.Context, _ string, e audit.Entry, by audit.Actor) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.caps[e.Project] = credit.Caps{Version: f.caps[e.Project].Version + 1}
	f.note(by, "credit.caps_undone", e.Project, "spending caps")
	return nil
}

func (f *fakeCredit) Notices(_ context.Context, account, project string) ([]credit.Notice, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if account != adaID {
		return nil, nil
	}
	return slices.DeleteFunc(slices.Clone(f.notices), func(n credit.Notice) bool {
		return n.Project != "" && n.Project != project
	}), nil
}

func (f *fakeCredit) Usage(_ context.Context, q credit.UsageQuery, row func(credit.UsageRow) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, u := range f.usage {
		if u.Project == q.Project && !u.Hour.Before(q.From) && u.Hour.Before(q.To) {
			if err := row(u); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *fakeCredit) Refusals(_ context.Context, q credit.UsageQuery) ([]credit.Refusal, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if q.Project != hello {
		return nil, nil
	}
	return f.refusals, nil
}

type fakeModels struct{ *fakeDashboard }

func (f fakeModels) Available(context.Context, gateway.Caller) ([]gateway.Availability, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.models, nil
}

// spendOnModels adds two weeks of calls, with models of every kind.
func (f *fakeCredit) spendOnModels(now time.Time) {
	paid := &gateway.Provider{ID: "openai", Name: "OpenAI", OwnKeys: "openai"}
	standard := &gateway.Model{ID: "standard", Name: "Standard", Provider: paid, API: wire.Chat,
		Prices: wire.Prices{In: 250_000, Cached: 25_000, Out: 2_000_000}}
	careful := &gateway.Model{ID: "careful", Name: "Careful", Provider: &gateway.Provider{ID: "anthropic",
		Name: "Anthropic"}, API: wire.Messages, Prices: wire.Prices{In: 1_000_000, Cached: 100_000, Out: 5_000_000}}
	local := &gateway.Model{ID: "local-small", Name: "Local", Provider: &gateway.Provider{ID: "ollama",
		Name: "Ollama on this machine", Local: true}, API: wire.Chat}
	unpriced := &gateway.Model{ID: "new", Name: "New", Provider: paid, API: wire.Responses,
		Why: "no price for text_cached"}
	f.models = []gateway.Availability{{ID: gateway.Assistant, Model: standard}, {ID: "standard", Model: standard},
		{ID: "careful", Model: careful}, {ID: "local-small", Model: local},
		{ID: "new", Model: unpriced, Why: unpriced.Why}}
	for day := range 14 {
		at := now.Add(-time.Duration(day) * 24 * time.Hour).Truncate(time.Hour)
		for i, m := range []struct{ model, kind, source string }{{"standard", "chat", "credit"},
			{"careful", "messages", "credit"}, {"local-small", "chat", "local"}} {
			u := credit.UsageRow{Project: hello, Model: m.model, Kind: m.kind, Source: m.source, Hour: at,
				Calls: int64(20 - day), Failed: int64(day % 3), TextIn: int64(4000 * (day + 1)), TextCached: 1000,
				TextOut: int64(900 * (14 - day))}
			if m.source == "credit" {
				u.Charged = credit.Amount(2_600*(14-day) + 900*i*day)
			}
			f.usage = append(f.usage, u)
		}
	}
	f.refusals = []credit.Refusal{{Code: gateway.CodeCapReached, Count: 12, LastAt: now.Add(-time.Hour)},
		{Code: wire.UnsupportedParameter, Count: 3, LastAt: now.Add(-30 * time.Hour)},
		{Code: "something_new", Count: 1, LastAt: now.Add(-40 * time.Hour)}}
}

func (f *fakeCredit) KeySource(context.Context, string, string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return cmp.Or(f.source, gateway.KeySourceCredit), nil
}

func (f *fakeCredit) SetKeySource(_ context.Context, _, project, source string, by audit.Actor) error {
	if source != gateway.KeySourceCredit && source != gateway.KeySourceOwn {
		return gateway.ErrKeySource
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.source = source
	f.note(by, "gateway.key_source_changed", project, source)
	return nil
}

// fakeServers are the local servers of the project hello.
type fakeServers struct {
	*fakeDashboard
	list []gateway.LocalServer
	err  error // the error that Add returns
	// leftOut is the number of models that a check reports as omitted.
	leftOut int
}

func (f *fakeServers) List(_ context.Context, _, project string) ([]gateway.LocalServer, error) {
	if project != hello {
		return nil, nil
	}
	return f.list, nil
}

func (f *fakeServers) Add(_ context.Context, _, project, id, address, key string, by audit.Actor) (
	gateway.LocalServer, error) {
	if f.err != nil {
		return gateway.LocalServer{}, f.err
	}
	s := gateway.LocalServer{ID: id, BaseURL: address, Keyed: key != "",
		Models: []string{"a", "b"}, Checked: then, LeftOut: f.leftOut}
	f.list = append(f.list, s)
	f.note(by, "gateway.server_added", project, id)
	return s, nil
}

func (f *fakeServers) Check(_ context.Context, _, _, id string) (gateway.LocalServer, error) {
	for i := range f.list {
		if f.list[i].ID == id {
			f.list[i].Problem = "it does not answer: start it, then check again"
			return f.list[i], nil
		}
	}
	return gateway.LocalServer{}, gateway.ErrNoServer
}

func (f *fakeServers) Remove(_ context.Context, _, project, id string, by audit.Actor) error {
	f.list = slices.DeleteFunc(f.list, func(s gateway.LocalServer) bool { return s.ID == id })
	f.note(by, "gateway.server_removed", project, id)
	return nil
}
