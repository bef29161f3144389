package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/service-dev/service/backend/internal/credit"
)

// forUpdate locks the rows that a query reads from a table until the transaction ends. SQLite has a single writer and
// needs no lock.
func (s *Store) forUpdate(table string) string {
	if s.engine != "postgres" {
		return ""
	}
	return " FOR UPDATE OF " + table
}

// lockBalance blocks other transactions that change the balance, holds or sums of the account.
func lockBalance(ctx context.Context, tx *sql.Tx, accountID string) error {
	return execTx(ctx, tx, "lock credit balance", `UPDATE credit_balances SET held = held WHERE account_id = $1`, accountID)
}

// refusal returns the reason why an amount cannot be taken from a balance, or nil.
func refusal(needed credit.Amount, posted, held int64) error {
	available := credit.Amount(posted - held)
	switch {
	case needed <= available:
		return nil
	case needed <= credit.Amount(posted):
		return &credit.Reserved{Needed: needed, Available: available, Held: credit.Amount(held)}
	}
	return &credit.NoCredit{Needed: needed, Available: available, Held: credit.Amount(held)}
}

// addSpending adds to the amounts that the account and its project hold on a day and in its month. The caller must hold
// the lock on the balance.
func (d dayKey) addSpending(held int64) statement {
	const insert, add = `INSERT INTO credit_spending (account_id, project, period, spent, held) VALUES
		($1, '', $2, 0, $4), ($1, '', $3, 0, $4)`, ` ON CONFLICT (account_id, project, period)
		DO UPDATE SET held = credit_spending.held + excluded.held`
	if d.project == "" {
		return stmt(insert+add, d.account, d.day, d.month(), held)
	}
	return stmt(insert+`, ($1, $5, $2, 0, $4), ($1, $5, $3, 0, $4)`+add, d.account, d.day, d.month(), held, d.project)
}

// RenewHold extends the lease of an open hold. It returns credit.ErrHoldEnded or credit.ErrNoHold on failure.
func (s *Store) RenewHold(ctx context.Context, id string, until time.Time) error {
	n, err := s.exec(ctx, "renew hold", `UPDATE credit_holds SET lease_until = $2 WHERE id = $1 AND state = 'open'`,
		id, toMS(until))
	if err != nil || n > 0 {
		return err
	}
	known, err := hasRow(ctx, s.reads, `SELECT 1 FROM credit_holds WHERE id = $1`, id)
	switch {
	case err != nil:
		return err
	case known:
		return credit.ErrHoldEnded
	}
	return credit.ErrNoHold
}

// endedHold is a hold that was open and has been ended.
type endedHold struct {
	id, account, project, day string
	amount, charged           int64
}

const endedHoldColumns = `id, account_id, project, day, amount, charged`

func scanEndedHold(row scanner) (h endedHold, err error) {
	err = row.Scan(&h.id, &h.account, &h.project, &h.day, &h.amount, &h.charged)
	return h, err
}

// subtractSpending converts held amounts of ended holds of a project and day to spent amounts. The caller must hold the
// lock on the balance.
func (h endedHold) subtractSpending() statement {
	return stmt(`UPDATE credit_spending SET held = held - $5, spent = spent + $6
		WHERE account_id = $1 AND (project = '' OR project = $2) AND (period = $3 OR period = $4)`,
		h.account, h.project, h.day, h.day[:len("2006-01")], h.amount, h.charged)
}

// transferOf books an amount. It does nothing if the amount is 0.
func transferOf(id, debit, credited string, amount int64, at time.Time, note string) []statement {
	if amount == 0 {
		return nil
	}
	return []statement{stmt(`INSERT INTO credit_transfers (id, debit, credit, amount, at, note)
		VALUES ($1, $2, $3, $4, $5, $6)`, id, debit, credited, amount, toMS(at), note)}
}

// expireAtOnce is the maximum number of holds that one sweep releases.
const expireAtOnce = 1000

// ExpireHolds releases open holds whose lease ended before now, each in a separate transaction.
func (s *Store) ExpireHolds(ctx context.Context, now time.Time) (n int, err error) {
	due, err := queryAll(ctx, s.reads, func(row scanner) (h endedHold, err error) {
		err = row.Scan(&h.id, &h.account)
		return h, err
	}, `SELECT id, account_id FROM credit_holds
		WHERE state = 'open' AND lease_until < $1 ORDER BY lease_until LIMIT $2`, toMS(now), expireAtOnce)
	if err != nil {
		return 0, fmt.Errorf("list expired holds: %w", err)
	}
	for _, one := range due {
		expired := false
		err := s.write(ctx, func(tx *sql.Tx) error {
			if err := lockBalance(ctx, tx, one.account); err != nil {
				return err
			}
			// Since the query, the process of the hold may have renewed or settled it, or another process may have
			// swept it.
			h, err := scanEndedHold(tx.QueryRowContext(ctx, `UPDATE credit_holds SET state = 'expired'
				WHERE id = $1 AND state = 'open' AND lease_until < $2 RETURNING `+endedHoldColumns, one.id, toMS(now)))
			if expired = err == nil; !expired {
				return replaceNoRows(err, nil)
			}
			return execAll(ctx, tx, "return hold",
				stmt(`UPDATE credit_balances SET held = held - $2 WHERE account_id = $1`, h.account, h.amount),
				h.subtractSpending())
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
