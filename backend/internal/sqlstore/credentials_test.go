package sqlstore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/service-dev/service/backend/internal/storetest"
)

func TestCredentials(t *testing.T) {
	eachEngine(t, func(t *testing.T, database func(t *testing.T) string) {
		storetest.RunCredentials(t, func(t *testing.T) storetest.Database {
			where := database(t)
			s := openStore(t, where)
			t.Cleanup(func() { s.Close() })
			return storetest.Database{Store: s, Dump: func(t *testing.T) string { return dump(t, where) },
				Exec: func(t *testing.T, statement string, args ...any) {
					t.Helper()
					db := connect(t, where)
					defer db.Close()
					if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
						t.Fatal(err)
					}
				}}
		})
	})
}

// dump gives every value of every table as an operator's own client sees them.
func dump(t *testing.T, database string) string {
	t.Helper()
	db := connect(t, database)
	defer db.Close()
	tables := "SELECT name FROM sqlite_master WHERE type = 'table'"
	if strings.HasPrefix(database, "postgres") {
		tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
	}
	list := func(query string) [][]string {
		rows, err := db.QueryContext(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		var all [][]string
		for rows.Next() {
			values, into := make([]any, len(columns)), make([]any, len(columns))
			for i := range values {
				into[i] = &values[i]
			}
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			var row []string
			for _, v := range values {
				if b, ok := v.([]byte); ok {
					v = string(b)
				}
				row = append(row, fmt.Sprint(v))
			}
			all = append(all, row)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return all
	}
	var out strings.Builder
	for _, table := range list(tables) {
		for _, row := range list("SELECT * FROM " + table[0]) {
			fmt.Fprintln(&out, table[0], row)
		}
	}
	return out.String()
}
