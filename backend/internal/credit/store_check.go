package credit

import (
	"context"
	"fmt"
	"time"

	"github.com/service-dev/service/backend/internal/db"
)

// differences are queries for sums of the ledger that do not match its rows. Each is a single statement, so that it
// reads a consistent snapshot while the ledger is in use. The columns are the account, the name of the sum, the stored
// sum and the computed sum.
var differences = []string{
	`SELECT account_id, 'posted', posted, computed FROM (SELECT b.account_id, b.posted,
			CAST(COALESCE((SELECT SUM(amount) FROM credit_transfers WHERE credit = b.book), 0)
				- COALESCE((SELECT SUM(amount) FROM credit_transfers WHERE debit = b.book), 0) AS BIGINT) AS computed
		FROM credit_balances b) x WHERE posted <> computed`,
	`SELECT account_id, 'held', held, computed FROM (SELECT b.account_id, b.held, CAST(COALESCE((SELECT SUM(h.amount)
			FROM credit_holds h WHERE h.account_id = b.account_id AND h.state = 'open'), 0) AS BIGINT) AS computed
		FROM credit_balances b) x WHERE held <> computed`,
	`SELECT account_id, 'held of ' || project || ' in ' || period, held, computed
		FROM (SELECT s.account_id, s.project, s.period, s.held, CAST(COALESCE((SELECT SUM(h.amount) FROM credit_holds h
				WHERE h.account_id = s.account_id AND h.state = 'open' AND (s.project = '' OR h.project = s.project)
					AND (h.day = s.period OR SUBSTR(h.day, 1, 7) = s.period)), 0) AS BIGINT) AS computed
			FROM credit_spending s) x WHERE held <> computed`,
	// The spending of a project is part of the spending of its account.
	`SELECT account_id, 'spent in ' || period, spent, computed
		FROM (SELECT s.account_id, s.period, s.spent, CAST(COALESCE((SELECT SUM(p.spent) FROM credit_spending p
				WHERE p.account_id = s.account_id AND p.period = s.period AND p.project <> ''), 0) AS BIGINT) AS computed
			FROM credit_spending s WHERE s.project = '') x WHERE spent < computed`,
	// What calls with a key alone have spent is part of the project's spending. Holds of earlier weeks are deleted.
	`SELECT account_id, 'spent with keys of ' || project || ' in ' || period, key_spent, computed
		FROM (SELECT s.account_id, s.project, s.period, s.spent, s.key_spent, CAST(COALESCE((SELECT SUM(h.charged)
				FROM credit_holds h WHERE h.account_id = s.account_id AND h.state = 'settled' AND h.by_key = 1
					AND h.project = s.project AND h.day = s.period), 0) AS BIGINT) AS computed
			FROM credit_spending s WHERE s.project <> '') x WHERE key_spent < computed OR key_spent > spent`,
	`SELECT h.account_id, 'charge of ' || h.id, h.charged, COALESCE(t.amount, 0)
		FROM credit_holds h LEFT JOIN credit_transfers t ON t.id = 'call:' || h.id
		WHERE h.charged <> COALESCE(t.amount, 0)`,
	`SELECT h.account_id, 'state of ' || h.id, h.charged, COALESCE(t.amount, 0)
		FROM credit_holds h JOIN credit_transfers t ON t.id = 'call:' || h.id OR t.id = 'late:' || h.id
		WHERE h.state NOT IN ('settled', 'late')`,
}

// CheckCredit recomputes the sums of the ledger and reports the differences.
func (s *Store) CheckCredit(ctx context.Context, now time.Time) (r Report, err error) {
	err = s.QueryRowContext(ctx, `SELECT COUNT(*), CAST(COALESCE(SUM(posted), 0) AS BIGINT),
			CAST(COALESCE(SUM(held), 0) AS BIGINT) FROM credit_balances`).Scan(&r.Accounts, &r.Posted, &r.Held)
	if err != nil {
		return r, fmt.Errorf("sum credit balances: %w", err)
	}
	err = s.QueryRowContext(ctx, `SELECT COALESCE(SUM(CASE WHEN state = 'open' THEN 1 ELSE 0 END), 0),
			COALESCE(SUM(CASE WHEN state IN ('expired', 'late') THEN 1 ELSE 0 END), 0),
			COALESCE(SUM(CASE WHEN state = 'open' AND lease_until < $1 THEN 1 ELSE 0 END), 0) FROM credit_holds`, db.ToMS(now)).
		Scan(&r.OpenHolds, &r.ExpiredHolds, &r.RunOutLeases)
	if err != nil {
		return r, fmt.Errorf("count holds: %w", err)
	}
	if err := s.sumBooks(ctx, &r); err != nil {
		return r, fmt.Errorf("sum books: %w", err)
	}
	for _, query := range differences {
		found, err := db.All(ctx, s, func(row db.Row) (d Difference, err error) {
			err = row.Scan(&d.AccountID, &d.What, &d.Stored, &d.Computed)
			return d, err
		}, query+` LIMIT 100`)
		if err != nil {
			return r, fmt.Errorf("check ledger: %w", err)
		}
		r.Differences = append(r.Differences, found...)
	}
	r.Shortfalls, err = db.All(ctx, s, scanTransfer, selectTransfer+` WHERE debit = $1
		ORDER BY at DESC, id DESC LIMIT 20`, BookOperator)
	if err != nil {
		return r, fmt.Errorf("list shortfalls: %w", err)
	}
	return r, nil
}

// sumBooks computes the balance of each of the service's books: its outflow minus its inflow.
func (s *Store) sumBooks(ctx context.Context, r *Report) error {
	for book, into := range map[string]*Amount{
		BookFree: &r.Free, BookPaidIn: &r.PaidIn, BookUsed: &r.Used,
		BookOperator: &r.Operator, BookClosed: &r.Closed,
	} {
		net, err := db.QueryValue[Amount](ctx, s, `SELECT CAST(
				COALESCE((SELECT SUM(amount) FROM credit_transfers WHERE debit = $1), 0)
				- COALESCE((SELECT SUM(amount) FROM credit_transfers WHERE credit = $1), 0) AS BIGINT)`, book)
		if err != nil {
			return err
		}
		if book == BookUsed || book == BookClosed {
			net = -net
		}
		*into = net
	}
	return nil
}

// PruneCredit deletes the rows whose retention period has ended.
func (s *Store) PruneCredit(ctx context.Context, p Prune) error {
	for _, one := range []db.Statement{
		db.Stmt(`DELETE FROM credit_holds WHERE state <> 'open' AND created_at < $1`, db.ToMS(p.Holds)),
		db.Stmt(`DELETE FROM credit_spending WHERE period < $1 AND held = 0`, p.Period),
		db.Stmt(`DELETE FROM credit_notices WHERE day < $1`, p.Period),
		db.Stmt(`DELETE FROM credit_free_grants WHERE at < $1`, db.ToMS(p.Grants.Truncate(24*time.Hour))),
		db.Stmt(`DELETE FROM gateway_usage WHERE hour < $1`, db.ToMS(p.Usage)),
		db.Stmt(`DELETE FROM gateway_calls WHERE at < $1`, db.ToMS(p.Calls)),
	} {
		if _, err := s.Exec(ctx, "prune credit", one.Text, one.Args...); err != nil {
			return err
		}
	}
	type full struct{ account, project string }
	all, err := db.All(ctx, s, func(row db.Row) (f full, err error) {
		err = row.Scan(&f.account, &f.project)
		return f, err
	}, `SELECT account_id, app_id FROM gateway_calls
		WHERE (account_id, app_id) IN (SELECT account_id, app_id FROM gateway_calls WHERE at >= $1)
		GROUP BY account_id, app_id HAVING COUNT(*) > $2`, db.ToMS(p.Recent), p.CallsOfProject)
	if err != nil {
		return fmt.Errorf("list projects with many calls: %w", err)
	}
	const prune = `DELETE FROM gateway_calls WHERE account_id = $1 AND app_id = $2 AND id IN
		(SELECT id FROM gateway_calls WHERE account_id = $1 AND app_id = $2 ORDER BY at DESC, id DESC LIMIT $4 OFFSET $3)`
	for _, f := range all {
		if _, err := s.Exec(ctx, "prune calls", prune, f.account, f.project, p.CallsOfProject, 1_000_000); err != nil {
			return err
		}
	}
	return nil
}
