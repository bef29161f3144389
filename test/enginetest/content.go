package enginetest

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Content is every row of every table of a database, by table.
type Content map[string]Table

// Table is the content of a table: the names of its columns, and a text for each row, sorted.
type Table struct{ Columns, Rows []string }

// ReadContent reads a whole database.
func ReadContent(t testing.TB, address string) Content {
	t.Helper()
	client := Connect(t, address)
	defer client.Close()
	query := `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`
	if IsPostgres(address) {
		query = `SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'`
	}
	_, names := readRows(t, client, query)
	content := Content{}
	for _, row := range names {
		content[fmt.Sprint(row[0])] = readTable(t, client, fmt.Sprint(row[0]), "*")
	}
	return content
}

// Changes reads the database again and returns how each table differs, in the columns that it had before. Rows of
// migrations that were applied since then are no difference.
func (c Content) Changes(t testing.TB, address string) map[string]string {
	t.Helper()
	client := Connect(t, address)
	defer client.Close()
	changes := map[string]string{}
	for name, before := range c {
		now := readTable(t, client, name, strings.Join(before.Columns, ", "))
		if name == "goose_db_version" {
			now.Rows = slices.DeleteFunc(now.Rows, func(row string) bool { return !slices.Contains(before.Rows, row) })
		}
		if diff := cmp.Diff(before.Rows, now.Rows); diff != "" {
			changes[name] = diff
		}
	}
	return changes
}

func readTable(t testing.TB, client *sql.DB, name, columns string) Table {
	t.Helper()
	names, rows := readRows(t, client, "SELECT "+columns+" FROM "+name)
	table := Table{Columns: names}
	for _, values := range rows {
		var row strings.Builder
		for i, v := range values {
			fmt.Fprintf(&row, "%s=%#v ", names[i], v)
		}
		table.Rows = append(table.Rows, row.String())
	}
	slices.Sort(table.Rows)
	return table
}

func readRows(t testing.TB, client *sql.DB, query string) (columns []string, all [][]any) {
	t.Helper()
	rows, err := client.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err = rows.Columns()
	for err == nil && rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		err = rows.Scan(into...)
		all = append(all, values)
	}
	if err = errors.Join(err, rows.Err()); err != nil {
		t.Fatal(err)
	}
	return columns, all
}
