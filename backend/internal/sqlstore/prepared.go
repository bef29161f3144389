package sqlstore

import (
	"context"
	"database/sql"
)

// pointQuery reads one row by a query that stays prepared until the database is closed: parsing one costs SQLite more
// than running it. The texts of queries are constants, so there are few.
func (s *Store) pointQuery(ctx context.Context, query string, args ...any) *sql.Row {
	ctx = s.pointRead(ctx)
	stmt, ok := s.prepared.Load(query)
	if !ok {
		fresh, err := s.reads.PrepareContext(ctx, query)
		if err != nil {
			return s.reads.QueryRowContext(ctx, query, args...) // which reports the error
		}
		if stmt, ok = s.prepared.LoadOrStore(query, fresh); ok { // another goroutine was first
			defer fresh.Close()
		}
	}
	return stmt.(*sql.Stmt).QueryRowContext(ctx, args...)
}
