package db

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Bulk writes many rows with a short statement. A statement with a placeholder for each value would be slow. SQLite
// needs quadratic time to number the placeholders, and PostgreSQL plans the statement again for every number of rows.
// Bulk therefore runs a prepared statement once per row on SQLite, and once for all rows on PostgreSQL, with an array
// for each column.
type Bulk struct {
	tx       *sql.Tx
	Postgres bool
}

// Bulk returns a writer of many rows in a transaction.
func (d *DB) Bulk(tx *sql.Tx) Bulk { return Bulk{tx, d.Postgres()} }

// Column is the name of a column and its value for each row.
type Column struct {
	name   string
	values any
}

// Col returns a column. values is a []int64, []string or [][]byte with a value for each row, or an int64 that is used
// for every row.
func Col(name string, values any) Column { return Column{name, values} }

func (c Column) value(row int) any {
	switch values := c.values.(type) {
	case []int64:
		return values[row]
	case []string:
		return values[row]
	case [][]byte:
		return values[row]
	}
	return c.values
}

// Insert inserts rows and returns the number of rows that were inserted or updated. end is the end of the statement,
// beginning with ON CONFLICT.
func (b Bulk) Insert(
	ctx context.Context, purpose, into, end string, rows int, columns ...Column,
) (int64, error) {
	if rows == 0 {
		return 0, nil
	}
	if b.Postgres {
		source, args := arrays(columns)
		return ExecCount(ctx, b.tx, purpose, "INSERT INTO "+into+" ("+ColumnNames("", columns)+") SELECT "+ColumnNames("r.",
			columns)+
			" FROM "+source+end, args...)
	}
	changed, err := b.InsertEach(ctx, purpose, into, end, rows, columns...)
	return int64(len(changed)), err
}

// InsertEach inserts rows on SQLite, and returns the indices of the rows that were inserted or updated.
func (b Bulk) InsertEach(
	ctx context.Context, purpose, into, end string, rows int, columns ...Column,
) (changed []int, err error) {
	changed, _, err = b.each(ctx, purpose,
		"INSERT INTO "+into+" ("+ColumnNames("", columns)+") VALUES "+Placeholders(len(columns), 1)+end, rows, columns)
	return changed, err
}

// AddTo adds n to the column n of the row with each key, and returns the indices of the keys that have no row.
func (b Bulk) AddTo(ctx context.Context, purpose, table string, n []int64, key ...Column) (missing []int, err error) {
	columns := slices.Concat(key, []Column{{"n", n}})
	if !b.Postgres {
		text := "UPDATE " + table + " SET n = n + $" + strconv.Itoa(len(columns)) + " WHERE " +
			matches(table, key, func(i int) string { return "$" + strconv.Itoa(i+1) })
		_, missing, err = b.each(ctx, purpose, text, len(n), columns)
		return missing, err
	}
	source, args := arrays(columns)
	known := make([]bool, len(n))
	err = Each(ctx, b.tx, func(row Row) error {
		i, err := Value[int](row)
		if err == nil {
			known[i-1] = true
		}
		return err
	}, "UPDATE "+table+" SET n = "+table+".n + r.n FROM "+source+" WHERE "+
		matches(table, key, func(i int) string { return "r." + key[i].name })+" RETURNING r.row", args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", purpose, err)
	}
	for i := range known {
		if !known[i] {
			missing = append(missing, i)
		}
	}
	return missing, nil
}

// Read calls f for every row of a table with one of the keys. f scans the index of the key and the selected columns.
func (b Bulk) Read(
	ctx context.Context, purpose, selected, table string, f func(Row) error, keys int, key ...Column,
) (err error) {
	if b.Postgres {
		source, args := arrays(key)
		// OFFSET makes PostgreSQL use the index for each key, regardless of its estimate of the table's size.
		err = Each(ctx, b.tx, f, "SELECT r.row - 1, found.* FROM "+source+" CROSS JOIN LATERAL (SELECT "+selected+
			" FROM "+table+" WHERE "+matches(table, key, func(i int) string { return "r." + key[i].name })+
			" OFFSET 0) AS found", args...)
	} else {
		text := "SELECT $1, " + selected + " FROM " + table + " WHERE " +
			matches(table, key, func(i int) string { return "$" + strconv.Itoa(i+2) })
		args := make([]any, len(key)+1)
		for i := 0; i < keys && err == nil; i++ {
			args[0] = i
			for j := range key {
				args[j+1] = key[j].value(i)
			}
			err = Each(ctx, b.tx, f, text, args...)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", purpose, err)
	}
	return nil
}

// each runs a statement for each row, with the row's values as arguments. It returns the indices of the rows for
// which the statement changed something, and the indices of the others.
func (b Bulk) each(
	ctx context.Context, purpose, text string, rows int, columns []Column,
) (changed, unchanged []int, err error) {
	args := make([]any, len(columns))
	for i := range rows {
		for j := range columns {
			args[j] = columns[j].value(i)
		}
		n, err := ExecCount(ctx, b.tx, purpose, text, args...)
		switch {
		case err != nil:
			return nil, nil, err
		case n > 0:
			changed = append(changed, i)
		default:
			unchanged = append(unchanged, i)
		}
	}
	return changed, unchanged, nil
}

// arrays returns a source of rows for PostgreSQL, named r, and its arguments. The column row numbers the rows from 1.
func arrays(columns []Column) (source string, args []any) {
	var same, types, lists []string
	for i, c := range columns {
		parameter := "$" + strconv.Itoa(i+1)
		args = append(args, c.values)
		switch c.values.(type) {
		case int64:
			same = append(same, parameter+"::bigint AS "+c.name)
			continue
		case []int64:
			parameter += "::bigint[]"
		case []string:
			parameter += "::text[]"
		case [][]byte:
			parameter += "::bytea[]"
		}
		types, lists = append(types, parameter), append(lists, c.name)
	}
	return "(SELECT " + strings.Join(append(same, "u.*"), ", ") + " FROM unnest(" + strings.Join(types, ", ") +
		") WITH ORDINALITY AS u (" + strings.Join(append(lists, "row"), ", ") + ")) AS r", args
}

// ColumnNames lists the names of the columns, each after the prefix.
func ColumnNames(prefix string, columns []Column) string {
	list := make([]string, len(columns))
	for i, c := range columns {
		list[i] = prefix + c.name
	}
	return strings.Join(list, ", ")
}

// matches returns the condition that the columns of a table have the given values.
func matches(table string, columns []Column, value func(i int) string) string {
	conditions := make([]string, len(columns))
	for i, c := range columns {
		conditions[i] = table + "." + c.name + " = " + value(i)
	}
	return strings.Join(conditions, " AND ")
}
