package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/projects"
)

// Balance returns credit.ErrNoBook if the account has no balance yet.
func (s *Store) Balance(ctx context.Context, accountID string) (credit.Balance, error) {
	return queryOne(ctx, s.reads, credit.ErrNoBook, func(row scanner) (b credit.Balance, err error) {
		err = row.Scan(&b.Book, &b.Posted, &b.Held, intoTime(&b.OpenedAt), &b.Filled, &b.Free)
		return b, err
	}, `SELECT b.book, b.posted, b.held, b.opened_at, b.filled, COALESCE(t.amount, 0)
		FROM credit_balances b LEFT JOIN credit_transfers t ON t.id = 'free:' || b.book WHERE b.account_id = $1`, accountID)
}

// CreditHolder returns credit.ErrNoAccount for an unknown account.
func (s *Store) CreditHolder(ctx context.Context, accountID string) (credit.Holder, error) {
	return queryOne(ctx, s.reads, credit.ErrNoAccount, func(row scanner) (h credit.Holder, err error) {
		var verified, identities int64
		err = row.Scan(&h.Email, &verified, &identities, intoText(&h.IP), &h.Proxy)
		h.Proved = verified > 0 || identities > 0
		return h, err
	}, `SELECT a.email, COALESCE(a.verified_at, 0), (SELECT COUNT(*) FROM identities WHERE account_id = a.id), w.ip,
			COALESCE(w.behind_proxy, 0) <> 0
		FROM accounts a LEFT JOIN web_sessions w
			ON w.hash = (SELECT hash FROM web_sessions WHERE account_id = a.id ORDER BY created_at, hash LIMIT 1)
		WHERE a.id = $1`, accountID)
}

// OpenBook opens an account's balance, with free credit if its address and network are still entitled to it.
func (s *Store) OpenBook(ctx context.Context, b credit.NewBook) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		if err := lockAccount(ctx, tx, b.AccountID); err != nil {
			if errors.Is(err, account.ErrNotFound) {
				return credit.ErrNoAccount
			}
			return err
		}
		known, err := hasRow(ctx, tx, `SELECT 1 FROM credit_balances WHERE account_id = $1`, b.AccountID)
		if known || err != nil {
			return err
		}
		granted, err := s.grantFree(ctx, tx, b)
		if err != nil {
			return err
		}
		free := int64(0)
		if granted {
			free = int64(b.Free)
		}
		err = execTx(ctx, tx, "open credit balance", `INSERT INTO credit_balances
				(account_id, book, posted, held, opened_at, filled) VALUES ($1, $2, $3, 0, $4, $3)`, b.AccountID, b.Book, free, toMS(b.At))
		if err != nil {
			return err
		}
		return execAll(ctx, tx, "grant free credit", transferOf("free:"+b.Book, credit.BookFree, b.Book, free, b.At, "")...)
	})
}

// grantFree reports whether an address and a network get free credit, and records the grant.
func (s *Store) grantFree(ctx context.Context, tx *sql.Tx, b credit.NewBook) (bool, error) {
	if b.Free == 0 {
		return false, nil
	}
	if b.NetworkHash != "" {
		if err := s.lockAddress(ctx, tx, b.NetworkHash); err != nil {
			return false, err
		}
		n, err := queryValue[int](ctx, tx, `SELECT COUNT(*) FROM credit_free_grants WHERE network_hash = $1 AND at >= $2`,
			b.NetworkHash, toMS(b.Since))
		if err != nil || n >= b.NetworkLimit {
			return false, err
		}
	}
	// Store only the day, because the time would identify the account.
	return changed(ctx, tx, "grant free credit", `INSERT INTO credit_free_grants (address_hash, network_hash, at)
		VALUES ($1, $2, $3) ON CONFLICT (address_hash) DO UPDATE SET network_hash = excluded.network_hash, at = excluded.at
		WHERE credit_free_grants.at < $4`,
		b.AddressHash, b.NetworkHash, toMS(b.At.Truncate(24*time.Hour)), toMS(b.Since))
}

// InsertTransfer books a transfer of an account at most once per ID.
func (s *Store) InsertTransfer(ctx context.Context, t credit.Transfer, e audit.Entry) (booked bool, err error) {
	for range 2 { // try again if another account's transfer has just used the ID
		err = s.write(ctx, func(tx *sql.Tx) error {
			booked, err = s.bookTransfer(ctx, tx, t, e)
			return err
		})
		if !isDuplicate(err) {
			break
		}
	}
	return booked && err == nil, err
}

func (s *Store) bookTransfer(ctx context.Context, tx *sql.Tx, t credit.Transfer, e audit.Entry) (bool, error) {
	var book string
	var posted, held int64
	err := tx.QueryRowContext(ctx, `SELECT book, posted, held FROM credit_balances WHERE account_id = $1`+
		s.forUpdate("credit_balances"), t.AccountID).Scan(&book, &posted, &held)
	if err != nil {
		return false, replaceNoRows(err, credit.ErrNoBook)
	}
	t.Debit, t.Credit = cmp.Or(t.Debit, book), cmp.Or(t.Credit, book)
	before, err := queryOne(ctx, tx, nil, scanTransfer, selectTransfer+` WHERE id = $1`, t.ID)
	switch {
	case err != nil:
		return false, err
	case before.ID != "" && (before.Debit != t.Debit || before.Credit != t.Credit || before.Amount != t.Amount):
		return false, credit.ErrReferenceUsed
	case before.ID != "":
		return false, nil
	}
	delta := int64(t.Amount)
	if t.Debit == book {
		delta = -delta
		if refused := refusal(t.Amount, posted, held); refused != nil {
			return false, refused
		}
	}
	err = execAll(ctx, tx, "book transfer", append(transferOf(t.ID, t.Debit, t.Credit, int64(t.Amount), t.At, t.Note),
		stmt(`UPDATE credit_balances SET posted = posted + $2, filled = posted + $2 WHERE account_id = $1`, t.AccountID, delta),
		tellAgain(t.AccountID, "", credit.OfBalance))...)
	if err != nil {
		return false, err
	}
	return true, insertAudit(ctx, tx, e)
}

const selectTransfer = `SELECT id, debit, credit, amount, at, note FROM credit_transfers`

func scanTransfer(row scanner) (t credit.Transfer, err error) {
	err = row.Scan(&t.ID, &t.Debit, &t.Credit, &t.Amount, intoTime(&t.At), &t.Note)
	return t, err
}

// Transfers lists an account's transfers, newest first. It omits the first skip transfers.
func (s *Store) Transfers(ctx context.Context, accountID string, skip, limit int) ([]credit.Transfer, error) {
	book, err := queryValue[string](ctx, s.reads, `SELECT book FROM credit_balances WHERE account_id = $1`, accountID)
	if err != nil {
		return nil, replaceNoRows(err, nil)
	}
	return queryAll(ctx, s.reads, func(row scanner) (credit.Transfer, error) {
		t, err := scanTransfer(row)
		t.AccountID = accountID
		if t.Debit == book {
			t.Debit = ""
		}
		if t.Credit == book {
			t.Credit = ""
		}
		return t, err
	}, selectTransfer+` WHERE debit = $1 OR credit = $1 ORDER BY at DESC, id DESC LIMIT $2 OFFSET $3`, book, limit, skip)
}

// SetCreditCaps sets the caps of the entry's project, or of its account if the entry has no project.
func (s *Store) SetCreditCaps(ctx context.Context, c credit.Caps, e audit.Entry, undone string) error {
	return s.writeAudited(ctx, e, func(tx *sql.Tx) error {
		if undone != "" {
			if err := markUndone(ctx, tx, credit.ErrNotUndoable, e.AccountID, undone, e.ID); err != nil {
				return err
			}
		}
		table, where, ids := "credit_balances", "account_id = $1", []any{e.AccountID}
		if e.Project != "" {
			table, where, ids = "gateway_settings", "account_id = $1 AND app_id = $2", append(ids, e.Project)
			err := execTx(ctx, tx, "set caps", `INSERT INTO gateway_settings (account_id, app_id) VALUES ($1, $2)
				ON CONFLICT (account_id, app_id) DO NOTHING`, ids...)
			if err != nil {
				return err
			}
		}
		return saveCaps(ctx, tx, c, e, table, where, ids)
	})
}

// saveCaps updates the caps in one row of a table.
func saveCaps(
	ctx context.Context, tx *sql.Tx, c credit.Caps, e audit.Entry, table, where string, ids []any,
) error {
	//nolint:gosec // constants
	current, err := queryValue[int64](ctx, tx, "SELECT caps_version FROM "+table+" WHERE "+where, ids...)
	if err != nil {
		return replaceNoRows(err, credit.ErrNoBook)
	}
	n := len(ids)
	saved, err := changed(ctx, tx, "set caps", fmt.Sprintf(`UPDATE %s SET day_cap = $%d, month_cap = $%d,
		caps_version = caps_version + 1 WHERE %s AND caps_version = $%d`, table, n+1, n+2, where, n+3),
		append(ids, amountOrNull(c.Day), amountOrNull(c.Month), c.Version)...)
	switch {
	case err != nil:
		return err
	case !saved:
		return &credit.ConflictError{Current: current}
	}
	return execAll(ctx, tx, "tell again", tellAgain(e.AccountID, e.Project, credit.CapDay),
		tellAgain(e.AccountID, e.Project, credit.CapMonth))
}

// tellAgain allows a new notice for a limit that was changed.
func tellAgain(accountID, project, what string) statement {
	return stmt(`UPDATE credit_notices SET period = '' WHERE account_id = $1 AND project = $2 AND what = $3`, accountID,
		project, what)
}

// ClaimNotice reports whether to mail a notice on this day. If so, it records the notice.
func (s *Store) ClaimNotice(ctx context.Context, n credit.Notice, period, day string) (claimed bool, err error) {
	err = s.write(ctx, func(tx *sql.Tx) (err error) {
		claimed, err = changed(ctx, tx, "claim notice", `INSERT INTO credit_notices (account_id, project, what, period, day)
			VALUES ($1, $2, $3, $4, $5) ON CONFLICT (account_id, project, what)
			DO UPDATE SET period = excluded.period, day = excluded.day
			WHERE credit_notices.day < excluded.day AND (credit_notices.period <> excluded.period OR $6 = 1)`,
			n.AccountID, n.Project, n.Of, period, day, boolInt(n.Refused))
		return err
	})
	if errors.Is(err, projects.ErrNotFound) { // the account has just been deleted
		return false, nil
	}
	return claimed && err == nil, err
}

func amountOrNull(a *credit.Amount) sql.NullInt64 {
	if a == nil {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: int64(*a), Valid: true}
}

// CreditCaps returns the caps of a project or of the account, or no caps if there is no row.
func (s *Store) CreditCaps(ctx context.Context, accountID, project string) (c credit.Caps, err error) {
	query, args := `SELECT day_cap, month_cap, caps_version FROM credit_balances WHERE account_id = $1`, []any{accountID}
	if project != "" {
		query = `SELECT day_cap, month_cap, caps_version FROM gateway_settings WHERE account_id = $1 AND app_id = $2`
		args = append(args, project)
	}
	err = s.reads.QueryRowContext(ctx, query, args...).Scan(&c.Day, &c.Month, &c.Version)
	return c, replaceNoRows(err, nil)
}

// Spending returns the amounts that a project or the account has spent and holds, for the day and the month of at.
func (s *Store) Spending(
	ctx context.Context, accountID, project string, at time.Time,
) (day, month credit.Spent, err error) {
	today, thisMonth := credit.Periods(at)
	err = queryEach(ctx, s.reads, func(row scanner) error {
		var period string
		var spent credit.Spent
		if err := row.Scan(&period, &spent.Spent, &spent.Held); err != nil {
			return err
		}
		if period == today {
			day = spent
		} else {
			month = spent
		}
		return nil
	}, `SELECT period, spent, held FROM credit_spending WHERE account_id = $1 AND project = $2 AND period IN ($3, $4)`,
		accountID, project, today, thisMonth)
	if err != nil {
		return day, month, fmt.Errorf("read spending: %w", err)
	}
	return day, month, nil
}

// closeBook books the remaining balance of an account that is being deleted, and locks the account's row.
func closeBook(ctx context.Context, tx *sql.Tx, accountID string, at time.Time) error {
	return execAll(ctx, tx, "close credit balance",
		stmt(`UPDATE credit_balances SET held = held WHERE account_id = $1`, accountID),
		stmt(`INSERT INTO credit_transfers (id, debit, credit, amount, at, note)
			SELECT 'closed:' || book, book, '`+credit.BookClosed+`', posted, CAST($2 AS BIGINT), '' FROM credit_balances
			WHERE account_id = $1 AND posted > 0`, accountID, toMS(at)))
}
