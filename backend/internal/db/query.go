package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Querier is the pool for reads or the transaction of a write.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Row is a *sql.Row or the current row of a *sql.Rows.
type Row interface{ Scan(into ...any) error }

// ErrEnough is returned by a callback of Each to stop without an error.
var ErrEnough = errors.New("no more rows needed")

// Each calls f for each row of the result, until f returns an error. If f returns ErrEnough, Each returns
// nil.
func Each(ctx context.Context, q Querier, f func(Row) error, query string, args ...any) error {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows); err != nil {
			if errors.Is(err, ErrEnough) {
				return nil
			}
			return err
		}
	}
	return rows.Err()
}

// All returns the results of scan for all rows of a query.
func All[T any](
	ctx context.Context, q Querier, scan func(Row) (T, error), query string, args ...any,
) (all []T, err error) {
	err = Each(ctx, q, func(row Row) error {
		one, err := scan(row)
		all = append(all, one)
		return err
	}, query, args...)
	if err != nil {
		return nil, err
	}
	return all, nil
}

// One returns the result of scan for the first row of a query, or none if there is no row.
func One[T any](
	ctx context.Context, q Querier, none error, scan func(Row) (T, error), query string, args ...any,
) (T, error) {
	one, err := scan(q.QueryRowContext(ctx, query, args...))
	if err != nil {
		return *new(T), ReplaceNoRows(err, none)
	}
	return one, nil
}

// Value scans a row with one column.
func Value[T any](row Row) (v T, err error) {
	err = row.Scan(&v)
	return v, err
}

// QueryValue returns the only column of a query's first row, or sql.ErrNoRows.
func QueryValue[T any](ctx context.Context, q Querier, query string, args ...any) (T, error) {
	return Value[T](q.QueryRowContext(ctx, query, args...))
}

// Exists reports whether a query returns a row. The query must select the constant 1.
func Exists(ctx context.Context, q Querier, query string, args ...any) (bool, error) {
	_, err := QueryValue[int](ctx, q, query, args...)
	return err == nil, ReplaceNoRows(err, nil)
}

// ReplaceNoRows replaces sql.ErrNoRows with none, and returns any other error unchanged.
func ReplaceNoRows(err, none error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return none
	}
	return err
}

// Exec runs a statement. Its error starts with purpose, such as "insert audit entry".
func Exec(ctx context.Context, tx *sql.Tx, purpose, statement string, args ...any) error {
	_, err := ExecCount(ctx, tx, purpose, statement, args...)
	return err
}

// ExecCount is like Exec, and returns the number of rows that the statement changed.
func ExecCount(ctx context.Context, tx *sql.Tx, purpose, statement string, args ...any) (int64, error) {
	result, err := tx.ExecContext(ctx, statement, args...)
	return rowsChanged(result, err, purpose)
}

// Changed is like Exec, and reports whether the statement changed a row.
func Changed(ctx context.Context, tx *sql.Tx, purpose, statement string, args ...any) (bool, error) {
	n, err := ExecCount(ctx, tx, purpose, statement, args...)
	return n > 0, err
}

// MustChange is like Exec, but returns none if the statement changed no row.
func MustChange(ctx context.Context, tx *sql.Tx, none error, purpose, statement string, args ...any) error {
	ok, err := Changed(ctx, tx, purpose, statement, args...)
	return Require(ok, err, none)
}

// Require returns err, or none if err is nil and ok is false.
func Require(ok bool, err, none error) error {
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

// Statement is one step of ExecAll.
type Statement struct {
	Text string
	Args []any
}

// Stmt returns a statement for ExecAll.
func Stmt(text string, args ...any) Statement { return Statement{text, args} }

// ExecAll runs statements until one fails. Its error starts with purpose.
func ExecAll(ctx context.Context, tx *sql.Tx, purpose string, statements ...Statement) error {
	for _, s := range statements {
		if err := Exec(ctx, tx, purpose, s.Text, s.Args...); err != nil {
			return err
		}
	}
	return nil
}

// ExecUnordered runs statements that change different rows and do not read each other's changes. On PostgreSQL they are
// one statement, because a round trip costs more than most statements. Its error starts with purpose.
func (d *DB) ExecUnordered(ctx context.Context, tx *sql.Tx, purpose string, statements ...Statement) error {
	if !d.Postgres() || len(statements) < 2 {
		return ExecAll(ctx, tx, purpose, statements...)
	}
	var text strings.Builder
	var args []any
	for i, s := range statements {
		switch {
		case i == len(statements)-1:
			text.WriteString(") ")
		case i == 0:
			text.WriteString("WITH s0 AS (")
		default:
			fmt.Fprintf(&text, "), s%d AS (", i)
		}
		text.WriteString(shiftPlaceholders(s.Text, len(args)))
		args = append(args, s.Args...)
	}
	return Exec(ctx, tx, purpose, text.String(), args...)
}

var placeholder = regexp.MustCompile(`\$\d+`)

// shiftPlaceholders adds n to the number of each placeholder in a statement.
func shiftPlaceholders(statement string, n int) string {
	if n == 0 {
		return statement
	}
	return placeholder.ReplaceAllStringFunc(statement, func(p string) string {
		number, _ := strconv.Atoi(p[1:])
		return "$" + strconv.Itoa(number+n)
	})
}

// Placeholders returns n placeholders numbered from first, for example "($3,$4,$5)".
func Placeholders(n, first int) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = "$" + strconv.Itoa(first+i)
	}
	return "(" + strings.Join(parts, ",") + ")"
}

// ExecEach runs statements with the same arguments until one fails. Its error starts with purpose.
func ExecEach(ctx context.Context, tx *sql.Tx, purpose string, args []any, statements ...string) error {
	for _, text := range statements {
		if err := Exec(ctx, tx, purpose, text, args...); err != nil {
			return err
		}
	}
	return nil
}

// Args converts strings to query arguments.
func Args(texts []string) []any {
	args := make([]any, 0, len(texts))
	for _, text := range texts {
		args = append(args, text)
	}
	return args
}

// ToMS returns a time as stored, in milliseconds since 1970.
func ToMS(t time.Time) int64 { return t.UnixMilli() }

// FromMS returns the time of a stored number of milliseconds.
func FromMS(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// TimeOrNull converts the zero time to NULL.
func TimeOrNull(t time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: t.UnixMilli(), Valid: !t.IsZero()}
}

// TextOrNull converts nil to NULL.
func TextOrNull(b []byte) sql.NullString { return sql.NullString{String: string(b), Valid: b != nil} }

// BoolInt returns 1 or 0, because a column of SQLite holds no boolean.
func BoolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// timeMS is a time in a column of milliseconds since 1970, in which NULL is the zero time.
type timeMS time.Time

// IntoTime returns a destination for Scan that sets t.
func IntoTime(t *time.Time) sql.Scanner { return (*timeMS)(t) }

func (t *timeMS) Scan(column any) error {
	switch v := column.(type) {
	case nil:
		*t = timeMS{}
	case int64:
		*t = timeMS(FromMS(v))
	default:
		return fmt.Errorf("scan a time: unexpected %T", column)
	}
	return nil
}

// durationMS is a duration in a column of milliseconds.
type durationMS time.Duration

// IntoDuration returns a destination for Scan that sets d.
func IntoDuration(d *time.Duration) sql.Scanner { return (*durationMS)(d) }

func (d *durationMS) Scan(column any) error {
	v, ok := column.(int64)
	if !ok {
		return fmt.Errorf("scan a duration: unexpected %T", column)
	}
	*d = durationMS(v * int64(time.Millisecond))
	return nil
}

// nullableText is a text column in which NULL is "".
type nullableText string

// IntoText returns a destination for Scan that sets s.
func IntoText(s *string) sql.Scanner { return (*nullableText)(s) }

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
