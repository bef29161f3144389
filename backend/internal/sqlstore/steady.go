package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"modernc.org/sqlite"
)

// steadily opens a SQLite database for its writer. Statements run to their end, also when the context they were given
// ends: see group; a context that has ended already still keeps one from starting. Statements that are run again are not
// parsed again, which costs SQLite about what running them does.
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
	return &steadyConn{wholeConn: whole, kept: map[string]wholeStmt{}}, nil
}

// wholeConn is all that database/sql asks a connection for.
type wholeConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

const (
	keptStatements = 100
	keptLength     = 1000 // in bytes; longer ones are made for their number of rows and seldom come again
)

// steadyConn is used by one goroutine at a time.
type steadyConn struct {
	wholeConn
	kept map[string]wholeStmt
}

func (c *steadyConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	return c.wholeConn.BeginTx(context.WithoutCancel(ctx), o)
}

func (c *steadyConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	ctx = context.WithoutCancel(ctx)
	if len(query) > keptLength {
		return c.wholeConn.ExecContext(ctx, query, args)
	}
	stmt, known := c.kept[query]
	if !known {
		var err error
		if stmt, err = c.prepare(ctx, query); err != nil {
			return nil, err
		}
		c.keep(query, stmt)
	}
	return stmt.ExecContext(ctx, args)
}

// keep drops another statement when there are too many; any will do, for there are fewer in the program.
func (c *steadyConn) keep(query string, stmt wholeStmt) {
	for other, old := range c.kept {
		if len(c.kept) < keptStatements {
			break
		}
		_ = old.Close()
		delete(c.kept, other)
	}
	c.kept[query] = stmt
}

func (c *steadyConn) Close() error {
	for _, stmt := range c.kept {
		_ = stmt.Close()
	}
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
	return c.wholeConn.QueryContext(context.WithoutCancel(ctx), query, args)
}

func (c *steadyConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	stmt, err := c.prepare(context.WithoutCancel(ctx), query)
	if err != nil {
		return nil, err
	}
	return steadyStmt{stmt}, nil
}

type wholeStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type steadyStmt struct{ wholeStmt }

func (s steadyStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.wholeStmt.ExecContext(context.WithoutCancel(ctx), args)
}

func (s steadyStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.wholeStmt.QueryContext(context.WithoutCancel(ctx), args)
}
