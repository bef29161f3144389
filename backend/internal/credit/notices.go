package credit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// OfBalance marks a Notice about the balance. Notices about caps have CapDay or CapMonth.
const OfBalance = "balance"

// noticeAt is the spent share of a cap or of the balance, in percent, at which a notice is sent.
const noticeAt = 80

// Notice says that most of a cap or of the balance is spent.
type Notice struct {
	AccountID string
	Project   string // whose cap it is; "" for the account
	Of        string // CapDay, CapMonth or OfBalance
	Limit     Amount // the cap, or the balance when money was last added
	Spent     Amount
	ResetsAt  time.Time // of a cap
	Refused   bool      // a call was refused because of it; only in mails

	period string
}

// isNear reports whether enough is spent for a notice. An account without credit, or a cap of 0, has nothing to run out
// of.
func (n Notice) isNear() bool { return n.Limit > 0 && n.Spent*100 >= n.Limit*noticeAt }

// Text tells the owner what is spent and what happens next.
func (n Notice) Text() string {
	next := "Calls that could cost more than the rest are refused"
	if n.Refused {
		next = "A call that could cost more than the rest was refused, and others will be"
	}
	if n.Of == OfBalance {
		return fmt.Sprintf("%s USD of credit are left of %s USD. %s until you top up.", n.Limit-n.Spent, n.Limit, next)
	}
	whose := "Your account"
	if n.Project != "" {
		whose = "The project " + n.Project
	}
	return fmt.Sprintf("%s has spent %s USD of its cap of %s USD a %s. %s until %s, unless you raise the cap.", whose,
		n.Spent, n.Limit, n.Of, next, n.ResetsAt.UTC().Format("2006-01-02 15:04 UTC"))
}

// Notices lists the caps of a project and its account, and the balance, of which most is spent. Without a project it
// lists only the account's. Pages show the notices.
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

// limits lists everything that limits a project's spending.
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
	case errors.Is(err, ErrNoBook): // nothing was spent yet
		return all, nil
	case err != nil:
		return nil, fmt.Errorf("read balance: %w", err)
	}
	return append(all, Notice{AccountID: accountID, Of: OfBalance, Limit: b.Filled, Spent: b.Filled - b.Posted,
		period: OfBalance}), nil
}

// watched is a project whose spending changed, or one of whose calls was refused because of a limit.
type watched struct{ account, project, of string }

// watch remembers the projects that SendNotices has to check. They are lost when the process ends; the next call adds
// its project again.
type watch struct {
	mu   sync.Mutex
	seen map[watched]bool
}

// maxWatched bounds the projects that are remembered between two sweeps.
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

// noteCapped remembers which cap refused a call.
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

// noteCall remembers a call that spent something, or that the credit did not cover.
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

// SendNotices mails the limits of which most is spent: once for each period of a cap and after each top-up of the
// balance, and again if calls are refused because of the limit, but at most once a day. Several processes send one
// mail.
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
