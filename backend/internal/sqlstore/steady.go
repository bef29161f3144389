package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"modernc.org/sqlite"
)

// steadily opens a SQLite database for its writer. Statements run to their end, also when the context they were given
// ends: see group; a context that has ended already still keeps one from starting. After an error for which SQLite undid
// the whole transaction, as when the disk is full, further statements are refused: each would be committed on its own.
// Statements that are run again are not parsed again, which costs SQLite about what running them does.
func steadily(dsn string) (*sql.DB, error) {
	c, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(steadyConnector{c}), nil
}

type steadyConnector struct{ driver.Connector }

func (c steadyConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	whole, ok := conn.(wholeConn)
	if !ok {
		conn.Close()
		return nil, errors.New("the SQLite driver lacks what a connection needs")
	}
	steady := &steadyConn{wholeConn: whole, kept: map[string]*keptStmt{}}
	whole.RegisterRollbackHook(func() { steady.undone = steady.began })
	return steady, nil
}

// wholeConn is all that database/sql asks a connection for, and the hooks of SQLite.
type wholeConn interface {
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

var errUndone = errors.New("the database has undone the transaction")

const (
	keptStatements = 100
	keptLength     = 1000 // in bytes; longer ones are made for their number of rows and seldom come again
)

// steadyConn is used by one goroutine at a time.
type steadyConn struct {
	wholeConn
	kept   map[string]*keptStmt
	uses   int
	began  bool // and neither Commit nor Rollback was called
	undone bool // since it began
}

type keptStmt struct {
	wholeStmt
	used int // the connection's count of uses at the last one
}

func (c *steadyConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := c.wholeConn.BeginTx(context.WithoutCancel(ctx), o)
	if err != nil {
		return nil, err
	}
	c.began = true
	return steadyTx{tx, c}, nil
}

type steadyTx struct {
	driver.Tx
	conn *steadyConn
}

func (t steadyTx) Commit() error {
	if t.conn.end() {
		return errUndone
	}
	return t.Tx.Commit()
}

func (t steadyTx) Rollback() error {
	if t.conn.end() {
		return nil
	}
	return t.Tx.Rollback()
}

// end ends the transaction and tells whether SQLite had undone it.
func (c *steadyConn) end() (undone bool) {
	undone = c.undone
	c.began, c.undone = false, false
	return undone
}

func (c *steadyConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if c.undone {
		return nil, errUndone
	}
	ctx = context.WithoutCancel(ctx)
	if len(query) > keptLength {
		return c.wholeConn.ExecContext(ctx, query, args)
	}
	stmt, known := c.kept[query]
	if !known {
		whole, err := c.prepare(ctx, query)
		if err != nil {
			return nil, err
		}
		stmt = c.keep(query, whole)
	}
	c.uses++
	stmt.used = c.uses
	return stmt.ExecContext(ctx, args)
}

// keep drops the statement that was not used for longest when there are too many.
func (c *steadyConn) keep(query string, stmt wholeStmt) *keptStmt {
	if len(c.kept) >= keptStatements {
		oldest, since := "", c.uses+1
		for other, old := range c.kept {
			if old.used < since {
				oldest, since = other, old.used
			}
		}
		_ = c.kept[oldest].Close()
		delete(c.kept, oldest)
	}
	c.kept[query] = &keptStmt{wholeStmt: stmt}
	return c.kept[query]
}

func (c *steadyConn) Close() error {
	for _, stmt := range c.kept {
		_ = stmt.Close()
	}
	c.RegisterRollbackHook(nil)
	return c.wholeConn.Close()
}

func (c *steadyConn) prepare(ctx context.Context, query string) (wholeStmt, error) {
	stmt, err := c.wholeConn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	whole, ok := stmt.(wholeStmt)
	if !ok {
		stmt.Close()
		return nil, errors.New("the SQLite driver lacks what a statement needs")
	}
	return whole, nil
}

func (c *steadyConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if c.undone {
		return nil, errUndone
	}
	return c.wholeConn.QueryContext(context.WithoutCancel(ctx), query, args)
}

func (c *steadyConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if c.undone {
		return nil, errUndone
	}
	stmt, err := c.prepare(context.WithoutCancel(ctx), query)
	if err != nil {
		return nil, err
	}
	return steadyStmt{stmt, c}, nil
}

type wholeStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type steadyStmt struct {
	wholeStmt
	conn *steadyConn
}

func (s steadyStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if s.conn.undone {
		return nil, errUndone
	}
	return s.wholeStmt.ExecContext(context.WithoutCancel(ctx), args)
}

func (s steadyStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if s.conn.undone {
		return nil, errUndone
	}
	return s.wholeStmt.QueryContext(context.WithoutCancel(ctx), args)
}
