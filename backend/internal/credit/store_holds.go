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

// The order of locks
//
// A transaction that changes the balance, holds, sums or calls of an account first locks the account's balance. If
// there is no balance, it locks the account's row. It locks projects afterwards. This order avoids deadlocks.
// Concurrent writes of one account would wait for each other's commits, so they share transactions: see
// db.WriteShared.

// write runs f in a transaction that it shares with concurrent writes of the account.
func (s *Store) write(ctx context.Context, accountID string, f func(ctx context.Context, tx *sql.Tx) error) error {
	return s.WriteShared(ctx, "credit of "+accountID, f)
}

// LockBalance blocks other transactions that change the balance, holds or sums of the account.
func LockBalance(ctx context.Context, tx *sql.Tx, accountID string) error {
	return db.Exec(ctx, tx, "lock credit balance", `UPDATE credit_balances SET held = held WHERE account_id = $1`,
		accountID)
}

// lockedBalance is a balance that no other transaction can change.
type lockedBalance struct {
	book         string
	posted, held int64
	caps         periodCaps // caps of the account
	projectCaps  periodCaps
	keys         sql.NullInt64 // daily allowance of the project for calls with a key alone; NULL means no limit
}

// periodCaps limit the spending of a day and a month; NULL means no limit.
type periodCaps struct{ day, month sql.NullInt64 }

func (c periodCaps) any() bool { return c.day.Valid || c.month.Valid }

// lockBalance locks and reads the balance of an account, and reads the caps of one of its projects. It returns
// ErrNoBook if the account has no balance.
func (s *Store) lockBalance(ctx context.Context, tx *sql.Tx, accountID, project string) (lockedBalance, error) {
	if s.Postgres() && project != "" {
		// Lock in a separate statement: a statement that waits for a lock reads other tables as they were before, and
		// would miss a cap set meanwhile.
		err := db.Exec(ctx, tx, "lock credit balance", `SELECT 1 FROM credit_balances WHERE account_id = $1 FOR UPDATE`,
			accountID)
		if err != nil {
			return lockedBalance{}, err
		}
	}
	return db.One(ctx, tx, ErrNoBook, func(row db.Row) (b lockedBalance, err error) {
		err = row.Scan(&b.book, &b.posted, &b.held, &b.caps.day, &b.caps.month, &b.projectCaps.day, &b.projectCaps.month,
			&b.keys)
		return b, err
	}, `SELECT b.book, b.posted, b.held, b.day_cap, b.month_cap, p.day_cap, p.month_cap, p.key_allowance
		FROM credit_balances b
		LEFT JOIN gateway_settings p ON p.account_id = b.account_id AND p.app_id = $2
		WHERE b.account_id = $1`+s.ForUpdate("b"), accountID, project)
}

// InsertHold sets money aside. It returns ErrNoBook, *NoCredit, *Reserved, *CapReached or
// *AttestationRequired.
func (s *Store) InsertHold(ctx context.Context, h Hold, at time.Time) error {
	var refused error // not an error of the transaction, which other holds may share
	err := s.write(ctx, h.Account, func(ctx context.Context, tx *sql.Tx) (err error) {
		refused, err = s.hold(ctx, tx, h, at)
		return err
	})
	return cmp.Or(err, refused)
}

// hold inserts a hold if the balance and the caps allow it. Otherwise it returns the reason.
func (s *Store) hold(ctx context.Context, tx *sql.Tx, h Hold, at time.Time) (refused, err error) {
	b, err := s.lockBalance(ctx, tx, h.Account, h.Project)
	switch {
	case errors.Is(err, ErrNoBook):
		return ErrNoBook, nil
	case err != nil:
		return nil, fmt.Errorf("lock credit balance: %w", err)
	}
	if refused := refusal(h.Amount, b.posted, b.held); refused != nil {
		return refused, nil
	}
	if refused, err := refusalOfLimits(ctx, tx, b, h, at); refused != nil || err != nil {
		return refused, err
	}
	day, _ := Periods(at)
	return nil, s.ExecUnordered(ctx, tx, "insert hold",
		db.Stmt(`INSERT INTO credit_holds
				(id, account_id, project, amount, charged, state, day, created_at, lease_until, by_key)
			VALUES ($1, $2, $3, $4, 0, 'open', $5, $6, $7, $8)`,
			h.ID, h.Account, h.Project, int64(h.Amount), day, db.ToMS(at), db.ToMS(h.LeaseUntil), db.BoolInt(h.ByKey)),
		db.Stmt(`UPDATE credit_balances SET held = held + $2 WHERE account_id = $1`, h.Account, int64(h.Amount)),
		addSpending(h, at))
}

// refusal returns the reason why an amount cannot be taken from a balance, or nil.
func refusal(needed Amount, posted, held int64) error {
	available := Amount(posted - held)
	switch {
	case needed <= available:
		return nil
	case needed <= Amount(posted):
		return &Reserved{Needed: needed, Available: available, Held: Amount(held)}
	}
	return &NoCredit{Needed: needed, Available: available, Held: Amount(held)}
}

// refusalOfLimits returns the reason why the caps or the allowance of a project's keys refuse a hold, or nil. It
// prefers a limit that would refuse the hold even without the calls in flight. The caller must hold the lock on the
// balance.
func refusalOfLimits(
	ctx context.Context, tx *sql.Tx, b lockedBalance, h Hold, at time.Time,
) (refused, err error) {
	if b.caps.any() || b.projectCaps.any() {
		refused, err = refusalOfCaps(ctx, tx, b, h, at)
	}
	_, passes := refused.(*Reserved) //nolint:errorlint // it is not wrapped
	if err != nil || refused != nil && !passes || !b.keys.Valid || !h.ByKey {
		return refused, err
	}
	byKeys, err := refusalOfAllowance(ctx, tx, Amount(b.keys.Int64), h, at)
	if required, ok := byKeys.(*AttestationRequired); ok { //nolint:errorlint // it is not wrapped
		return required, err
	}
	return cmp.Or(refused, byKeys), err
}

// refusalOfCaps returns the reason why caps refuse a hold, or nil. It prefers a cap that would refuse the hold even
// without the calls in flight. The caller must hold the lock on the balance.
func refusalOfCaps(
	ctx context.Context, tx *sql.Tx, b lockedBalance, h Hold, at time.Time,
) (refused, err error) {
	type sum struct{ project, period string }
	day, month := Periods(at)
	sums := map[sum]Spent{}
	err = db.Each(ctx, tx, func(row db.Row) error {
		var of sum
		var spent Spent
		err := row.Scan(&of.project, &of.period, &spent.Spent, &spent.Held)
		sums[of] = spent
		return err
	}, `SELECT project, period, spent, held FROM credit_spending WHERE account_id = $1
		AND (project = '' OR project = $2) AND (period = $3 OR period = $4)`, h.Account, h.Project, day, month)
	if err != nil {
		return nil, fmt.Errorf("read spending: %w", err)
	}
	dayEnds, monthEnds := Resets(at)
	for _, c := range []struct { // ordered as they are reported to apps
		limit sql.NullInt64
		of    string
		cap   string
		spent Spent
		ends  time.Time
	}{
		{b.projectCaps.day, OfProject, CapDay, sums[sum{h.Project, day}], dayEnds},
		{b.projectCaps.month, OfProject, CapMonth, sums[sum{h.Project, month}], monthEnds},
		{b.caps.day, OfAccount, CapDay, sums[sum{"", day}], dayEnds},
		{b.caps.month, OfAccount, CapMonth, sums[sum{"", month}], monthEnds},
	} {
		limit, spent, held := Amount(c.limit.Int64), c.spent.Spent, c.spent.Held
		switch {
		case !c.limit.Valid || spent+held+h.Amount <= limit:
		case spent+h.Amount > limit:
			return &CapReached{Cap: c.cap, Of: c.of, Limit: limit, Used: spent + held, ResetsAt: c.ends}, nil
		case refused == nil:
			refused = &Reserved{Needed: h.Amount, Available: max(limit-spent-held, 0), Held: held, Cap: c.cap, Of: c.of}
		}
	}
	return refused, nil
}

// keySpending returns what calls with a key alone have spent and hold on a day. The held amount is the sum of their
// open holds, of which an account has only as many as calls in flight, so that servers of an earlier version, which do
// not know these calls, can release them.
func keySpending(ctx context.Context, q db.Querier, accountID, project, day string) (s Spent, err error) {
	s.Spent, err = db.One(ctx, q, nil, db.Value[Amount], `SELECT key_spent FROM credit_spending
		WHERE account_id = $1 AND project = $2 AND period = $3`, accountID, project, day)
	if err != nil {
		return s, fmt.Errorf("read spending with project keys: %w", err)
	}
	s.Held, err = db.QueryValue[Amount](ctx, q, `SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM credit_holds
		WHERE account_id = $1 AND state = 'open' AND project = $2 AND day = $3 AND by_key = 1`, accountID, project, day)
	if err != nil {
		return s, fmt.Errorf("read holds of project keys: %w", err)
	}
	return s, nil
}

// refusalOfAllowance returns the reason why the allowance of a project's keys refuses a hold, or nil. The caller must
// hold the lock on the balance.
func refusalOfAllowance(ctx context.Context, tx *sql.Tx, limit Amount, h Hold, at time.Time) (refused, err error) {
	day, _ := Periods(at)
	used, err := keySpending(ctx, tx, h.Account, h.Project, day)
	switch {
	case err != nil || used.Spent+used.Held+h.Amount <= limit:
		return nil, err
	case used.Spent+h.Amount > limit:
		dayEnds, _ := Resets(at)
		return &AttestationRequired{Needed: h.Amount, Limit: limit, Used: used.Spent + used.Held, ResetsAt: dayEnds}, nil
	}
	return &Reserved{Needed: h.Amount, Available: max(limit-used.Spent-used.Held, 0), Held: used.Held, Cap: CapKeys,
		Of: OfProject}, nil
}

// addSpending adds a hold to the amounts that its account and project hold on a day and in its month. The caller must
// hold the lock on the balance.
func addSpending(h Hold, at time.Time) db.Statement {
	const insert, add = `INSERT INTO credit_spending (account_id, project, period, spent, held) VALUES
		($1, '', $2, 0, $4), ($1, '', $3, 0, $4)`, ` ON CONFLICT (account_id, project, period)
		DO UPDATE SET held = credit_spending.held + excluded.held`
	day, month := Periods(at)
	if h.Project == "" {
		return db.Stmt(insert+add, h.Account, day, month, int64(h.Amount))
	}
	return db.Stmt(insert+`, ($1, $5, $2, 0, $4), ($1, $5, $3, 0, $4)`+add, h.Account, day, month, int64(h.Amount),
		h.Project)
}

// RenewHold extends the lease of an open hold. It returns ErrHoldEnded or ErrNoHold on failure.
func (s *Store) RenewHold(ctx context.Context, id string, until time.Time) error {
	n, err := s.Exec(ctx, "renew hold", `UPDATE credit_holds SET lease_until = $2 WHERE id = $1 AND state = 'open'`,
		id, db.ToMS(until))
	if err != nil || n > 0 {
		return err
	}
	known, err := db.Exists(ctx, s, `SELECT 1 FROM credit_holds WHERE id = $1`, id)
	switch {
	case err != nil:
		return err
	case known:
		return ErrHoldEnded
	}
	return ErrNoHold
}
