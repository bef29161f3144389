package db

import (
	"context"
	"database/sql"
)

// QueryPrepared reads one row with a statement that stays prepared until the database is closed, because SQLite takes
// longer to parse such a query than to run it. Callers pass only constant queries, so few statements stay prepared.
func (d *DB) QueryPrepared(ctx context.Context, query string, args ...any) *sql.Row {
	ctx = d.pointRead(ctx)
	stmt, ok := d.prepared.Load(query)
	if !ok {
		fresh, err := d.reads.PrepareContext(ctx, query)
		if err != nil {
			return d.reads.QueryRowContext(ctx, query, args...) // this call returns the error
		}
		if stmt, ok = d.prepared.LoadOrStore(query, fresh); ok { // another goroutine stored the statement first
			defer fresh.Close()
		}
	}
	return stmt.(*sql.Stmt).QueryRowContext(ctx, args...)
}
