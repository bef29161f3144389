package sqlstore

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
func Open(ctx context.Context, database string, log *slog.Logger) (*Store, error) {
	return openAndMigrate(ctx, database, log, nil)
}

func openAndMigrate(ctx context.Context, database string, log *slog.Logger, observe observer) (*Store, error) {
	if err := checkAddress(database); err != nil {
		return nil, err
	}
	if err := createFile(database); err != nil {
		return nil, err
	}
	s, err := open(database, observe)
	if err != nil {
		return nil, err
	}
	if s.engine == "postgres" {
		if err := checkSessions(ctx, s.writes); err != nil {
			s.Close()
			return nil, fmt.Errorf("open PostgreSQL: %w", err)
		}
	}
	if err := s.migrateWith(ctx, database, log, observe); err != nil {
		s.Close()
		return nil, err
	}
	s.findFeatures(ctx)
	return s, nil
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
func Attach(ctx context.Context, database string) (*Store, error) {
	if err := checkAddress(database); err != nil {
		return nil, err
	}
	if !isPostgres(database) {
		if _, err := os.Stat(database); err != nil {
			return nil, fmt.Errorf("open database: %w; name it with --database or SERVICE_BACKEND_DATABASE", err)
		}
	}
	s, err := open(database, nil)
	if err != nil {
		return nil, err
	}
	s.findFeatures(ctx)
	return s, nil
}

// findFeatures detects the features of the database server.
func (s *Store) findFeatures(ctx context.Context) {
	if s.engine == "postgres" {
		// Some servers that implement PostgreSQL's protocol lack this function.
		s.tracksCommits = s.reads.QueryRowContext(ctx, currentTransaction).Scan(new(sql.NullString)) == nil
	}
}

// maxConns is the maximum number of connections to PostgreSQL.
const maxConns = 16

func open(database string, observe observer) (*Store, error) {
	if isPostgres(database) {
		db, err := openPostgres(database, serverSettings, observe)
		if err != nil {
			return nil, errors.New("open PostgreSQL: cannot parse the database URL") // omits err, which may contain a password
		}
		db.SetMaxOpenConns(maxConns)
		db.SetMaxIdleConns(maxConns)
		s := &Store{reads: db, writes: db, engine: "postgres"}
		s.credit, s.contended = s.newCreditQueue(quickLock), s.newCreditQueue(0)
		s.codes = s.newCodeQueue()
		return s, nil
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
	s := &Store{
		reads: reads, writes: writes, batches: newBatchWriter(writes), engine: "sqlite", path: database, file: file,
	}
	s.credit = s.newCreditQueue(0)
	return s, nil
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
func (s *Store) migrateWith(ctx context.Context, database string, log *slog.Logger, observe observer) error {
	if s.engine != "postgres" {
		return s.migrate(ctx, s.writes, log)
	}
	db, err := openPostgres(database, migrationSettings, observe)
	if err != nil {
		return errors.New("open PostgreSQL: cannot parse the database URL")
	}
	defer db.Close()
	return s.migrate(ctx, db, log)
}

func (s *Store) migrate(ctx context.Context, db *sql.DB, log *slog.Logger) (err error) {
	dialect := goose.DialectSQLite3
	if s.engine == "postgres" {
		dialect = goose.DialectPostgres
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	unlock, err := s.lockMigrations(ctx, db)
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
func (s *Store) lockMigrations(ctx context.Context, db *sql.DB) (unlock func() error, err error) {
	if s.engine != "postgres" {
		// The lock uses a separate file, because SQLite loses its locks if the process closes another handle of the
		// database.
		lock := flock.New(s.path+"-migrate", flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
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
func (s *Store) Close() error {
	s.credit.close()
	if s.engine == "postgres" {
		s.contended.close()
		s.codes.close()
	}
	if s.batches != nil {
		s.batches.close()
	}
	err := s.writes.Close()
	if s.reads != s.writes {
		err = errors.Join(err, s.reads.Close())
	}
	return err
}

var errReplaced = errors.New(
	"the database file was removed or replaced: new writes are lost when this process ends")

// Ping returns an error if the database does not respond, or if a SQLite file is no longer the one that was opened.
func (s *Store) Ping(ctx context.Context) error {
	if s.engine == "sqlite" {
		now, err := os.Stat(s.path)
		if err != nil {
			return errors.Join(errReplaced, err)
		}
		if s.file == nil || !os.SameFile(s.file, now) {
			return errReplaced
		}
	}
	_, err := queryValue[int](ctx, s.reads, `SELECT COUNT(*) FROM settings`)
	return err
}
