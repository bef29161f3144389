package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/projects"
)

// InsertHold sets money aside. A refusal writes nothing and is not an error of the write, since an error would run the
// other writes of the batch again.
func (s *Store) InsertHold(ctx context.Context, h credit.Hold, at time.Time) error {
	var refused error
	err := s.write(ctx, func(tx *sql.Tx) (err error) {
		if refused, err = s.admitHold(ctx, tx, h, at); err != nil || refused != nil {
			return err
		}
		day, _ := credit.Periods(at)
		err = execTx(ctx, tx, "hold credit", `UPDATE credit_balances SET held = held + $2 WHERE account_id = $1`,
			h.Account, int64(h.Amount))
		if err != nil {
			return err
		}
		if err := addSpending(ctx, tx, h.Account, h.Project, day, int64(h.Amount)); err != nil {
			return err
		}
		return execTx(ctx, tx, "insert hold", `INSERT INTO credit_holds
				(id, account_id, project, amount, charged, state, day, created_at, lease_until)
			VALUES ($1, $2, $3, $4, 0, 'open', $5, $6, $7)`,
			h.ID, h.Account, h.Project, int64(h.Amount), day, toMS(at), toMS(h.LeaseUntil))
	})
	if err != nil {
		return err
	}
	return refused
}

// cap is a limit of a period's spending; NULL does not limit.
type cap struct {
	of, period string
	limit      sql.NullInt64
}

// admitHold locks the account's balance until the transaction ends, and returns why the hold is refused, or nil.
func (s *Store) admitHold(ctx context.Context, tx *sql.Tx, h credit.Hold, at time.Time) (refused, err error) {
	var posted, held int64
	// In the order in which apps are told of them.
	caps := []cap{{of: credit.OfProject, period: credit.CapDay}, {of: credit.OfProject, period: credit.CapMonth},
		{of: credit.OfAccount, period: credit.CapDay}, {of: credit.OfAccount, period: credit.CapMonth}}
	err = tx.QueryRowContext(ctx, `SELECT b.posted, b.held, g.day_cap, g.month_cap, b.day_cap, b.month_cap
		FROM credit_balances b LEFT JOIN gateway_settings g ON g.account_id = b.account_id AND g.app_id = $2
		WHERE b.account_id = $1`+s.forUpdate("b"), h.Account, h.Project).
		Scan(&posted, &held, &caps[0].limit, &caps[1].limit, &caps[2].limit, &caps[3].limit)
	if errors.Is(err, sql.ErrNoRows) {
		return credit.ErrNoBook, nil
	}
	if err != nil {
		return nil, fmt.Errorf("lock credit balance: %w", err)
	}
	if refused := refusal(h.Amount, posted, held); refused != nil {
		return refused, nil
	}
	for _, c := range caps {
		if !c.limit.Valid {
			continue
		}
		if refused, err := c.check(ctx, tx, h, at); refused != nil || err != nil {
			return refused, err
		}
	}
	return nil, nil
}

// forUpdate locks the rows of a table that a query reads, until the transaction ends. SQLite has a single writer.
func (s *Store) forUpdate(table string) string {
	if s.engine != "postgres" {
		return ""
	}
	return " FOR UPDATE OF " + table
}

// refusal returns why an amount cannot be taken from a balance, or nil.
func refusal(needed credit.Amount, posted, held int64) error {
	available := credit.Amount(posted - held)
	switch {
	case needed <= available:
		return nil
	case needed <= credit.Amount(posted):
		return &credit.Reserved{Needed: needed, Available: available, Held: credit.Amount(held)}
	}
	return &credit.NoCredit{Needed: needed, Available: available}
}

func (c cap) check(ctx context.Context, tx *sql.Tx, h credit.Hold, at time.Time) (refused, err error) {
	project := h.Project
	if c.of == credit.OfAccount {
		project = ""
	}
	period, month := credit.Periods(at)
	resets, resetsMonth := credit.Resets(at)
	if c.period == credit.CapMonth {
		period, resets = month, resetsMonth
	}
	used, err := queryValue[int64](ctx, tx, `SELECT spent + held FROM credit_spending
		WHERE account_id = $1 AND project = $2 AND period = $3`, h.Account, project, period)
	if err = replaceNoRows(err, nil); err != nil {
		return nil, fmt.Errorf("read spending: %w", err)
	}
	if used+int64(h.Amount) <= c.limit.Int64 {
		return nil, nil
	}
	return &credit.CapReached{Cap: c.period, Of: c.of, Limit: credit.Amount(c.limit.Int64), Used: credit.Amount(used),
		ResetsAt: resets}, nil
}

// addSpending adds to the held amounts of the account and its project in a day and its month. The caller has locked the
// balance.
func addSpending(ctx context.Context, tx *sql.Tx, accountID, project, day string, held int64) error {
	month := day[:len("2006-01")]
	const insert, add = `INSERT INTO credit_spending (account_id, project, period, spent, held) VALUES
		($1, '', $2, 0, $4), ($1, '', $3, 0, $4)`, ` ON CONFLICT (account_id, project, period)
		DO UPDATE SET held = credit_spending.held + excluded.held`
	if project == "" {
		return execTx(ctx, tx, "add spending", insert+add, accountID, day, month, held)
	}
	return execTx(ctx, tx, "add spending", insert+`, ($1, $5, $2, 0, $4), ($1, $5, $3, 0, $4)`+add,
		accountID, day, month, held, project)
}

// RenewHold extends the lease of an open hold. It returns credit.ErrHoldEnded or credit.ErrNoHold.
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

// endedHold is a hold that was open.
type endedHold struct {
	id, account, project, day string
	amount, charged           int64
}

const endedHoldColumns = `id, account_id, project, day, amount, charged`

func scanEndedHold(row scanner) (h endedHold, err error) {
	err = row.Scan(&h.id, &h.account, &h.project, &h.day, &h.amount, &h.charged)
	return h, err
}

// giveBack subtracts an ended hold from the sums of held money and its charge from the balance. It returns the
// account's book.
func (h endedHold) giveBack(ctx context.Context, tx *sql.Tx) (book string, err error) {
	book, err = queryValue[string](ctx, tx, `UPDATE credit_balances SET held = held - $2, posted = posted - $3
		WHERE account_id = $1 RETURNING book`, h.account, h.amount, h.charged)
	if err != nil {
		return "", fmt.Errorf("give hold back: %w", err)
	}
	return book, execTx(ctx, tx, "add spending", `UPDATE credit_spending SET held = held - $5, spent = spent + $6
		WHERE account_id = $1 AND (project = '' OR project = $2) AND (period = $3 OR period = $4)`,
		h.account, h.project, h.day, h.day[:len("2006-01")], h.amount, h.charged)
}

// SettleHold charges an open hold and counts the call, all in one transaction.
func (s *Store) SettleHold(ctx context.Context, in credit.Settlement) (charged credit.Amount, err error) {
	for range 3 { // again if the project was deleted meanwhile: then the call is not counted
		err = s.write(ctx, func(tx *sql.Tx) error {
			charged, err = settle(ctx, tx, in)
			return err
		})
		if !errors.Is(err, projects.ErrNotFound) {
			break
		}
	}
	if err != nil {
		return 0, err
	}
	return charged, nil
}

func settle(ctx context.Context, tx *sql.Tx, in credit.Settlement) (credit.Amount, error) {
	h, err := scanEndedHold(tx.QueryRowContext(ctx, `UPDATE credit_holds SET state = 'settled',
			charged = CASE WHEN amount < $2 THEN amount ELSE $2 END
		WHERE id = $1 AND state = 'open' RETURNING `+endedHoldColumns, in.HoldID, int64(in.Charge)))
	if errors.Is(err, sql.ErrNoRows) {
		return settleEnded(ctx, tx, in)
	}
	if err != nil {
		return 0, fmt.Errorf("settle hold: %w", err)
	}
	book, err := h.giveBack(ctx, tx)
	if err != nil {
		return 0, err
	}
	if err := insertTransfer(ctx, tx, "call:"+h.id, book, credit.BookUsed, h.charged, in.At, ""); err != nil {
		return 0, err
	}
	short := int64(in.Charge) - h.charged
	if err := insertTransfer(ctx, tx, "short:"+h.id, credit.BookOperator, credit.BookUsed, short, in.At, ""); err != nil {
		return 0, err
	}
	return credit.Amount(h.charged), countCall(ctx, tx, h.id, ofHold(in.Call, h), h.charged, in.At)
}

// settleEnded settles a hold that is not open: a repeat has no effect, and the operator pays for a call whose hold was
// given back.
func settleEnded(ctx context.Context, tx *sql.Tx, in credit.Settlement) (credit.Amount, error) {
	h, err := scanEndedHold(tx.QueryRowContext(ctx, `UPDATE credit_holds SET state = 'late'
		WHERE id = $1 AND state = 'expired' RETURNING `+endedHoldColumns, in.HoldID))
	if errors.Is(err, sql.ErrNoRows) {
		charged, err := queryValue[int64](ctx, tx, `SELECT charged FROM credit_holds WHERE id = $1`, in.HoldID)
		return credit.Amount(charged), replaceNoRows(err, credit.ErrNoHold)
	}
	if err != nil {
		return 0, fmt.Errorf("settle late: %w", err)
	}
	err = insertTransfer(ctx, tx, "late:"+h.id, credit.BookOperator, credit.BookUsed, int64(in.Charge), in.At, "")
	if err != nil {
		return 0, err
	}
	return 0, countCall(ctx, tx, h.id, ofHold(in.Call, h), 0, in.At)
}

func ofHold(c credit.Call, h endedHold) credit.Call {
	c.Account, c.Project = h.account, h.project
	return c
}

// insertTransfer books an amount, unless it is 0.
func insertTransfer(
	ctx context.Context, tx *sql.Tx, id, debit, credited string, amount int64, at time.Time, note string,
) error {
	if amount == 0 {
		return nil
	}
	return execTx(ctx, tx, "insert transfer", `INSERT INTO credit_transfers (id, debit, credit, amount, at, note)
		VALUES ($1, $2, $3, $4, $5, $6)`, id, debit, credited, amount, toMS(at), note)
}

// expireAtOnce bounds the holds of one sweep.
const expireAtOnce = 1000

// ExpireHolds gives back open holds whose lease ended before now, each in a transaction of its own.
func (s *Store) ExpireHolds(ctx context.Context, now time.Time) (n int, err error) {
	due, err := queryAll(ctx, s.reads, value[string], `SELECT id FROM credit_holds
		WHERE state = 'open' AND lease_until < $1 ORDER BY lease_until LIMIT $2`, toMS(now), expireAtOnce)
	if err != nil {
		return 0, fmt.Errorf("list holds to give back: %w", err)
	}
	for _, id := range due {
		expired := false
		err := s.write(ctx, func(tx *sql.Tx) error {
			// Its process may have renewed or settled it meanwhile, and another process may have swept it.
			h, err := scanEndedHold(tx.QueryRowContext(ctx, `UPDATE credit_holds SET state = 'expired'
				WHERE id = $1 AND state = 'open' AND lease_until < $2 RETURNING `+endedHoldColumns, id, toMS(now)))
			if expired = err == nil; !expired {
				return replaceNoRows(err, nil)
			}
			_, err = h.giveBack(ctx, tx)
			return err
		})
		if err != nil {
			return n, fmt.Errorf("give hold back: %w", err)
		}
		if expired {
			n++
		}
	}
	return n, nil
}
