package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"modernc.org/sqlite"
)

// openWriter opens a SQLite database for its batchWriter. Its connections differ from the driver's in three ways:
//   - A statement that has begun runs to its end, even if its context ends. A context that has already ended still
//     prevents a statement from starting: database/sql checks that.
//   - After SQLite rolled a transaction back by itself, further statements fail with errRolledBack until its end.
//   - Statements stay prepared, because parsing one costs SQLite about as much as running it.
func openWriter(dsn string, observe observer) (*sql.DB, error) {
	c, err := newSQLiteConnector(dsn, observe)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(writerConnector{c}), nil
}

type writerConnector struct{ driver.Connector }

func (c writerConnector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := as[sqliteConn](c.Connector.Connect(context.WithoutCancel(ctx)))
	if err != nil {
		return nil, err
	}
	writer := &writerConn{sqliteConn: inner, cached: map[string]*cachedStmt{}}
	inner.RegisterRollbackHook(func() { writer.rolledBack = writer.inTx })
	return writer, nil
}

// as converts an object opened by the driver to a T. If the object lacks a method of T, it closes the object.
func as[T any](opened io.Closer, err error) (T, error) {
	if err != nil {
		return *new(T), err
	}
	t, ok := opened.(T)
	if !ok {
		_ = opened.Close()
		return t, fmt.Errorf("the SQLite driver's %T lacks a method that the writer needs", opened)
	}
	return t, nil
}

// sqliteConn has the connection methods that database/sql uses, and SQLite's hooks.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
	sqlite.HookRegisterer
}

// errRolledBack is returned for every statement of a transaction after SQLite itself has rolled the transaction back.
var errRolledBack = errors.New("the database rolled the transaction back")

const (
	maxCachedStmts  = 100
	maxCachedLength = 1000 // bytes; longer statements vary with the number of rows and are rarely reused
)

// writerConn is a connection that only one goroutine at a time may use.
type writerConn struct {
	sqliteConn
	cached     map[string]*cachedStmt
	uses       int
	inTx       bool // neither Commit nor Rollback has been called since BeginTx
	rolledBack bool // SQLite has rolled back since BeginTx
}

// runnable is a statement that stays open after its use.
type runnable interface {
	driver.StmtExecContext
	driver.StmtQueryContext
}

// unprepared is a statement that is parsed each time it runs.
type unprepared struct {
	conn  sqliteConn
	query string
}

func (u unprepared) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return u.conn.ExecContext(ctx, u.query, args)
}

func (u unprepared) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return u.conn.QueryContext(ctx, u.query, args)
}

// cachedStmt stays prepared.
type cachedStmt struct {
	sqliteStmt
	lastUse int  // value of writerConn.uses at the last use
	reading bool // its rows are not closed
}

func (s *cachedStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := s.sqliteStmt.QueryContext(ctx, args)
	s.reading = err == nil
	if err != nil {
		return nil, err
	}
	return cachedRows{rows, s}, nil
}

// cachedRows are the rows returned by a cached statement.
type cachedRows struct {
	driver.Rows
	stmt *cachedStmt
}

func (r cachedRows) Close() error {
	r.stmt.reading = false
	return r.Rows.Close()
}

func (c *writerConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := c.sqliteConn.BeginTx(context.WithoutCancel(ctx), o)
	if err != nil {
		return nil, err
	}
	c.inTx = true
	return writerTx{tx, c}, nil
}

type writerTx struct {
	driver.Tx
	conn *writerConn
}

func (t writerTx) Commit() error {
	if t.conn.endTx() {
		return errRolledBack
	}
	return t.Tx.Commit()
}

func (t writerTx) Rollback() error {
	if t.conn.endTx() {
		return nil
	}
	return t.Tx.Rollback()
}

// endTx ends the transaction and reports whether SQLite had rolled it back.
func (c *writerConn) endTx() (rolledBack bool) {
	rolledBack = c.rolledBack
	c.inTx, c.rolledBack = false, false
	return rolledBack
}

func (c *writerConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return unlessRolledBack(ctx, c, c.statement(ctx, query).ExecContext, args)
}

func (c *writerConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return unlessRolledBack(ctx, c, c.statement(ctx, query).QueryContext, args)
}

// statement returns the prepared statement for a query. It returns an unprepared one if the query is too long to cache,
// fails to parse, or has unread rows.
func (c *writerConn) statement(ctx context.Context, query string) runnable {
	stmt, ok := c.cached[query]
	if !ok && len(query) <= maxCachedLength {
		if prepared, err := c.prepare(context.WithoutCancel(ctx), query); err == nil {
			stmt = c.cache(query, prepared)
		}
	}
	if stmt == nil || stmt.reading {
		return unprepared{c.sqliteConn, query}
	}
	c.uses++
	stmt.lastUse = c.uses
	return stmt
}

// cache keeps a prepared statement. If there are too many, it drops the least recently used one.
func (c *writerConn) cache(query string, stmt sqliteStmt) *cachedStmt {
	if len(c.cached) >= maxCachedStmts {
		oldest, lastUse := "", c.uses+1
		for other, old := range c.cached {
			if old.lastUse < lastUse && !old.reading {
				oldest, lastUse = other, old.lastUse
			}
		}
		if old, ok := c.cached[oldest]; ok { // false if all statements are being read
			_ = old.Close()
			delete(c.cached, oldest)
		}
	}
	c.cached[query] = &cachedStmt{sqliteStmt: stmt}
	return c.cached[query]
}

func (c *writerConn) Close() error {
	for _, stmt := range c.cached {
		_ = stmt.Close()
	}
	c.RegisterRollbackHook(nil)
	return c.sqliteConn.Close()
}

func (c *writerConn) prepare(ctx context.Context, query string) (sqliteStmt, error) {
	return as[sqliteStmt](c.sqliteConn.PrepareContext(ctx, query))
}

func (c *writerConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if c.rolledBack {
		return nil, errRolledBack
	}
	stmt, err := c.prepare(context.WithoutCancel(ctx), query)
	if err != nil {
		return nil, err
	}
	return writerStmt{stmt, c}, nil
}

type sqliteStmt interface {
	driver.Stmt
	runnable
}

// writerStmt is a statement that a write prepared itself.
type writerStmt struct {
	sqliteStmt
	conn *writerConn
}

func (s writerStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return unlessRolledBack(ctx, s.conn, s.sqliteStmt.ExecContext, args)
}

func (s writerStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return unlessRolledBack(ctx, s.conn, s.sqliteStmt.QueryContext, args)
}

// unlessRolledBack calls run with a context that is never cancelled, unless SQLite has rolled the transaction back.
func unlessRolledBack[T any](
	ctx context.Context, c *writerConn, run func(context.Context, []driver.NamedValue) (T, error),
	args []driver.NamedValue,
) (T, error) {
	if c.rolledBack {
		return *new(T), errRolledBack
	}
	return run(context.WithoutCancel(ctx), args)
}
