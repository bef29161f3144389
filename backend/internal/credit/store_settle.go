package credit

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/service-dev/service/backend/internal/db"
)

// endedHold is a hold that was open or expired and has been ended.
type endedHold struct {
	id, account, project, day string
	amount, charged           int64
	state                     string
	byKey                     bool
}

const endedHoldColumns = `id, account_id, project, day, amount, charged, state, by_key <> 0`

func scanEndedHold(row db.Row) (h endedHold, err error) {
	err = row.Scan(&h.id, &h.account, &h.project, &h.day, &h.amount, &h.charged, &h.state, &h.byKey)
	return h, err
}

// SettleHold ends a hold and counts its call. It returns the charge, or ErrNoHold.
func (s *Store) SettleHold(ctx context.Context, in Settlement) (charged Amount, err error) {
	var accountID string
	err = s.Retry(ctx, func() (err error) {
		accountID, err = s.accountOfHold(ctx, in.HoldID)
		return err
	})
	if err != nil {
		return 0, err
	}
	var refused error // not an error of the transaction, which other settlements may share
	err = s.writeCall(ctx, accountID, func(ctx context.Context, tx *sql.Tx) (err error) {
		charged, refused, err = s.settle(ctx, tx, accountID, in)
		return err
	})
	if err = cmp.Or(err, refused); err != nil {
		return 0, err
	}
	return charged, nil
}

// accountOfHold returns the account of a hold, which never changes, or ErrNoHold.
func (s *Store) accountOfHold(ctx context.Context, id string) (string, error) {
	return db.One(ctx, s, ErrNoHold, db.Value[string], `SELECT account_id FROM credit_holds WHERE id = $1`, id)
}

// settle ends a hold. If the hold was already settled, settle changes nothing and returns the charge. If it had
// expired, the operator pays for the call. refused is ErrNoHold for an unknown hold.
func (s *Store) settle(
	ctx context.Context, tx *sql.Tx, accountID string, in Settlement,
) (charged Amount, refused, err error) {
	b, err := s.lockBalance(ctx, tx, accountID, "")
	switch {
	case errors.Is(err, ErrNoBook): // the account has just been deleted
		return 0, ErrNoHold, nil
	case err != nil:
		return 0, nil, fmt.Errorf("lock credit balance: %w", err)
	}
	h, err := endHold(ctx, tx, in)
	switch {
	case errors.Is(err, ErrNoHold):
		charged, err = db.One(ctx, tx, ErrNoHold, db.Value[Amount], `SELECT charged FROM credit_holds WHERE id = $1`,
			in.HoldID)
		if errors.Is(err, ErrNoHold) {
			return 0, ErrNoHold, nil
		}
		return charged, nil, err
	case err != nil:
		return 0, nil, fmt.Errorf("settle hold: %w", err)
	}
	writes := transfersOf(h, in, b.book)
	if h.state == "settled" {
		writes = append(writes, h.returnHeld(), h.subtractSpending())
	}
	call := in.Call
	call.Account, call.Project = h.account, h.project
	counts, err := s.countCall(ctx, tx, h.id, call, h.charged, in.At)
	if err != nil {
		return 0, nil, err
	}
	return Amount(h.charged), nil, s.ExecUnordered(ctx, tx, "settle hold", append(writes, counts...)...)
}

// endHold settles an open hold, or marks an expired one as late. It returns ErrNoHold for any other.
func endHold(ctx context.Context, tx *sql.Tx, in Settlement) (endedHold, error) {
	charge := int64(in.Charge)
	if in.Carried {
		charge = 0
	}
	return db.One(ctx, tx, ErrNoHold, scanEndedHold, `UPDATE credit_holds
		SET state = CASE WHEN state = 'open' THEN 'settled' ELSE 'late' END,
			charged = CASE WHEN state <> 'open' THEN 0 WHEN amount < $2 THEN amount ELSE $2 END
		WHERE id = $1 AND state IN ('open', 'expired') RETURNING `+endedHoldColumns, in.HoldID, charge)
}

// transfersOf returns the statements that book the cost of a call. The account pays the charge, and the operator the
// rest.
func transfersOf(h endedHold, in Settlement, book string) []db.Statement {
	cost := int64(in.Charge)
	switch {
	case h.state == "late":
		return transferOf("late:"+h.id, BookOperator, BookUsed, cost, in.At, "")
	case in.Carried:
		return transferOf("carried:"+h.id, BookOperator, BookUsed, cost, in.At, "")
	}
	return append(transferOf("call:"+h.id, book, BookUsed, h.charged, in.At, ""),
		transferOf("short:"+h.id, BookOperator, BookUsed, cost-h.charged, in.At, "")...)
}

// transferOf books an amount. It does nothing if the amount is 0.
func transferOf(id, debit, credited string, amount int64, at time.Time, note string) []db.Statement {
	if amount == 0 {
		return nil
	}
	return []db.Statement{db.Stmt(`INSERT INTO credit_transfers (id, debit, credit, amount, at, note)
		VALUES ($1, $2, $3, $4, $5, $6)`, id, debit, credited, amount, db.ToMS(at), note)}
}

// returnHeld subtracts an ended hold and its charge from the balance.
func (h endedHold) returnHeld() db.Statement {
	return db.Stmt(`UPDATE credit_balances SET held = held - $2, posted = posted - $3 WHERE account_id = $1`,
		h.account, h.amount, h.charged)
}

// subtractSpending moves an ended hold's amount from held to spent, for its project and day. The caller must hold the
// lock on the balance.
func (h endedHold) subtractSpending() db.Statement {
	byKey := int64(0)
	if h.byKey {
		byKey = h.charged
	}
	return db.Stmt(`UPDATE credit_spending SET held = held - $5, spent = spent + $6, key_spent = key_spent + $7
		WHERE account_id = $1 AND (project = '' OR project = $2) AND (period = $3 OR period = $4)`,
		h.account, h.project, h.day, h.day[:len("2006-01")], h.amount, h.charged, byKey)
}

// expireAtOnce is the maximum number of holds that one sweep releases.
const expireAtOnce = 1000

// ExpireHolds releases open holds whose lease ended before now, each in a separate transaction.
func (s *Store) ExpireHolds(ctx context.Context, now time.Time) (n int, err error) {
	due, err := db.All(ctx, s, func(row db.Row) (h endedHold, err error) {
		err = row.Scan(&h.id, &h.account)
		return h, err
	}, `SELECT id, account_id FROM credit_holds
		WHERE state = 'open' AND lease_until < $1 ORDER BY lease_until LIMIT $2`, db.ToMS(now), expireAtOnce)
	if err != nil {
		return 0, fmt.Errorf("list expired holds: %w", err)
	}
	for _, one := range due {
		expired := false
		err := s.write(ctx, one.account, func(ctx context.Context, tx *sql.Tx) (err error) {
			expired, err = s.expire(ctx, tx, one.account, one.id, now)
			return err
		})
		if err != nil {
			return n, fmt.Errorf("return hold: %w", err)
		}
		if expired {
			n++
		}
	}
	return n, nil
}

// expire releases a hold, unless another process has renewed, settled or released it since it was listed.
func (s *Store) expire(ctx context.Context, tx *sql.Tx, accountID, id string, now time.Time) (bool, error) {
	if err := LockBalance(ctx, tx, accountID); err != nil {
		return false, err
	}
	h, err := scanEndedHold(tx.QueryRowContext(ctx, `UPDATE credit_holds SET state = 'expired'
		WHERE id = $1 AND state = 'open' AND lease_until < $2 RETURNING `+endedHoldColumns, id, db.ToMS(now)))
	if err != nil {
		return false, db.ReplaceNoRows(err, nil)
	}
	return true, s.ExecUnordered(ctx, tx, "return hold", h.returnHeld(), h.subtractSpending())
}
