package credit

import (
	"context"
	"database/sql"
)

// CommitTogether writes holds and settlements in one transaction, in this order, and returns the charge and the error
// of each.
func CommitTogether(s *Store, work ...any) (charged []Amount, errs []error) {
	charged, refused := make([]Amount, len(work)), make([]error, len(work))
	writes := make([]func(context.Context, *sql.Tx) error, len(work))
	for i, one := range work {
		writes[i] = func(ctx context.Context, tx *sql.Tx) (err error) {
			switch one := one.(type) {
			case Hold:
				refused[i], err = s.hold(ctx, tx, one, one.LeaseUntil.Add(-Lease))
			case Settlement:
				var accountID string
				if accountID, err = s.accountOfHold(ctx, one.HoldID); err == nil {
					charged[i], refused[i], err = s.settle(ctx, tx, accountID, one)
				}
			}
			return err
		}
	}
	errs = s.WriteTogether(writes...)
	for i := range errs {
		if errs[i] == nil {
			errs[i] = refused[i]
		}
	}
	return charged, errs
}
