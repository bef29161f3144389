package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// full creates a table for which the file has almost no space left, and inserts notes 7 and 8.
func (n *notes) full() {
	n.t.Helper()
	for _, statement := range []string{"CREATE TABLE big (body BLOB)", "INSERT INTO notes (id) VALUES (7), (8)"} {
		if err := n.Write(n.t.Context(), func(tx *sql.Tx) error { return n.run(tx, statement) }); err != nil {
			n.t.Fatal(err)
		}
	}
	var pages int
	if err := n.writes.QueryRow("PRAGMA page_count").Scan(&pages); err != nil {
		n.t.Fatal(err)
	}
	if _, err := n.writes.Exec(fmt.Sprintf("PRAGMA max_page_count = %d", pages+20)); err != nil {
		n.t.Fatal(err)
	}
}

func (n *notes) fill(tx *sql.Tx) error {
	return n.run(tx, "INSERT INTO big (body) VALUES (zeroblob(1000000))")
}

// SQLite rolls back a write that fills the disk. The later statements of the write must not be committed separately.
func TestWriterConn_NothingStaysOfRolledBackWrite(t *testing.T) {
	remove := func(n *notes, tx *sql.Tx, id int) error { return n.run(tx, "DELETE FROM notes WHERE id = $1", id) }
	for name, goOn := range map[string]func(n *notes, tx *sql.Tx) error{
		"a statement": func(n *notes, tx *sql.Tx) error { return remove(n, tx, 7) },
		"a prepared statement": func(n *notes, tx *sql.Tx) error {
			stmt, err := tx.Prepare("DELETE FROM notes WHERE id = $1")
			if err != nil {
				return err
			}
			defer stmt.Close()
			_, err = stmt.Exec(7)
			return err
		},
		"a query": func(n *notes, tx *sql.Tx) error {
			var id int
			return tx.QueryRow("DELETE FROM notes WHERE id = 7 RETURNING id").Scan(&id)
		},
		"nothing": func(*notes, *sql.Tx) error { return nil },
	} {
		run := func(n *notes, tx *sql.Tx) error {
			return errors.Join(remove(n, tx, 8), n.fill(tx), goOn(n, tx))
		}
		check := func(t *testing.T, n *notes, err error) {
			t.Helper()
			var lite *sqlite.Error
			if !errors.As(err, &lite) || lite.Code() != sqlite3.SQLITE_FULL || strings.Contains(err.Error(), "rollback") {
				t.Errorf("got %v, want SQLITE_FULL", err)
			}
			if !n.has(7) || !n.has(8) {
				t.Error("deletions of the failed write were committed")
			}
			if err := n.Write(t.Context(), func(tx *sql.Tx) error { return remove(n, tx, 7) }); err != nil || n.has(7) {
				t.Errorf("the next write: got %v, want note 7 deleted", err)
			}
		}
		t.Run(name+" alone", func(t *testing.T) {
			n := newNotes(t)
			n.full()
			check(t, n, n.Write(t.Context(), func(tx *sql.Tx) error { return run(n, tx) }))
		})
		t.Run(name+" in a group", func(t *testing.T) {
			n := newNotes(t)
			n.full()
			release := n.hold()
			defer release()
			first := n.behind(t.Context(), 0, func(tx *sql.Tx) error { return n.insert(tx, 1) })
			filler := n.behind(t.Context(), 1, func(tx *sql.Tx) error { return run(n, tx) })
			last := n.behind(t.Context(), 2, func(tx *sql.Tx) error { return n.insert(tx, 3) })
			release()
			check(t, n, <-filler)
			if err := errors.Join(<-first, <-last); err != nil || !n.has(1) || !n.has(3) {
				t.Errorf("the other writes of the batch: got error %v, want both committed", err)
			}
		})
	}
}

// A write that ignores the error of a statement still fails, because nothing was written.
func TestWriterConn_RolledBackWriteFails(t *testing.T) {
	n := newNotes(t)
	n.full()
	err := n.Write(t.Context(), func(tx *sql.Tx) error {
		_ = n.fill(tx)
		_ = n.insert(tx, 1)
		return nil
	})
	if !errors.Is(err, errRolledBack) || n.has(1) {
		t.Errorf("got %v, want errRolledBack and no note", err)
	}
}

// Statements that run only once, such as those with lists, do not displace frequent statements from the cache.
func TestWriterConn_StatementsInUseStayCached(t *testing.T) {
	n := newNotes(t)
	conn, err := n.writes.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const often = "DELETE FROM notes WHERE id = -1"
	for i := range 3 * maxCachedStmts {
		if i%10 == 0 {
			if _, err := conn.ExecContext(context.Background(), often); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := conn.ExecContext(context.Background(), fmt.Sprintf("DELETE FROM notes WHERE id = -2 AND id < %d",
			i)); err != nil {
			t.Fatal(err)
		}
		err := conn.Raw(func(c any) error {
			kept := c.(*writerConn).cached
			if _, known := kept[often]; !known || len(kept) > maxCachedStmts {
				return fmt.Errorf("after %d other statements: cached %v, cache size %d; want it still cached, in a full cache",
					i+1, known, len(kept))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
