package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"modernc.org/sqlite"
)

// observer receives the text of each statement before it runs. It may be nil, and must be safe for concurrent use.
type observer func(statement string)

// OpenObserved is like Open, and passes the text of each statement to observe. Tests examine query plans with it.
func OpenObserved(ctx context.Context, database string, log *slog.Logger, observe func(string)) (*Store, error) {
	return openAndMigrate(ctx, database, log, observe)
}

// openPostgres opens a pool of connections to PostgreSQL.
func openPostgres(address string, observe observer) (*sql.DB, error) {
	if observe == nil {
		return sql.Open("pgx", address)
	}
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, err
	}
	config.Tracer = observe
	return stdlib.OpenDB(*config), nil
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

// observedConn is a connection to SQLite whose statements are observed.
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

func (observer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData)     {}
func (observer) TracePrepareEnd(context.Context, *pgx.Conn, pgx.TracePrepareEndData) {}
func (observer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (observer) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}
