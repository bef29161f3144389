package credit

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/db"
)

// Balance returns ErrNoBook if the account has no balance yet.
func (s *Store) Balance(ctx context.Context, accountID string) (Balance, error) {
	return db.One(ctx, s, ErrNoBook, func(row db.Row) (b Balance, err error) {
		err = row.Scan(&b.Book, &b.Posted, &b.Held, db.IntoTime(&b.OpenedAt), &b.Filled, &b.Free)
		return b, err
	}, `SELECT b.book, b.posted, b.held, b.opened_at, b.filled, COALESCE(t.amount, 0)
		FROM credit_balances b LEFT JOIN credit_transfers t ON t.id = 'free:' || b.book WHERE b.account_id = $1`, accountID)
}

// CreditHolder returns ErrNoAccount for an unknown account.
func (s *Store) CreditHolder(ctx context.Context, accountID string) (Holder, error) {
	return db.One(ctx, s, ErrNoAccount, func(row db.Row) (h Holder, err error) {
		var verified, identities int64
		err = row.Scan(&h.Email, &verified, &identities, db.IntoText(&h.IP), &h.Proxy)
		h.Proved = verified > 0 || identities > 0
		return h, err
	}, `SELECT a.email, COALESCE(a.verified_at, 0), (SELECT COUNT(*) FROM identities WHERE account_id = a.id), w.ip,
			COALESCE(w.behind_proxy, 0) <> 0
		FROM accounts a LEFT JOIN web_sessions w
			ON w.hash = (SELECT hash FROM web_sessions WHERE account_id = a.id ORDER BY created_at, hash LIMIT 1)
		WHERE a.id = $1`, accountID)
}

// OpenBook opens an account's balance, with free credit if its address and network are still entitled to it.
func (s *Store) OpenBook(ctx context.Context, b NewBook) error {
	return s.Write(ctx, func(tx *sql.Tx) error {
		found, err := db.LockAccount(ctx, tx, b.AccountID)
		if err := db.Require(found, err, ErrNoAccount); err != nil {
			return err
		}
		known, err := db.Exists(ctx, tx, `SELECT 1 FROM credit_balances WHERE account_id = $1`, b.AccountID)
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
		err = db.Exec(ctx, tx, "open credit balance", `INSERT INTO credit_balances
				(account_id, book, posted, held, opened_at, filled) VALUES ($1, $2, $3, 0, $4, $3)`, b.AccountID, b.Book, free,
			db.ToMS(b.At))
		if err != nil {
			return err
		}
		return db.ExecAll(ctx, tx, "grant free credit", transferOf("free:"+b.Book, BookFree, b.Book, free, b.At, "")...)
	})
}

// grantFree reports whether an address and a network get free credit, and records the grant.
func (s *Store) grantFree(ctx context.Context, tx *sql.Tx, b NewBook) (bool, error) {
	if b.Free == 0 {
		return false, nil
	}
	if b.NetworkHash != "" {
		if err := s.LockText(ctx, tx, b.NetworkHash); err != nil {
			return false, err
		}
		n, err := db.QueryValue[int](ctx, tx, `SELECT COUNT(*) FROM credit_free_grants WHERE network_hash = $1 AND at >= $2`,
			b.NetworkHash, db.ToMS(b.Since))
		if err != nil || n >= b.NetworkLimit {
			return false, err
		}
	}
	// Store only the day, because the time would identify the account.
	return db.Changed(ctx, tx, "grant free credit", `INSERT INTO credit_free_grants (address_hash, network_hash, at)
		VALUES ($1, $2, $3) ON CONFLICT (address_hash) DO UPDATE SET network_hash = excluded.network_hash, at = excluded.at
		WHERE credit_free_grants.at < $4`,
		b.AddressHash, b.NetworkHash, db.ToMS(b.At.Truncate(24*time.Hour)), db.ToMS(b.Since))
}

// InsertTransfer books t between the account and another book, together with its audit entry, once for each ID. If
// the ID was booked before, booked is false. It returns ErrNoBook, ErrReferenceUsed, *NoCredit or *Reserved.
func (s *Store) InsertTransfer(ctx context.Context, t Transfer, e audit.Entry) (booked bool, err error) {
	for range 2 { // try again if another account's transfer has just used the ID
		err = s.Write(ctx, func(tx *sql.Tx) error {
			booked, err = s.bookTransfer(ctx, tx, t, e)
			return err
		})
		if !db.IsDuplicate(err) {
			break
		}
	}
	return booked && err == nil, err
}

func (s *Store) bookTransfer(ctx context.Context, tx *sql.Tx, t Transfer, e audit.Entry) (bool, error) {
	var book string
	var posted, held int64
	err := tx.QueryRowContext(ctx, `SELECT book, posted, held FROM credit_balances WHERE account_id = $1`+
		s.ForUpdate("credit_balances"), t.AccountID).Scan(&book, &posted, &held)
	if err != nil {
		return false, db.ReplaceNoRows(err, ErrNoBook)
	}
	t.Debit, t.Credit = cmp.Or(t.Debit, book), cmp.Or(t.Credit, book)
	before, err := db.One(ctx, tx, nil, scanTransfer, selectTransfer+` WHERE id = $1`, t.ID)
	switch {
	case err != nil:
		return false, err
	case before.ID != "" && (before.Debit != t.Debit || before.Credit != t.Credit || before.Amount != t.Amount):
		return false, ErrReferenceUsed
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
	err = db.ExecAll(ctx, tx, "book transfer", append(transferOf(t.ID, t.Debit, t.Credit, int64(t.Amount), t.At, t.Note),
		db.Stmt(`UPDATE credit_balances SET posted = posted + $2, filled = posted + $2 WHERE account_id = $1`, t.AccountID,
			delta),
		tellAgain(t.AccountID, "", OfBalance))...)
	if err != nil {
		return false, err
	}
	return true, audit.Insert(ctx, tx, e)
}

const selectTransfer = `SELECT id, debit, credit, amount, at, note FROM credit_transfers`

func scanTransfer(row db.Row) (t Transfer, err error) {
	err = row.Scan(&t.ID, &t.Debit, &t.Credit, &t.Amount, db.IntoTime(&t.At), &t.Note)
	return t, err
}

// Transfers lists the account's transfers, newest first. It skips the first skip transfers.
func (s *Store) Transfers(ctx context.Context, accountID string, skip, limit int) ([]Transfer, error) {
	book, err := db.QueryValue[string](ctx, s, `SELECT book FROM credit_balances WHERE account_id = $1`, accountID)
	if err != nil {
		return nil, db.ReplaceNoRows(err, nil)
	}
	return db.All(ctx, s, func(row db.Row) (Transfer, error) {
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

// SetCreditCaps replaces version c.Version of the caps of the entry's project, or of its account if the entry has no
// project. If undone is not empty, it marks that entry as undone by e. It returns a *ConflictError, ErrNotUndoable,
// ErrNoBook or projects.ErrNotFound.
func (s *Store) SetCreditCaps(ctx context.Context, c Caps, e audit.Entry, undone string) error {
	return audit.Write(ctx, s.DB, e, func(tx *sql.Tx) error {
		if undone != "" {
			if err := audit.MarkUndone(ctx, tx, ErrNotUndoable, e.AccountID, undone, e.ID); err != nil {
				return err
			}
		}
		table, where, ids := "credit_balances", "account_id = $1", []any{e.AccountID}
		if e.Project != "" {
			table, where, ids = "gateway_settings", "account_id = $1 AND app_id = $2", append(ids, e.Project)
			err := db.Exec(ctx, tx, "set caps", `INSERT INTO gateway_settings (account_id, app_id) VALUES ($1, $2)
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
	ctx context.Context, tx *sql.Tx, c Caps, e audit.Entry, table, where string, ids []any,
) error {
	//nolint:gosec // constants
	current, err := db.QueryValue[int64](ctx, tx, "SELECT caps_version FROM "+table+" WHERE "+where, ids...)
	if err != nil {
		return db.ReplaceNoRows(err, ErrNoBook)
	}
	n, allowance := len(ids), ""
	args := slices.Concat(ids, []any{amountOrNull(c.Day), amountOrNull(c.Month), c.Version})
	if e.Project != "" {
		allowance = fmt.Sprintf("key_allowance = $%d,", n+4)
		args = append(args, amountOrNull(c.Keys))
	}
	saved, err := db.Changed(ctx, tx, "set caps", fmt.Sprintf(`UPDATE %s SET day_cap = $%d, month_cap = $%d, %s
		caps_version = caps_version + 1 WHERE %s AND caps_version = $%d`, table, n+1, n+2, allowance, where, n+3), args...)
	switch {
	case err != nil:
		return err
	case !saved:
		return &ConflictError{Current: current}
	}
	return db.ExecAll(ctx, tx, "tell again", tellAgain(e.AccountID, e.Project, CapDay),
		tellAgain(e.AccountID, e.Project, CapMonth))
}

// tellAgain allows another notice for a limit that was changed.
func tellAgain(accountID, project, what string) db.Statement {
	return db.Stmt(`UPDATE credit_notices SET period = '' WHERE account_id = $1 AND project = $2 AND what = $3`, accountID,
		project, what)
}

// ClaimNotice reports whether the caller should mail a notice on a day. It returns false if a notice about the same
// limit was already mailed on that day. Unless calls are refused, it also returns false if such a notice was mailed
// in the same period.
func (s *Store) ClaimNotice(ctx context.Context, n Notice, period, day string) (claimed bool, err error) {
	err = s.Write(ctx, func(tx *sql.Tx) (err error) {
		claimed, err = db.Changed(ctx, tx, "claim notice",
			`INSERT INTO credit_notices (account_id, project, what, period, day)
			VALUES ($1, $2, $3, $4, $5) ON CONFLICT (account_id, project, what)
			DO UPDATE SET period = excluded.period, day = excluded.day
			WHERE credit_notices.day < excluded.day AND (credit_notices.period <> excluded.period OR $6 = 1)`,
			n.AccountID, n.Project, n.Of, period, day, db.BoolInt(n.Refused))
		return err
	})
	if errors.Is(err, db.ErrNoProject) { // the account has just been deleted
		return false, nil
	}
	return claimed && err == nil, err
}

func amountOrNull(a *Amount) sql.NullInt64 {
	if a == nil {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: int64(*a), Valid: true}
}

// CreditCaps returns the caps of a project or of the account, or no caps if there is no row.
func (s *Store) CreditCaps(ctx context.Context, accountID, project string) (c Caps, err error) {
	query, args := `SELECT day_cap, month_cap, NULL, caps_version FROM credit_balances WHERE account_id = $1`,
		[]any{accountID}
	if project != "" {
		query = `SELECT day_cap, month_cap, key_allowance, caps_version FROM gateway_settings
			WHERE account_id = $1 AND app_id = $2`
		args = append(args, project)
	}
	err = s.QueryRowContext(ctx, query, args...).Scan(&c.Day, &c.Month, &c.Keys, &c.Version)
	return c, db.ReplaceNoRows(err, nil)
}

// Spending returns the spent and held amounts of a project, or of the account if project is empty, for the day and
// month that contain at.
func (s *Store) Spending(
	ctx context.Context, accountID, project string, at time.Time,
) (day, month Spent, err error) {
	today, thisMonth := Periods(at)
	err = db.Each(ctx, s, func(row db.Row) error {
		var period string
		var spent Spent
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

// NewProject returns the statement that sets the limits of a project that has just been created.
func NewProject(accountID, project string) db.Statement {
	return db.Stmt(`INSERT INTO gateway_settings (account_id, app_id, key_allowance) VALUES ($1, $2, $3)`, accountID,
		project, int64(NewProjectAllowance))
}

// CloseBook books the remaining balance of an account that is being deleted, and locks the account's row.
func CloseBook(ctx context.Context, tx *sql.Tx, accountID string, at time.Time) error {
	return db.ExecAll(ctx, tx, "close credit balance",
		db.Stmt(`UPDATE credit_balances SET held = held WHERE account_id = $1`, accountID),
		db.Stmt(`INSERT INTO credit_transfers (id, debit, credit, amount, at, note)
			SELECT 'closed:' || book, book, '`+BookClosed+`', posted, CAST($2 AS BIGINT), '' FROM credit_balances
			WHERE account_id = $1 AND posted > 0`, accountID, db.ToMS(at)))
}
