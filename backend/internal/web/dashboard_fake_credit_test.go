package web

import (
	"context"
	"fmt"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credit"
)

// fakeCredit is the credit of one account and its projects.
type fakeCredit struct {
	*fakeDashboard
	account   credit.Account
	caps      map[string]credit.Caps // by project, "" for the account
	transfers []credit.Transfer
	usage     []credit.UsageRow
	refusals  []credit.Refusal
}

func newFakeCredit(h *fakeDashboard) *fakeCredit {
	return &fakeCredit{fakeDashboard: h, caps: map[string]credit.Caps{}, account: credit.Account{
		Balance: credit.Balance{Book: "acct_0123456789abcdef0123456789abcdef", Posted: 1_873_200, Held: 20_000,
			Free: 2_000_000, OpenedAt: then},
		Day: credit.Spent{Spent: 12_500, Held: 20_000}, Month: credit.Spent{Spent: 126_800, Held: 20_000},
	}}
}

// spend makes n calls' transfers, after the free credit.
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
	return credit.Project{Caps: f.caps[project], Day: credit.Spent{Spent: 12_500}, Month: credit.Spent{Spent: 126_800}}, nil
}

func (f *fakeCredit) SetCaps(_ context.Context, _, project string, c credit.Caps, by audit.Actor) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.caps[project] = c
	f.note(by, "credit.caps_changed", project, "spending caps")
	return nil
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
