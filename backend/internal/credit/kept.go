package credit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// ErrKept is returned for a settlement that could not be written. Serve writes it once the database responds again.
var ErrKept = errors.New("the settlement is kept until the database responds")

const (
	// maxKept is the maximum number of settlements waiting for the database.
	maxKept = 10_000
	// keptAtOnce is the number of kept settlements that are written concurrently, so that the store can batch them.
	keptAtOnce = 64
	// attemptTimeout limits each attempt to write kept settlements, and each sweep, because a database may hang.
	attemptTimeout = 30 * time.Second
)

// keptSettlements holds settlements that wait for the database. Settlements that remain when the process ends are
// logged.
type keptSettlements struct {
	mu  sync.Mutex
	all []Settlement
}

// add keeps a settlement. It returns false if too many are already kept.
func (k *keptSettlements) add(s Settlement) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.all) >= maxKept {
		return false
	}
	k.all = append(k.all, s)
	return true
}

func (k *keptSettlements) take() (all []Settlement) {
	k.mu.Lock()
	defer k.mu.Unlock()
	all, k.all = k.all, nil
	return all
}

// keep keeps a settlement that failed with err, so that Serve can retry it.
func (l *Ledger) keep(ctx context.Context, s Settlement, err error) error {
	if !l.kept.add(s) {
		l.logLost(ctx, s)
		return err
	}
	return fmt.Errorf("%w: %w", ErrKept, err)
}

func (l *Ledger) logLost(ctx context.Context, s Settlement) {
	if s.Charge == 0 {
		return
	}
	l.o.Log.ErrorContext(ctx, "failed to charge call; the operator pays", "cost", s.Charge.String(), "hold", s.HoldID,
		"project", s.Call.Project, "model", s.Call.Model)
}

// SettleKept writes the kept settlements. It first tries one, a different one each time, and tries the others only if
// that succeeds. After a failure, sweeps do not release the holds of the remaining settlements for a while.
func (l *Ledger) SettleKept(ctx context.Context) error {
	all := l.kept.take()
	if len(all) == 0 {
		return nil
	}
	began := l.now()
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	if err := l.settleAgain(ctx, all[0]); err != nil {
		l.outage.failed(began, l.now())
		for _, s := range append(all[1:], all[0]) {
			_ = l.keep(ctx, s, err)
		}
		return fmt.Errorf("settle %d calls: %w", len(all), err)
	}
	var group errgroup.Group
	group.SetLimit(keptAtOnce)
	var failed atomic.Int64
	for _, s := range all[1:] {
		group.Go(func() error {
			err := l.settleAgain(ctx, s)
			if err != nil {
				failed.Add(1)
				_ = l.keep(ctx, s, err)
			}
			return err
		})
	}
	err := group.Wait()
	if err != nil {
		l.outage.failed(began, l.now())
	}
	l.o.Log.WarnContext(ctx, "settled kept calls after a database failure",
		"calls", int64(len(all))-failed.Load())
	return err
}

// settleAgain retries a settlement. It does nothing if the account of the hold was deleted.
func (l *Ledger) settleAgain(ctx context.Context, s Settlement) error {
	charged, err := l.o.Store.SettleHold(ctx, s)
	if errors.Is(err, ErrNoHold) {
		return nil
	}
	if err == nil {
		l.noteCall(s.Call, charged)
	}
	return err
}

// outage is the most recent period in which renewals, sweeps or kept settlements failed. Until its end, sweeps release
// only holds whose lease expired before the outage began, so that every process has time to renew or settle its holds.
type outage struct {
	mu         sync.Mutex
	began, end time.Time
}

// limit returns the time before which a lease must have expired for its hold to be released now.
func (o *outage) limit(now time.Time) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now.Before(o.end) {
		return o.began
	}
	return now
}

// failed records an attempt that began at began and failed at now.
func (o *outage) failed(began, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !now.Before(o.end) {
		o.began = began
	}
	o.end = now.Add(Lease)
}
