package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"modernc.org/sqlite"
)

// observer receives the text of each statement before it runs. It may be nil, and must be safe for concurrent use.
type observer func(statement string)

// OpenObserved is like Open, and passes the text of each statement to observe. Tests use it to examine query plans.
func OpenObserved(ctx context.Context, database string, log *slog.Logger, observe func(string)) (*DB, error) {
	return openAndMigrate(ctx, database, log, observe)
}

// openPostgres opens a pool of connections to PostgreSQL. limits are the settings of each connection.
func openPostgres(address string, limits settings, observe observer) (*sql.DB, error) {
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, err
	}
	config.AfterConnect = limits.apply
	// Detect a lost database server within half a minute. The server detects a lost client equally fast.
	config.DialFunc = (&net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3,
	}}).DialContext
	if observe != nil {
		config.Tracer = observe
	}
	return stdlib.OpenDB(*config), nil
}

// settings maps names of PostgreSQL settings to values.
type settings map[string]string

var (
	// serverSettings prevents a server that was frozen or cut off from holding locks that other servers need. Times are
	// in milliseconds, keepalive times in seconds.
	serverSettings = settings{
		"idle_in_transaction_session_timeout": "5000",
		"lock_timeout":                        "2000", // retry repeats the write for longer than the timeout above
		"tcp_keepalives_idle":                 "10",
		"tcp_keepalives_interval":             "5",
		"tcp_keepalives_count":                "3",
	}
	// migrationSettings lets a migration wait until another one is finished.
	migrationSettings = func() settings {
		s := maps.Clone(serverSettings)
		s["lock_timeout"] = "0"
		return s
	}()
)

// apply sets the settings for a new connection. It skips settings that the database's URL sets, unless the value is 0,
// and does not fail if the server does not know a setting. It does not pass them as connection parameters, which a pool
// such as PgBouncer would refuse.
func (s settings) apply(ctx context.Context, conn *pgconn.PgConn) error {
	values := make([]string, 0, len(s))
	for name, value := range s {
		values = append(values, "('"+name+"', '"+value+"')")
	}
	_, err := conn.Exec(ctx, `SELECT set_config(s.name, v.value, false)
		FROM (VALUES `+strings.Join(values, ", ")+`) v (name, value) JOIN pg_settings s ON s.name = v.name
		WHERE s.source <> 'client' OR v.value = '0'`).ReadAll()
	if err != nil {
		return fmt.Errorf("set timeouts: %w", err)
	}
	return nil
}

// openSQLite opens a pool of connections to a SQLite database.
func openSQLite(dsn string, observe observer) (*sql.DB, error) {
	c, err := newSQLiteConnector(dsn, observe)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(c), nil
}

func newSQLiteConnector(dsn string, observe observer) (driver.Connector, error) {
	c, err := sqlite.NewConnector(dsn)
	if err != nil || observe == nil {
		return c, err
	}
	return observedConnector{c, observe}, nil
}

type observedConnector struct {
	driver.Connector
	observe observer
}

func (c observedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := as[sqliteConn](c.Connector.Connect(ctx))
	if err != nil {
		return nil, err
	}
	return observedConn{conn, c.observe}, nil
}

// observedConn is a connection to SQLite that reports its statements to an observer.
type observedConn struct {
	sqliteConn
	observe observer
}

func (c observedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.observe(query)
	return c.sqliteConn.ExecContext(ctx, query, args)
}

func (c observedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.observe(query)
	return c.sqliteConn.QueryContext(ctx, query, args)
}

func (c observedConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	c.observe(query)
	return c.sqliteConn.PrepareContext(ctx, query)
}

// An observer is a tracer of pgx.
var _ interface {
	pgx.QueryTracer
	pgx.BatchTracer
	pgx.PrepareTracer
} = observer(nil)

func (o observer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	o(d.SQL)
	return ctx
}

func (o observer) TracePrepareStart(ctx context.Context, _ *pgx.Conn, d pgx.TracePrepareStartData) context.Context {
	o(d.SQL)
	return ctx
}

func (o observer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	for _, q := range d.Batch.QueuedQueries {
		o(q.SQL)
	}
	return ctx
}

func (observer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (observer) TracePrepareEnd(context.Context, *pgx.Conn, pgx.TracePrepareEndData) {}

func (observer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (observer) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}
