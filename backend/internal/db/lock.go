package db

import (
	"context"
	"database/sql"
	"iter"
	"slices"
)

// WriteAccount is like Write, but locks the account first.
func (d *DB) WriteAccount(ctx context.Context, accountID string, f func(tx *sql.Tx) error) error {
	return d.Write(ctx, func(tx *sql.Tx) error {
		if _, err := LockAccount(ctx, tx, accountID); err != nil {
			return err
		}
		return f(tx)
	})
}

// LockAccount blocks other changes to the account, and other transactions that create, merge or delete its projects,
// until the transaction ends. It reports whether the account exists.
func LockAccount(ctx context.Context, tx *sql.Tx, accountID string) (found bool, err error) {
	return Changed(ctx, tx, "lock account", "UPDATE accounts SET state = state WHERE id = $1", accountID)
}

// LockText blocks other transactions that lock the same text, such as an e-mail address, until the transaction ends.
// SQLite has a single writer and needs no lock.
func (d *DB) LockText(ctx context.Context, tx *sql.Tx, text string) error {
	if !d.Postgres() {
		return nil
	}
	return Exec(ctx, tx, "lock address", "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", text)
}

// ForUpdate locks the rows that a query reads from a table until the transaction ends. SQLite has a single writer and
// needs no lock.
func (d *DB) ForUpdate(table string) string {
	if !d.Postgres() {
		return ""
	}
	return " FOR UPDATE OF " + table
}

// ForShare blocks changes to the rows that a query reads from a table until the transaction ends, but not other
// transactions that read them so. SQLite has a single writer and needs no lock.
func (d *DB) ForShare(table string) string {
	if !d.Postgres() {
		return ""
	}
	return " FOR SHARE OF " + table
}

// ForKeyShare prevents the deletion of the rows that a query reads from a table until the transaction ends. SQLite has
// a single writer and needs no lock.
func (d *DB) ForKeyShare(table string) string {
	if !d.Postgres() {
		return ""
	}
	return " FOR KEY SHARE OF " + table
}

// Groups returns the indexes of all, in groups of equal elements, sorted by compare. Transactions that lock the rows of
// several groups lock them in this order, which avoids deadlocks. Elements of a group keep their order.
func Groups[T any](all []T, compare func(a, b *T) int) iter.Seq[[]int] {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return compare(&all[a], &all[b]) })
	return func(yield func([]int) bool) {
		for start, end := 0, 0; start < len(order); start = end {
			for end < len(order) && compare(&all[order[start]], &all[order[end]]) == 0 {
				end++
			}
			if !yield(order[start:end]) {
				return
			}
		}
	}
}
