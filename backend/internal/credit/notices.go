package credit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// OfBalance marks a Notice about the balance. A notice about a cap has CapDay or CapMonth instead.
const OfBalance = "balance"

// noticeAt is the percentage of a cap or of the balance at which a notice is sent.
const noticeAt = 80

// Notice reports that most of a cap or of the balance is spent.
type Notice struct {
	AccountID string
	Project   string // project of the cap; "" for the account
	Of        string // CapDay, CapMonth or OfBalance
	Limit     Amount // the cap, or the balance when it was last topped up
	Spent     Amount
	ResetsAt  time.Time // when the cap resets; zero for the balance
	Refused   bool      // set in mails only, if a call was refused because of the limit

	period string
}

// isNear reports whether enough is spent for a notice. It returns false for an account without credit and for a cap of
// 0, because neither can run out.
func (n Notice) isNear() bool { return n.Limit > 0 && n.Spent*100 >= n.Limit*noticeAt }

// Text returns a message for the owner with the amount spent and its consequences.
func (n Notice) Text() string {
	next := "Calls that could cost more than what is left are refused"
	if n.Refused {
		next = "A call that could cost more than what is left was refused, and others will be"
	}
	if n.Of == OfBalance {
		return fmt.Sprintf("$%s of credit are left of $%s. %s until you top up.", n.Limit-n.Spent, n.Limit, next)
	}
	whose := "Your account"
	if n.Project != "" {
		whose = "The project " + n.Project
	}
	return fmt.Sprintf("%s has spent $%s of its cap of $%s a %s. %s until %s, unless you raise the cap.", whose,
		n.Spent, n.Limit, n.Of, next, n.ResetsAt.UTC().Format("2 Jan 2006, 15:04 UTC"))
}

// Notices returns a notice for each cap of a project and its account, and for the balance, if most of it is spent. If
// project is empty, it returns only the account's notices. The pages show them.
func (l *Ledger) Notices(ctx context.Context, accountID, project string) ([]Notice, error) {
	all, err := l.limits(ctx, accountID, project)
	var near []Notice
	for _, n := range all {
		if n.isNear() {
			near = append(near, n)
		}
	}
	return near, err
}

// limits lists all limits that apply to a project's spending.
func (l *Ledger) limits(ctx context.Context, accountID, project string) (all []Notice, err error) {
	whose := []string{""}
	if project != "" {
		whose = []string{project, ""}
	}
	now := l.now()
	dayName, monthName := Periods(now)
	dayEnds, monthEnds := Resets(now)
	for _, p := range whose {
		spent, err := l.Project(ctx, accountID, p)
		if err != nil {
			return nil, err
		}
		if c := spent.Caps.Day; c != nil {
			all = append(all, Notice{accountID, p, CapDay, *c, spent.Day.Spent, dayEnds, false, dayName})
		}
		if c := spent.Caps.Month; c != nil {
			all = append(all, Notice{accountID, p, CapMonth, *c, spent.Month.Spent, monthEnds, false, monthName})
		}
	}
	b, err := l.o.Store.Balance(ctx, accountID)
	switch {
	case errors.Is(err, ErrNoBook): // nothing has been spent yet
		return all, nil
	case err != nil:
		return nil, fmt.Errorf("read balance: %w", err)
	}
	return append(all, Notice{AccountID: accountID, Of: OfBalance, Limit: b.Filled, Spent: b.Filled - b.Posted,
		period: OfBalance}), nil
}

// watched is a project whose spending changed or whose call was refused because of a limit.
type watched struct{ account, project, of string }

// watch collects the projects that SendNotices must check. It is lost when the process ends, but a project's next call
// adds it again.
type watch struct {
	mu   sync.Mutex
	seen map[watched]bool
}

// maxWatched is the maximum number of projects collected between two sweeps.
const maxWatched = 10_000

func (w *watch) add(one watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen == nil {
		w.seen = map[watched]bool{}
	}
	if len(w.seen) < maxWatched {
		w.seen[one] = true
	}
}

func (w *watch) take() map[watched]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.seen
	w.seen = nil
	return seen
}

// noteCapped records which cap refused a call.
func (l *Ledger) noteCapped(r HoldRequest, err error) {
	var capped *CapReached
	if !errors.As(err, &capped) {
		return
	}
	one := watched{account: r.Account, of: capped.Cap}
	if capped.Of == OfProject {
		one.project = r.Project
	}
	l.note(one)
}

// noteCall records a call that was charged, or that the credit did not cover.
func (l *Ledger) noteCall(c Call, charged Amount) {
	switch {
	case charged > 0:
		l.note(watched{account: c.Account, project: c.Project})
	case c.Outcome == (*NoCredit)(nil).Code():
		l.note(watched{account: c.Account, of: OfBalance})
	}
}

func (l *Ledger) note(one watched) {
	if l.o.Notify != nil && one.account != "" {
		l.watch.add(one)
	}
}

// SendNotices mails a notice for each limit that is mostly spent. It mails one per period for a cap, one after each
// top-up for the balance, and another if calls are refused because of the limit. It sends at most one mail per day
// and limit, even with several processes.
func (l *Ledger) SendNotices(ctx context.Context) (err error) {
	for one := range l.watch.take() {
		all, readErr := l.limits(ctx, one.account, one.project)
		err = errors.Join(err, readErr)
		for _, n := range all {
			n.Refused = n.Of == one.of && n.Project == one.project && n.Limit > 0
			if !n.Refused && (one.of != "" || !n.isNear()) {
				continue
			}
			day, _ := Periods(l.now())
			claimed, claimErr := l.o.Store.ClaimNotice(ctx, n, n.period, day)
			err = errors.Join(err, claimErr)
			if claimed {
				l.o.Notify(ctx, n)
			}
		}
	}
	return err
}
