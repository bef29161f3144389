package sqlstore

import (
	"context"
	"database/sql"
)

// pointQuery reads one row with a statement that stays prepared until the database is closed, because SQLite takes
// longer to parse such a query than to run it. Callers pass only constant queries, so few statements stay prepared.
func (s *Store) pointQuery(ctx context.Context, query string, args ...any) *sql.Row {
	ctx = s.pointRead(ctx)
	stmt, ok := s.prepared.Load(query)
	if !ok {
		fresh, err := s.reads.PrepareContext(ctx, query)
		if err != nil {
			return s.reads.QueryRowContext(ctx, query, args...) // which returns the error
		}
		if stmt, ok = s.prepared.LoadOrStore(query, fresh); ok { // another goroutine was faster
			defer fresh.Close()
		}
	}
	return stmt.(*sql.Stmt).QueryRowContext(ctx, args...)
}
