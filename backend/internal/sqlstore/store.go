// Package sqlstore holds every SQL statement of the backend. One set of statements serves SQLite and PostgreSQL: times
// are BIGINT milliseconds, JSON is TEXT, placeholders are $1. It knows the features' types and none of their rules.
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
	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // registers "pgx"
	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Store is open on one database. Reads go to a pool; writes go through write alone.
type Store struct {
	reads  *sql.DB
	writes *sql.DB
	group  *group // of SQLite; nil on PostgreSQL, where every write has its own transaction
	engine string // sqlite | postgres
	path   string // of a SQLite file
	file   os.FileInfo
	tracks bool // whether PostgreSQL can tell what became of a transaction

	progress *sql.Stmt // the most frequent read
}

// Open opens and migrates a database: a postgres:// URL, or the path of a SQLite file, which is made when absent.
func Open(ctx context.Context, database string, log *slog.Logger) (*Store, error) {
	if err := makeOwn(database); err != nil {
		return nil, err
	}
	s, err := open(database)
	if err != nil {
		return nil, err
	}
	if err := s.migrate(ctx, log); err != nil {
		s.Close()
		return nil, err
	}
	return s.prepare(ctx)
}

// makeOwn makes a SQLite file that only its owner may read; left to make it, SQLite would let the whole machine. The
// files beside it get its mode.
func makeOwn(database string) error {
	if isPostgres(database) {
		return nil
	}
	f, err := os.OpenFile(database, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil // not even opened here: closing it would drop SQLite's locks of this process
	}
	if err != nil {
		return fmt.Errorf("opening the database: %w", err)
	}
	return f.Close()
}

// Attach opens a database that a server uses or used, and neither makes nor migrates anything.
func Attach(ctx context.Context, database string) (*Store, error) {
	if !isPostgres(database) {
		if _, err := os.Stat(database); err != nil {
			return nil, fmt.Errorf("opening the database: %w; name the server's with --database or SERVICE_BACKEND_DATABASE", err)
		}
	}
	s, err := open(database)
	if err != nil {
		return nil, err
	}
	return s.prepare(ctx)
}

func (s *Store) prepare(ctx context.Context) (_ *Store, err error) {
	if s.engine == "postgres" {
		// Some that speak PostgreSQL's protocol know no such thing.
		s.tracks = s.reads.QueryRowContext(ctx, currentTransaction).Scan(new(sql.NullString)) == nil
	}
	if s.progress, err = s.reads.PrepareContext(ctx, progressQuery); err != nil {
		s.Close()
		return nil, fmt.Errorf("preparing a query: %w", err)
	}
	return s, nil
}

// maxConns is how many connections to PostgreSQL there are.
const maxConns = 16

func open(database string) (*Store, error) {
	if isPostgres(database) {
		db, err := sql.Open("pgx", database)
		if err != nil {
			return nil, errors.New("opening PostgreSQL: the database URL does not parse") // the URL holds a password
		}
		db.SetMaxOpenConns(maxConns)
		db.SetMaxIdleConns(maxConns)
		return &Store{reads: db, writes: db, engine: "postgres"}, nil
	}
	// One writer that takes its lock at BEGIN, and readers beside it: the only way SQLite keeps calm under load.
	writes, err := steadily(sqliteDSN(database, "immediate"))
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", database, err)
	}
	writes.SetMaxOpenConns(1)
	reads, err := sql.Open("sqlite", sqliteDSN(database, "deferred"))
	if err != nil {
		writes.Close()
		return nil, fmt.Errorf("opening %s: %w", database, err)
	}
	reads.SetMaxOpenConns(max(4, runtime.NumCPU()))
	reads.SetMaxIdleConns(max(4, runtime.NumCPU()))
	file, err := os.Stat(database)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening %s: %w", database, err), writes.Close(), reads.Close())
	}
	return &Store{reads: reads, writes: writes, group: newGroup(writes), engine: "sqlite", path: database, file: file}, nil
}

func isPostgres(database string) bool {
	return strings.HasPrefix(database, "postgres://") || strings.HasPrefix(database, "postgresql://")
}

// busyTimeout is how long a connection waits for a lock of SQLite, in milliseconds.
const busyTimeout = 10_000

// sqliteDSN overwrites what is deleted (secure_delete): otherwise a deleted account stays readable in the file's free pages.
// Copies that SQLite made of rows when it moved them between pages may stay until a VACUUM.
func sqliteDSN(path, lock string) string {
	q := url.Values{"_txlock": {lock}, "_pragma": {
		"journal_mode(WAL)", "busy_timeout(" + strconv.Itoa(busyTimeout) + ")", "foreign_keys(1)", "synchronous(FULL)", "temp_store(MEMORY)", "secure_delete(1)",
		"wal_autocheckpoint(4000)",     // in pages; under load a page is copied back once, not after every few commits
		"journal_size_limit(67108864)", // what a large transaction made of the journal is given back
	}}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}).String()
}

func (s *Store) migrate(ctx context.Context, log *slog.Logger) (err error) {
	dialect := goose.DialectSQLite3
	if s.engine == "postgres" {
		dialect = goose.DialectPostgres
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	unlock, err := s.lockMigrations(ctx)
	if err != nil {
		return fmt.Errorf("locking the database for migrations: %w", err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	provider, err := goose.NewProvider(dialect, s.writes, files)
	if err != nil {
		return fmt.Errorf("reading migrations: %w", err)
	}
	done, err := provider.Up(ctx)
	if err != nil {
		return fmt.Errorf("migrating the database: %w", err)
	}
	for _, m := range done {
		log.InfoContext(ctx, "migrated the database", "migration", m.Source.Path)
	}
	return nil
}

// migrationLock is the key of PostgreSQL's advisory lock: any number that nobody else uses.
const migrationLock = 0x5e71ce_0015

// lockMigrations waits until no other process migrates this database: servers may start at once. The lock ends with its
// process, however that ends.
func (s *Store) lockMigrations(ctx context.Context) (unlock func() error, err error) {
	if s.engine != "postgres" {
		// A file of its own: SQLite drops its locks of a process when any handle of the database is closed there.
		lock := flock.New(s.path+"-migrate", flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
		if _, err := lock.TryLockContext(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
		return lock.Close, nil
	}
	conn, err := s.writes.Conn(ctx)
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

// Close commits the writes that wait and closes the database.
func (s *Store) Close() error {
	if s.group != nil {
		s.group.close()
	}
	err := s.writes.Close()
	if s.reads != s.writes {
		err = errors.Join(err, s.reads.Close())
	}
	return err
}

// emptyJournal takes what was deleted out of SQLite's journal too, where a quiet server would keep it for as long as it runs.
// A reader that takes long keeps it from that: other writes wait a tenth of a second for one, no more.
func (s *Store) emptyJournal(ctx context.Context) error {
	if s.group == nil {
		return nil
	}
	conn, err := s.writes.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	always := context.WithoutCancel(ctx)
	if _, err := conn.ExecContext(always, "PRAGMA busy_timeout = 100"); err != nil {
		return err
	}
	var busy, pages, copied int
	err = conn.QueryRowContext(always, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &copied)
	_, back := conn.ExecContext(always, "PRAGMA busy_timeout = "+strconv.Itoa(busyTimeout))
	return errors.Join(err, back)
}

var errGone = errors.New("the database's file was removed or replaced: what is written now is lost with this process")

// Ping tells whether the database answers, and whether a SQLite file is still the one that was opened.
func (s *Store) Ping(ctx context.Context) error {
	if s.engine == "sqlite" {
		now, err := os.Stat(s.path)
		if err != nil {
			return errors.Join(errGone, err)
		}
		if s.file == nil || !os.SameFile(s.file, now) {
			return errGone
		}
	}
	var n int
	return s.reads.QueryRowContext(ctx, `SELECT COUNT(*) FROM settings`).Scan(&n)
}

// write is the one door through which anything changes: f runs in a transaction, again when the database or a neighbour in
// its group asks for it, and is committed when write returns. So f keeps nothing from one run for the next, and ends at its
// first error. It must not write by another call of the store: on SQLite that would wait for f, and f for it.
// What would hang on a project or an account that went away meanwhile is projects.ErrNotFound.
func (s *Store) write(ctx context.Context, f func(tx *sql.Tx) error) error {
	return s.retried(ctx, func() error { return s.writeOnce(ctx, f) })
}

// exec is write for a single statement, for which PostgreSQL needs one round trip instead of three.
func (s *Store) exec(ctx context.Context, statement string, args ...any) (result sql.Result, err error) {
	if s.group == nil {
		err = s.retried(ctx, func() (err error) {
			result, err = s.writes.ExecContext(ctx, statement, args...)
			return err
		})
		return result, err
	}
	err = s.write(ctx, func(tx *sql.Tx) (err error) {
		result, err = tx.ExecContext(ctx, statement, args...)
		return err
	})
	return result, err
}

func (s *Store) writeOnce(ctx context.Context, f func(tx *sql.Tx) error) error {
	if s.group != nil {
		return s.group.do(ctx, f)
	}
	tx, err := s.writes.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return errors.Join(err, ignoreDone(tx.Rollback()))
	}
	return s.commit(ctx, tx)
}

// brief is the context of a point read. On SQLite that is over before anybody could cancel it, and to watch for the end of
// a context costs as much as the read.
func (s *Store) brief(ctx context.Context) context.Context {
	if s.group == nil || ctx.Err() != nil {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

// duplicate tells whether a unique constraint refused a row.
func duplicate(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code == "23505"
	}
	var lite *sqlite.Error
	return errors.As(err, &lite) &&
		(lite.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || lite.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
}

// orphan tells whether a foreign key refused a row.
func orphan(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code == "23503"
	}
	var lite *sqlite.Error
	return errors.As(err, &lite) && lite.Code() == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY
}

// changed runs one conditional statement and tells whether it hit a row.
func changed(ctx context.Context, tx *sql.Tx, statement string, args ...any) (bool, error) {
	result, err := tx.ExecContext(ctx, statement, args...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// missing turns "no row" into the feature's own error.
func missing(err, own error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return own
	}
	return err
}

func toMS(t time.Time) int64 { return t.UnixMilli() }

func fromMS(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// orNull and fromNull keep the zero time as NULL.
func orNull(t time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: t.UnixMilli(), Valid: !t.IsZero()}
}

func fromNull(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return fromMS(n.Int64)
}
