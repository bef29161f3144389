package sqlstore_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/service-dev/service/backend/internal/storetest"
)

func TestProjects(t *testing.T) { eachProjects(t, storetest.RunProjects) }
func TestGrants(t *testing.T)   { eachProjects(t, storetest.RunGrants) }
func TestAudit(t *testing.T)    { eachProjects(t, storetest.RunAudit) }

func eachProjects(t *testing.T, suite func(*testing.T, storetest.OpenProjects)) {
	eachEngine(t, func(t *testing.T, database func(t *testing.T) string) {
		suite(t, func(t *testing.T) (storetest.ProjectStore, storetest.Probe) {
			where := database(t)
			s := openStore(t, where)
			t.Cleanup(func() { s.Close() })
			db := connect(t, where)
			t.Cleanup(func() { db.Close() })
			return s, storetest.Probe{
				Dump: func() string { return projectKeys(t, db) },
				Exec: func(statement string) {
					t.Helper()
					if _, err := db.ExecContext(t.Context(), statement); err != nil {
						t.Fatal(err)
					}
				},
				Count: func(query string) (n int) {
					t.Helper()
					if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
						t.Fatal(err)
					}
					return n
				},
			}
		})
	})
}

// projectKeys gives the rows of the table as an operator's own client sees them.
func projectKeys(t *testing.T, db *sql.DB) string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT id, hash, account_id, app_id, name, hint, prefix FROM project_keys`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all strings.Builder
	for rows.Next() {
		var c [7]string
		if err := rows.Scan(&c[0], &c[1], &c[2], &c[3], &c[4], &c[5], &c[6]); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&all, c)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all.String()
}
