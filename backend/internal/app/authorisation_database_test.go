package app

import (
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// database dumps and restores everything that a backend stores.
type database struct {
	t    *testing.T
	db   *sql.Conn
	lite bool
	kept map[string]table
	mark string
}

type table struct {
	columns []string
	rows    [][]any
	text    []string // sorted rows, for comparison
}

func openDatabase(t *testing.T, where string) *database {
	t.Helper()
	driver, dsn := "pgx", where
	d := &database{t: t, lite: !strings.HasPrefix(where, "postgres://")}
	if d.lite {
		driver, dsn = "sqlite", "file:"+where+"?_pragma=busy_timeout(5000)&_pragma=foreign_keys(0)&_pragma=synchronous(0)"
	}
	pool, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	if d.db, err = pool.Conn(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.db.Close() })
	if !d.lite {
		d.exec("SET session_replication_role = replica") // disable foreign keys while rows are restored
	}
	return d
}

func (d *database) exec(statement string, args ...any) {
	d.t.Helper()
	if _, err := d.db.ExecContext(d.t.Context(), statement, args...); err != nil {
		d.t.Fatalf("%s: %v", statement, err)
	}
}

func (d *database) texts(query string) []string {
	d.t.Helper()
	var all []string
	for _, row := range d.read(query).rows {
		all = append(all, fmt.Sprint(row[0]))
	}
	return all
}

func (d *database) read(query string) table {
	d.t.Helper()
	rows, err := d.db.QueryContext(d.t.Context(), query)
	if err != nil {
		d.t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	var found table
	if found.columns, err = rows.Columns(); err != nil {
		d.t.Fatal(err)
	}
	for rows.Next() {
		row, into := make([]any, len(found.columns)), make([]any, len(found.columns))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			d.t.Fatal(err)
		}
		found.rows, found.text = append(found.rows, row), append(found.text, fmt.Sprintf("%v", row))
	}
	if err := rows.Err(); err != nil {
		d.t.Fatal(err)
	}
	slices.Sort(found.text)
	return found
}

func (d *database) dump() map[string]table {
	d.t.Helper()
	list := "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
	if d.lite {
		list = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
	}
	all := map[string]table{}
	for _, name := range d.texts(list) {
		// Viewing a code adds a line to the linking trail for every viewer. Other tests cover that.
		if name != "goose_db_version" && name != "link_trail" {
			all[name] = d.read("SELECT * FROM " + name)
		}
	}
	return all
}

// written returns a value that changes with every write to the database. It shows, without the cost of a dump, that a
// request wrote nothing.
func (d *database) written() string {
	d.t.Helper()
	query := "SELECT pg_current_wal_insert_lsn()::text"
	if d.lite {
		query = "PRAGMA data_version"
	}
	return d.texts(query)[0]
}

// keep records the content of the database. Later calls of changes compare with it.
func (d *database) keep() {
	d.t.Helper()
	d.kept, d.mark = d.dump(), d.written()
}

// changes returns the rows of each table that were added or removed since keep, and restores the recorded content.
func (d *database) changes() map[string][]string {
	d.t.Helper()
	if d.written() == d.mark {
		return nil
	}
	found := map[string][]string{}
	d.exec("BEGIN")
	for name, is := range d.dump() {
		was := d.kept[name]
		if rows := append(without(is.text, was.text), without(was.text, is.text)...); len(rows) > 0 {
			found[name] = rows
			d.put(name, was)
		}
	}
	d.exec("COMMIT")
	d.mark = d.written()
	return found
}

func without(these, those []string) []string {
	return slices.DeleteFunc(slices.Clone(these), func(row string) bool { return slices.Contains(those, row) })
}

func (d *database) put(name string, was table) {
	d.t.Helper()
	d.exec("DELETE FROM " + name)
	holes := make([]string, len(was.columns))
	for i := range holes {
		holes[i] = fmt.Sprintf("$%d", i+1)
	}
	for _, row := range was.rows {
		d.exec("INSERT INTO "+name+" ("+strings.Join(was.columns, ", ")+") VALUES ("+strings.Join(holes, ", ")+")", row...)
	}
}

func tablesOf(changes map[string][]string) string {
	return strings.Join(slices.Sorted(maps.Keys(changes)), ", ")
}
