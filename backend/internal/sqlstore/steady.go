package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"modernc.org/sqlite"
)

// steadily opens a SQLite database whose statements run to their end, also when the context they were given ends: see
// group. A context that has ended already still keeps a statement from starting.
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
	return steadyConn{whole}, nil
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

type steadyConn struct{ wholeConn }

func (c steadyConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	return c.wholeConn.BeginTx(context.WithoutCancel(ctx), o)
}

func (c steadyConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.wholeConn.ExecContext(context.WithoutCancel(ctx), query, args)
}

func (c steadyConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.wholeConn.QueryContext(context.WithoutCancel(ctx), query, args)
}

func (c steadyConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	stmt, err := c.wholeConn.PrepareContext(context.WithoutCancel(ctx), query)
	if err != nil {
		return nil, err
	}
	whole, ok := stmt.(wholeStmt)
	if !ok {
		stmt.Close()
		return nil, errors.New("the SQLite driver lacks what a statement needs")
	}
	return steadyStmt{whole}, nil
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
