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

// ErrKept is returned for a settlement that could not be written. Serve writes it once the database answers again.
var ErrKept = errors.New("the settlement is kept until the database answers")

const (
	// maxKept bounds the settlements that wait for the database.
	maxKept = 10_000
	// keptAtOnce is how many of them are written at once; the store groups them.
	keptAtOnce = 64
	// attemptTimeout bounds an attempt to write them, and a sweep: a database may hang, too.
	attemptTimeout = 30 * time.Second
)

// keptSettlements wait for the database. Those that are left when the process ends are logged.
type keptSettlements struct {
	mu  sync.Mutex
	all []Settlement
}

// add reports false if too many are kept already.
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

// keep keeps a settlement that failed with err.
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
	l.o.Log.ErrorContext(ctx, "call was not charged: the operator pays", "cost", s.Charge.String(), "hold", s.HoldID,
		"project", s.Call.Project, "model", s.Call.Model)
}

// SettleKept writes the kept settlements. It tries one first, another each time: if that fails, the rest waits. If one
// fails, sweeps leave the holds of the others for a while.
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
	l.o.Log.WarnContext(ctx, "settled calls that the database could not settle when they ended",
		"calls", int64(len(all))-failed.Load())
	return err
}

// settleAgain has nothing to do for a hold whose account was deleted.
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

// outage is the last time in which renewals, sweeps or kept settlements failed. Until its end, only holds whose lease
// ended before it are given back, so that every process has the time to renew or settle what it could not reach.
type outage struct {
	mu         sync.Mutex
	began, end time.Time
}

// limit returns the time before which a lease must have ended to be given back now.
func (o *outage) limit(now time.Time) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now.Before(o.end) {
		return o.began
	}
	return now
}

// failed notes that an attempt that began at a time has failed now.
func (o *outage) failed(began, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !now.Before(o.end) {
		o.began = began
	}
	o.end = now.Add(Lease)
}
