// Package storetest is the conformance suite of the store for every database engine. It tests through the features'
// services, so that it covers their rules together with the SQL.
package storetest

import (
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/dbtest"
	"github.com/service-dev/service/test/enginetest"
	"github.com/service-dev/service/test/reaper"
)

func TestMain(m *testing.M) {
	os.Exit(reaper.Run(func() int { return reportPlans(enginetest.Run(m)) }))
}

// database is the stores of a database with direct access to its database, like an operator's SQL client.
type database struct {
	stores
	t       *testing.T
	address string
	client  *sql.DB
}

// eachEngine runs the tests of a suite on every engine, each with its own empty database, in parallel.
func eachEngine[T any](t *testing.T, tests map[string]T, run func(t *testing.T, db *database, test T)) {
	t.Parallel()
	dbtest.EachEngine(t, func(t *testing.T, create func(t *testing.T) string) {
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				address := create(t)
				db := &database{
					stores: openStores(t, address), t: t, address: address, client: enginetest.Connect(t, address),
				}
				t.Cleanup(func() {
					_ = db.Close()
					plans.check(t, address)
				})
				run(t, db, test)
			})
		}
	})
}

func openStores(t *testing.T, address string) stores {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	return newStores(must(db.OpenObserved(t.Context(), address, log, plans.observe(engineOf(address))))(t))
}

// reopen closes the store and opens the same database again.
func (d *database) reopen() {
	d.t.Helper()
	noError(d.t, d.Close())
	d.stores = openStores(d.t, d.address)
}

func (d *database) exec(statement string, args ...any) {
	d.t.Helper()
	_, err := d.client.ExecContext(d.t.Context(), statement, args...)
	fatal(d.t, err)
}

// count returns the number selected by a query.
func (d *database) count(query string) (n int) {
	d.t.Helper()
	fatal(d.t, d.client.QueryRowContext(d.t.Context(), query).Scan(&n))
	return n
}

// dump returns every value of every table as text.
func (d *database) dump() string {
	d.t.Helper()
	tables := "SELECT name FROM sqlite_master WHERE type = 'table'"
	if enginetest.IsPostgres(d.address) {
		tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
	}
	var out strings.Builder
	for _, table := range d.rows(tables) {
		for _, row := range d.rows("SELECT * FROM " + table[0]) {
			fmt.Fprintln(&out, table[0], row)
		}
	}
	return out.String()
}

func (d *database) rows(query string) (all [][]string) {
	d.t.Helper()
	rows := must(d.client.QueryContext(d.t.Context(), query))(d.t)
	defer rows.Close()
	columns := must(rows.Columns())(d.t)
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		fatal(d.t, rows.Scan(into...))
		row := make([]string, len(columns))
		for i, v := range values {
			if b, ok := v.([]byte); ok {
				v = string(b)
			}
			row[i] = fmt.Sprint(v)
		}
		all = append(all, row)
	}
	fatal(d.t, rows.Err())
	return all
}
