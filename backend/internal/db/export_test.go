package db

import (
	"context"
	"database/sql"
	"testing"
)

// MigrationLock exports migrationLock.
const MigrationLock int64 = migrationLock

// Notes exports notes for tests with the stores of features, which import this package.
type Notes struct{ *notes }

// NewNotes exports newNotes.
func NewNotes(t *testing.T) Notes { return Notes{newNotes(t)} }

// Run runs a statement in a transaction.
func (n Notes) Run(tx *sql.Tx, statement string) error { return n.run(tx, statement) }

// Exec runs a statement on the writing connection, outside a transaction.
func (n Notes) Exec(statement string) {
	n.t.Helper()
	if _, err := n.writes.Exec(statement); err != nil {
		n.t.Fatal(err)
	}
}

// Hold exports hold.
func (n Notes) Hold() (release func()) { return n.hold() }

// Behind exports behind.
func (n Notes) Behind(ctx context.Context, others int, f func(tx *sql.Tx) error) <-chan error {
	return n.behind(ctx, others, f)
}

// AwaitQueued waits until writes are queued.
func (n Notes) AwaitQueued(writes int) {
	n.t.Helper()
	n.until(func() bool { return len(n.batches.writes) == writes })
}
