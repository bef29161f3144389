package credit

import (
	"context"
)

// Store keeps the ledger's rows. Each method is one transaction, durable when it returns.
type Store interface {
	HoldCredit(ctx context.Context, r HoldRequest) (Hold, error)
	RenewHold(ctx context.Context, id string) error
	SettleHold(ctx context.Context, id string, charge Amount, call Call) (Amount, error)
	RecordCall(ctx context.Context, call Call) error
}

// Ledger holds, charges and gives back credit. Its methods are safe for concurrent use and by several processes on one
// database.
type Ledger struct{ store Store }

// Hold sets the amount aside until Settle, Release or the end of its lease. It fails with *NoCredit, *Reserved,
// *Unproved or *CapReached, of which *Reserved passes by itself.
func (l *Ledger) Hold(ctx context.Context, r HoldRequest) (Hold, error) { return l.store.HoldCredit(ctx, r) }

// Renew extends the lease of a call that takes long.
func (l *Ledger) Renew(ctx context.Context, id string) error { return l.store.RenewHold(ctx, id) }

// Settle charges the call, never more than its hold, gives back the rest and counts the call, in one transaction. It
// returns what was charged. Of several settles of one hold the first counts and the others return its charge.
func (l *Ledger) Settle(ctx context.Context, id string, charge Amount, call Call) (Amount, error) {
	return l.store.SettleHold(ctx, id, charge, call)
}

// Release gives the hold back and counts the call, without a charge.
func (l *Ledger) Release(ctx context.Context, id string, call Call) error {
	_, err := l.store.SettleHold(ctx, id, 0, call)
	return err
}

// Record counts a call without money: another source than credit, or a refusal.
func (l *Ledger) Record(ctx context.Context, call Call) error { return l.store.RecordCall(ctx, call) }
