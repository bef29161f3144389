package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// querier is the pool for reads or the transaction of a write.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// scanner is a *sql.Row or the current row of a *sql.Rows.
type scanner interface{ Scan(into ...any) error }

// errEnough stops queryEach without an error.
var errEnough = errors.New("no more rows needed")

// queryEach calls f for each row of the result, until f returns an error. If f returns errEnough, queryEach returns
// nil.
func queryEach(ctx context.Context, q querier, f func(scanner) error, query string, args ...any) error {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows); err != nil {
			if errors.Is(err, errEnough) {
				return nil
			}
			return err
		}
	}
	return rows.Err()
}

// queryAll returns the results of scan for all rows of a query.
func queryAll[T any](
	ctx context.Context, q querier, scan func(scanner) (T, error), query string, args ...any,
) (all []T, err error) {
	err = queryEach(ctx, q, func(row scanner) error {
		one, err := scan(row)
		all = append(all, one)
		return err
	}, query, args...)
	if err != nil {
		return nil, err
	}
	return all, nil
}

// queryOne returns the result of scan for the first row of a query, or none if there is no row.
func queryOne[T any](
	ctx context.Context, q querier, none error, scan func(scanner) (T, error), query string, args ...any,
) (T, error) {
	one, err := scan(q.QueryRowContext(ctx, query, args...))
	if err != nil {
		return *new(T), replaceNoRows(err, none)
	}
	return one, nil
}

// value scans a row with one column.
func value[T any](row scanner) (v T, err error) {
	err = row.Scan(&v)
	return v, err
}

// queryValue returns the only column of a query's first row, or sql.ErrNoRows.
func queryValue[T any](ctx context.Context, q querier, query string, args ...any) (T, error) {
	return value[T](q.QueryRowContext(ctx, query, args...))
}

// hasRow reports whether a query returns a row. The query must select the constant 1.
func hasRow(ctx context.Context, q querier, query string, args ...any) (bool, error) {
	_, err := queryValue[int](ctx, q, query, args...)
	return err == nil, replaceNoRows(err, nil)
}

// replaceNoRows replaces sql.ErrNoRows with none, and returns any other error unchanged.
func replaceNoRows(err, none error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return none
	}
	return err
}

// execTx runs a statement. Its error starts with purpose, such as "insert audit entry".
func execTx(ctx context.Context, tx *sql.Tx, purpose, statement string, args ...any) error {
	_, err := execCount(ctx, tx, purpose, statement, args...)
	return err
}

// execCount is like execTx, and returns the number of rows that the statement changed.
func execCount(ctx context.Context, tx *sql.Tx, purpose, statement string, args ...any) (int64, error) {
	result, err := tx.ExecContext(ctx, statement, args...)
	return rowsChanged(result, err, purpose)
}

// changed is like execTx, and reports whether the statement changed a row.
func changed(ctx context.Context, tx *sql.Tx, purpose, statement string, args ...any) (bool, error) {
	n, err := execCount(ctx, tx, purpose, statement, args...)
	return n > 0, err
}

// mustChange is like execTx, but returns none if the statement changed no row.
func mustChange(ctx context.Context, tx *sql.Tx, none error, purpose, statement string, args ...any) error {
	ok, err := changed(ctx, tx, purpose, statement, args...)
	return require(ok, err, none)
}

// require returns err, or none if err is nil and ok is false.
func require(ok bool, err, none error) error {
	if err == nil && !ok {
		return none
	}
	return err
}

func rowsChanged(result sql.Result, err error, purpose string) (n int64, _ error) {
	if err == nil {
		n, err = result.RowsAffected()
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", purpose, err)
	}
	return n, nil
}

// statement is one step of execAll.
type statement struct {
	text string
	args []any
}

func stmt(text string, args ...any) statement { return statement{text, args} }

// execAll runs statements until one fails. Its error starts with purpose.
func execAll(ctx context.Context, tx *sql.Tx, purpose string, statements ...statement) error {
	for _, s := range statements {
		if err := execTx(ctx, tx, purpose, s.text, s.args...); err != nil {
			return err
		}
	}
	return nil
}

// anys converts strings to query arguments.
func anys(texts []string) []any {
	args := make([]any, 0, len(texts))
	for _, text := range texts {
		args = append(args, text)
	}
	return args
}

func toMS(t time.Time) int64 { return t.UnixMilli() }

func fromMS(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// orNull converts the zero time to NULL.
func orNull(t time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: t.UnixMilli(), Valid: !t.IsZero()}
}

// textOrNull converts nil to NULL.
func textOrNull(b []byte) sql.NullString { return sql.NullString{String: string(b), Valid: b != nil} }

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// timeMS is a time in a column of milliseconds since 1970, with NULL as the zero time.
type timeMS time.Time

// intoTime returns a destination for Scan that sets t.
func intoTime(t *time.Time) *timeMS { return (*timeMS)(t) }

func (t *timeMS) Scan(column any) error {
	switch v := column.(type) {
	case nil:
		*t = timeMS{}
	case int64:
		*t = timeMS(fromMS(v))
	default:
		return fmt.Errorf("scan a time: unexpected %T", column)
	}
	return nil
}

// durationMS is a duration in a column of milliseconds.
type durationMS time.Duration

// intoDuration returns a destination for Scan that sets d.
func intoDuration(d *time.Duration) *durationMS { return (*durationMS)(d) }

func (d *durationMS) Scan(column any) error {
	v, ok := column.(int64)
	if !ok {
		return fmt.Errorf("scan a duration: unexpected %T", column)
	}
	*d = durationMS(v * int64(time.Millisecond))
	return nil
}

// nullableText is a text column with NULL as "".
type nullableText string

// intoText returns a destination for Scan that sets s.
func intoText(s *string) *nullableText { return (*nullableText)(s) }

func (s *nullableText) Scan(column any) error {
	switch v := column.(type) {
	case nil:
		*s = ""
	case string:
		*s = nullableText(v)
	case []byte:
		*s = nullableText(v)
	default:
		return fmt.Errorf("scan a text: unexpected %T", column)
	}
	return nil
}
