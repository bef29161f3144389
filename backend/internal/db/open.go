package db

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Open opens and migrates a database. database is a postgres:// URL or the path of a SQLite file, which is created if
// it does not exist.
func Open(ctx context.Context, database string, log *slog.Logger) (*DB, error) {
	return openAndMigrate(ctx, database, log, nil)
}

func openAndMigrate(ctx context.Context, database string, log *slog.Logger, observe observer) (*DB, error) {
	if err := checkAddress(database); err != nil {
		return nil, err
	}
	if err := createFile(database); err != nil {
		return nil, err
	}
	d, err := open(database, observe)
	if err != nil {
		return nil, err
	}
	if d.Postgres() {
		if err := checkSessions(ctx, d.writes); err != nil {
			d.Close()
			return nil, fmt.Errorf("open PostgreSQL: %w", err)
		}
	}
	if err := d.migrateWith(ctx, database, log, observe); err != nil {
		d.Close()
		return nil, err
	}
	d.findFeatures(ctx)
	return d, nil
}

// createFile creates a SQLite file that only its owner can read; SQLite itself would make it readable for all users.
// SQLite creates its journal files with the same mode.
func createFile(database string) error {
	if isPostgres(database) {
		return nil
	}
	f, err := os.OpenFile(database, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil // do not open it: closing it would release the locks that SQLite holds in this process
	}
	if err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	return f.Close()
}

// Attach opens a database that a server uses or has used. It neither creates nor migrates it.
func Attach(ctx context.Context, database string) (*DB, error) {
	if err := checkAddress(database); err != nil {
		return nil, err
	}
	if !isPostgres(database) {
		if _, err := os.Stat(database); err != nil {
			return nil, fmt.Errorf("open database: %w; name it with --database or SERVICE_BACKEND_DATABASE", err)
		}
	}
	d, err := open(database, nil)
	if err != nil {
		return nil, err
	}
	d.findFeatures(ctx)
	return d, nil
}

// findFeatures detects the features of the database server.
func (d *DB) findFeatures(ctx context.Context) {
	if d.Postgres() {
		// Some servers that implement PostgreSQL's protocol lack this function.
		d.tracksCommits = d.reads.QueryRowContext(ctx, currentTransaction).Scan(new(sql.NullString)) == nil
	}
}

// maxConns is the maximum number of connections to PostgreSQL.
const maxConns = 16

func open(database string, observe observer) (*DB, error) {
	if isPostgres(database) {
		db, err := openPostgres(database, serverSettings, observe)
		if err != nil {
			return nil, errors.New("open PostgreSQL: cannot parse the database URL") // omit err, which may contain a password
		}
		db.SetMaxOpenConns(maxConns)
		db.SetMaxIdleConns(maxConns)
		return &DB{reads: db, writes: db, shared: newSharedWriters()}, nil
	}
	// One connection writes and acquires its lock at BEGIN; the others only read. Otherwise writers would fail with
	// SQLITE_BUSY under load.
	writes, err := openWriter(sqliteDSN(database, "immediate"), observe)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", database, err)
	}
	writes.SetMaxOpenConns(1)
	reads, err := openSQLite(sqliteDSN(database, "deferred"), observe)
	if err != nil {
		writes.Close()
		return nil, fmt.Errorf("open %s: %w", database, err)
	}
	reads.SetMaxOpenConns(max(4, runtime.NumCPU()))
	reads.SetMaxIdleConns(max(4, runtime.NumCPU()))
	file, err := os.Stat(database)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", database, err), writes.Close(), reads.Close())
	}
	d := &DB{reads: reads, writes: writes, path: database, file: file}
	d.batches = newBatchWriter(d)
	return d, nil
}

func isPostgres(database string) bool {
	return strings.HasPrefix(database, "postgres://") || strings.HasPrefix(database, "postgresql://")
}

// busyTimeout is the time that a connection waits for a SQLite lock, in milliseconds.
const busyTimeout = 10_000

// sqliteDSN makes SQLite overwrite deleted data (secure_delete). Otherwise a deleted account would stay readable in the
// free pages of the file. Copies that SQLite made while moving rows between pages may remain until a VACUUM.
func sqliteDSN(path, lock string) string {
	q := url.Values{"_txlock": {lock}, "_pragma": {
		"journal_mode(WAL)", "busy_timeout(" + strconv.Itoa(busyTimeout) + ")", "foreign_keys(1)", "synchronous(FULL)",
		"temp_store(MEMORY)", "secure_delete(1)",
		"wal_autocheckpoint(4000)",     // pages; copies a page back once under load, instead of after every few commits
		"journal_size_limit(67108864)", // bytes; makes the journal shrink after a large transaction
	}}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}).String()
}

// migrateWith migrates the database. On PostgreSQL it uses connections that may wait for a lock.
func (d *DB) migrateWith(ctx context.Context, database string, log *slog.Logger, observe observer) error {
	if !d.Postgres() {
		return d.migrate(ctx, d.writes, log)
	}
	db, err := openPostgres(database, migrationSettings, observe)
	if err != nil {
		return errors.New("open PostgreSQL: cannot parse the database URL")
	}
	defer db.Close()
	return d.migrate(ctx, db, log)
}

func (d *DB) migrate(ctx context.Context, db *sql.DB, log *slog.Logger) (err error) {
	dialect := goose.DialectSQLite3
	if d.Postgres() {
		dialect = goose.DialectPostgres
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	unlock, err := d.lockMigrations(ctx, db)
	if err != nil {
		return fmt.Errorf("lock database for migrations: %w", err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	provider, err := goose.NewProvider(dialect, db, files)
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	done, err := provider.Up(ctx)
	if err != nil {
		return fmt.Errorf("migrate database: %w", err)
	}
	for _, m := range done {
		log.InfoContext(ctx, "migrated the database", "migration", m.Source.Path)
	}
	return nil
}

// migrationLock is an arbitrary key for PostgreSQL's advisory lock.
const migrationLock = 0x5e71ce_0015

// lockMigrations waits until no other process is migrating this database, because several servers may start at the same
// time. The lock is released when its process ends, even if the process crashes.
func (d *DB) lockMigrations(ctx context.Context, db *sql.DB) (unlock func() error, err error) {
	if !d.Postgres() {
		// The lock uses a separate file, because SQLite loses its locks if the process closes another handle of the
		// database.
		lock := flock.New(d.path+"-migrate", flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
		if _, err := lock.TryLockContext(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
		return lock.Close, nil
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conn.ExecContext(ctx, `SELECT pg_advisory_lock($1)`, int64(migrationLock)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return func() error {
		_, err := conn.ExecContext(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock($1)`, int64(migrationLock))
		return errors.Join(err, conn.Close())
	}, nil
}

// Close commits the queued writes and closes the database.
func (d *DB) Close() error {
	if d.Postgres() {
		d.shared.close()
	} else {
		d.batches.close()
		<-d.batches.stopped
	}
	err := d.writes.Close()
	if d.reads != d.writes {
		err = errors.Join(err, d.reads.Close())
	}
	return err
}

var errReplaced = errors.New(
	"the database file was removed or replaced: new writes are lost when this process ends")

// Ping returns an error if the database does not respond, or if a SQLite file is no longer the one that was opened.
func (d *DB) Ping(ctx context.Context) error {
	if !d.Postgres() {
		now, err := os.Stat(d.path)
		if err != nil {
			return errors.Join(errReplaced, err)
		}
		if d.file == nil || !os.SameFile(d.file, now) {
			return errReplaced
		}
	}
	_, err := QueryValue[int](ctx, d.reads, `SELECT COUNT(*) FROM settings`)
	return err
}
