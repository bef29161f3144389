package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// keywordValue matches libpq's other notation for a server address, as in "host=db password=secret".
var keywordValue = regexp.MustCompile(
	`(?i)(^|\s)(host|hostaddr|port|user|password|passfile|dbname|service|sslmode)\s*=`)

// checkAddress returns an error for an address that is neither an unambiguous postgres:// URL nor a path. A parser
// could mistake part of a password for the host, so the error contains no part of the address.
func checkAddress(database string) error {
	switch {
	case isPostgres(database):
		return checkURL(database)
	case strings.Contains(database, "://"):
		return errors.New("the database URL does not begin with postgres:// (in lower case): other database servers are " +
			"not supported. For SQLite, use the path of a file")
	case keywordValue.MatchString(database):
		return errors.New("the database address consists of keywords and values (host=...): use a URL of the form " +
			"postgres://user:password@host:port/name. For SQLite, use the path of a file")
	}
	return nil
}

// checkURL omits the parsers' errors, because they may contain a password.
func checkURL(database string) error {
	_, rest, _ := strings.Cut(database, "://")
	if host, _, _ := strings.Cut(strings.NewReplacer("?", "/", "#", "/").Replace(rest), "/"); strings.Count(host, "@") > 1 {
		return errors.New("the database URL contains more than one @: write each @ in the user name or password as %40")
	}
	if _, err := url.Parse(database); err != nil {
		return errors.New("the database URL cannot be parsed: it has the form " +
			"postgres://user:password@host:port/name?sslmode=require. In the user name and the password, write / as %2F, " +
			"? as %3F, # as %23, % as %25 and a space as %20")
	}
	if _, err := pgx.ParseConfig(database); err != nil {
		return errors.New("a setting of the database connection is not valid: check the settings in the database URL, such " +
			"as sslmode, the PG* variables, and the certificate and password files that they name")
	}
	return nil
}

// errShared is returned for a connection pool that may hand a connection's next transaction to another server session.
var errShared = errors.New("the connection to the database uses a pool that shares connections between transactions, " +
	"such as PgBouncer with pool_mode = transaction: session locks and prepared statements do not work there. Set " +
	"pool_mode = session, or connect to PostgreSQL itself")

// sharedWait is how long a session may take to answer while another one is in a transaction.
const sharedWait = 15 * time.Second

// checkSessions returns an error if two transactions on one connection reach different sessions of the server. While
// a second connection is in a transaction, a shared pool cannot return the same session to the first connection.
func checkSessions(ctx context.Context, db *sql.DB) error {
	first, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer first.Close()
	second, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer second.Close()
	before, err := sessionOf(ctx, first)
	if err != nil {
		return err
	}
	tx, err := second.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := sessionOf(ctx, tx); err != nil {
		return err
	}
	short, cancel := context.WithTimeout(ctx, sharedWait)
	defer cancel()
	after, err := sessionOf(short, first)
	switch {
	case errors.Is(err, context.DeadlineExceeded): // the pool has a single connection
		return errShared
	case err != nil:
		return err
	case after != before:
		return errShared
	}
	return nil
}

// sessionOf returns the ID of the server process that serves a session.
func sessionOf(ctx context.Context, q interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}) (pid int64, err error) {
	// The simple protocol prepares no statement, because a pool may lose it between sessions.
	if err := q.QueryRowContext(ctx, `SELECT pg_backend_pid()`, pgx.QueryExecModeSimpleProtocol).Scan(&pid); err != nil {
		return 0, fmt.Errorf("read the session's process id: %w", err)
	}
	return pid, nil
}
