package credit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/service-dev/service/backend/internal/periodic"
	"github.com/service-dev/service/backend/internal/secret"
)

// Lifetimes and intervals.
const (
	// Lease is how long a hold lasts without Renew. The holds of a process that dies are released within Lease plus
	// SweepEvery.
	Lease = time.Minute
	// SweepEvery is the interval between sweeps.
	SweepEvery = 20 * time.Second
	checkEvery = time.Hour
	// lastWrites limits how long Serve settles kept calls and sends notices after its context ends.
	lastWrites = 10 * time.Second

	holdsKept = 7 * 24 * time.Hour // kept so that Settle can be repeated, and for the command admin ledger
	spentKept = 62 * 24 * time.Hour
	usageKept = 400 * 24 * time.Hour
	// CallsKept and MaxCalls limit the individual calls kept per project. Hourly sums are kept longer.
	CallsKept = 30 * 24 * time.Hour
	MaxCalls  = 10_000
)

// Options configure a Ledger.
type Options struct {
	Store  *Store
	Hasher secret.Hasher
	Free   Amount // free credit of each account
	// NeedsProof blocks spending until the account's address is confirmed or an identity provider is linked. The caller
	// sets it if the server can send mail.
	NeedsProof bool
	TopUpURL   string // page of a payment provider; "" if there is none
	// Notify mails a notice to the account's owner. It must not block. It is nil if no mail can be sent.
	Notify func(context.Context, Notice)
	Log    *slog.Logger     // nil discards logs
	Now    func() time.Time // nil means time.Now
}

// Ledger holds, charges and returns credit. Its methods are safe for concurrent use, also by several processes on one
// database.
type Ledger struct {
	o      Options
	watch  watch
	kept   keptSettlements
	outage outage
}

// New returns a ledger. Run Serve for its maintenance.
func New(o Options) *Ledger {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Ledger{o: o}
}

// now returns the time with the precision of stored times.
func (l *Ledger) now() time.Time { return l.o.Now().UTC().Truncate(time.Millisecond) }

// Hold sets the amount aside until Settle, Release or the end of its lease. The amount counts toward the caps of the
// UTC day and month in which the hold was created. It returns *NoCredit, *Reserved, *Unproved, *CapReached,
// *AttestationRequired or ErrNoAccount. Only *Reserved can be resolved by waiting. A hold of amount 0 has no ID and is
// not stored.
func (l *Ledger) Hold(ctx context.Context, r HoldRequest) (Hold, error) {
	if r.Amount < 0 || r.Amount > MaxAmount {
		return Hold{}, fmt.Errorf("hold %d: %w", r.Amount, ErrBadAmount)
	}
	h := Hold{Account: r.Account, Project: r.Project, Amount: r.Amount, ByKey: r.ByKey}
	if r.Amount == 0 {
		return h, nil
	}
	if l.o.NeedsProof {
		who, err := l.o.Store.CreditHolder(ctx, r.Account)
		if err != nil {
			return Hold{}, fmt.Errorf("hold credit: %w", err)
		}
		if !who.Proved {
			return Hold{}, &Unproved{}
		}
	}
	now := l.now()
	h.ID, h.LeaseUntil = uuid.Must(uuid.NewV7()).String(), now.Add(Lease)
	err := l.withBook(ctx, r.Account, func() error { return l.o.Store.InsertHold(ctx, h, now) })
	if err != nil {
		l.noteCapped(r, err)
		if none := (*NoCredit)(nil); errors.As(err, &none) {
			none.TopUp = l.topUpOf(ctx, r.Account)
		}
		return Hold{}, fmt.Errorf("hold credit: %w", err)
	}
	return h, nil
}

// Renew extends the lease of a long call. Call it at least every Lease/3. If it returns ErrHoldEnded or ErrNoHold,
// cancel the call, because its further cost is no longer covered.
func (l *Ledger) Renew(ctx context.Context, id string) error {
	if id == "" {
		return nil
	}
	began := l.now()
	err := l.o.Store.RenewHold(ctx, id, began.Add(Lease))
	if err != nil && !errors.Is(err, ErrHoldEnded) && !errors.Is(err, ErrNoHold) && ctx.Err() == nil {
		l.outage.failed(began, l.now())
	}
	return err
}

// Settle charges the call at most its hold, returns the rest and counts the call, all in one transaction. It returns
// the amount charged. Only the first Settle or Release of a hold has an effect; later calls return the amount charged
// then. If a sweep has released the hold, nothing is charged, even if the call ends later. The operator pays any cost
// beyond the charge. Settle returns ErrNoHold for an unknown hold, and ErrKept if it could not write the settlement and
// Serve will retry it.
func (l *Ledger) Settle(ctx context.Context, id string, charge Amount, call Call) (Amount, error) {
	return l.settle(ctx, Settlement{HoldID: id, Charge: charge, Call: call})
}

func (l *Ledger) settle(ctx context.Context, s Settlement) (Amount, error) {
	if s.HoldID == "" {
		return 0, l.Record(ctx, s.Call)
	}
	s.Call.Source = SourceCredit
	s.Call, s.Charge, s.At = s.Call.bounded(), min(max(s.Charge, 0), MaxAmount), l.now()
	charged, err := l.o.Store.SettleHold(ctx, s)
	if err != nil && !errors.Is(err, ErrNoHold) {
		err = l.keep(ctx, s, err)
	}
	if err != nil {
		return 0, fmt.Errorf("settle hold %s: %w", s.HoldID, err)
	}
	l.noteCall(s.Call, charged)
	return charged, nil
}

// Release returns the held amount and counts the call without a charge.
func (l *Ledger) Release(ctx context.Context, id string, call Call) error {
	_, err := l.Settle(ctx, id, 0, call)
	return err
}

// Carry returns the held amount and counts the call. The operator pays the call's cost.
func (l *Ledger) Carry(ctx context.Context, id string, cost Amount, call Call) error {
	_, err := l.settle(ctx, Settlement{HoldID: id, Charge: cost, Carried: true, Call: call})
	return err
}

// Record counts a call that is not paid from credit: a call with another source, or a refused call. It does not count a
// call of an unknown project.
func (l *Ledger) Record(ctx context.Context, call Call) error {
	err := l.o.Store.RecordCall(ctx, uuid.Must(uuid.NewV7()).String(), call.bounded(), l.now())
	if err != nil {
		return fmt.Errorf("record call: %w", err)
	}
	l.noteCall(call, 0)
	return nil
}

// maxCount limits each number that is summed, so that no sum can overflow.
const maxCount = 1_000_000_000_000

func (c Call) bounded() Call {
	for _, n := range []*int64{&c.TextIn, &c.TextCached, &c.TextOut, &c.AudioIn, &c.AudioCached, &c.AudioOut} {
		*n = min(max(*n, 0), maxCount)
	}
	c.Duration = min(max(c.Duration, 0), maxCount*time.Microsecond)
	return c
}

// withBook runs f. If f returns ErrNoBook, it creates the account's balance and runs f again.
func (l *Ledger) withBook(ctx context.Context, accountID string, f func() error) error {
	err := f()
	if !errors.Is(err, ErrNoBook) {
		return err
	}
	if err := l.open(ctx, accountID); err != nil {
		return err
	}
	return f()
}

// Serve settles kept calls, sweeps and checks the ledger, and sends notices, until ctx ends. Then it tries once more to
// settle the kept calls, and logs the calls that remain uncharged.
func (l *Ledger) Serve(ctx context.Context) error {
	var checked time.Time
	err := periodic.Run(ctx, SweepEvery, l.o.Log, "maintain the ledger", func(ctx context.Context) error {
		// Settle first, because the sweep would release the holds of kept calls.
		err := errors.Join(l.SettleKept(ctx), l.Sweep(ctx), l.SendNotices(ctx))
		if now := l.now(); now.Sub(checked) >= checkEvery {
			checked = now
			err = errors.Join(err, l.prune(ctx), l.alarm(ctx))
		}
		return err
	})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWrites)
	defer cancel()
	err = errors.Join(err, l.SettleKept(ctx), l.SendNotices(ctx))
	for _, s := range l.kept.take() {
		l.logLost(ctx, s)
	}
	return err
}

// Sweep releases holds whose lease has expired, including holds of other processes. After a database outage, it
// releases nothing for another Lease.
func (l *Ledger) Sweep(ctx context.Context) error {
	now := l.now()
	limited, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	n, err := l.o.Store.ExpireHolds(limited, l.outage.limit(now))
	if err != nil && ctx.Err() == nil {
		l.outage.failed(now, l.now())
	}
	if n > 0 {
		l.o.Log.WarnContext(ctx, "released expired holds", "holds", n)
	}
	return err
}

func (l *Ledger) prune(ctx context.Context) error {
	now := l.now()
	day, _ := Periods(now.Add(-spentKept))
	return l.o.Store.PruneCredit(ctx, Prune{
		Holds: now.Add(-holdsKept), Usage: now.Add(-usageKept), Calls: now.Add(-CallsKept), Grants: now.Add(-grantKept),
		Period: day[:len("2006-01")], CallsOfProject: MaxCalls, Recent: now.Add(-24 * checkEvery),
	})
}

// Check recomputes every sum of the ledger from its rows. It repairs nothing, because a difference is a bug to
// investigate.
func (l *Ledger) Check(ctx context.Context) (Report, error) {
	return l.o.Store.CheckCredit(ctx, l.now())
}

// alarm logs each difference that Check finds.
func (l *Ledger) alarm(ctx context.Context) error {
	report, err := l.Check(ctx)
	for _, d := range report.Differences {
		l.o.Log.ErrorContext(ctx, "the ledger does not add up", "account", d.AccountID, "sum", d.What,
			"stored", d.Stored.String(), "computed", d.Computed.String())
	}
	return err
}

// Periods returns the names of the UTC day and month of t, such as 2026-01-02 and 2026-01.
func Periods(t time.Time) (day, month string) {
	day = t.UTC().Format(time.DateOnly)
	return day, day[:len("2006-01")]
}

// Resets returns the ends of the UTC day and month of t.
func Resets(t time.Time) (day, month time.Time) {
	y, m, d := t.UTC().Date()
	return time.Date(y, m, d+1, 0, 0, 0, 0, time.UTC), time.Date(y, m+1, 1, 0, 0, 0, 0, time.UTC)
}
