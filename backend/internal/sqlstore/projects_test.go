package sqlstore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/service-dev/service/backend/internal/storetest"
)

func TestProjects(t *testing.T) {
	eachEngine(t, func(t *testing.T, database func(t *testing.T) string) {
		storetest.RunProjects(t, func(t *testing.T) (storetest.ProjectStore, func() string) {
			where := database(t)
			s := openStore(t, where)
			t.Cleanup(func() { s.Close() })
			return s, func() string { return projectKeys(t, where) }
		})
	})
}

// projectKeys gives the rows of the table as an operator's own client sees them.
func projectKeys(t *testing.T, database string) string {
	t.Helper()
	db := connect(t, database)
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), `SELECT hash, account_id, app_id, name, hint FROM project_keys`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all strings.Builder
	for rows.Next() {
		var c [5]string
		if err := rows.Scan(&c[0], &c[1], &c[2], &c[3], &c[4]); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&all, c)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all.String()
}
