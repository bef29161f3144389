package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
)

// slowlyClosed is a connector. Closing a connection for the first time waits for resume.
type slowlyClosed struct {
	first           atomic.Bool
	closing, resume chan struct{}
}

func (s *slowlyClosed) Connect(context.Context) (driver.Conn, error) { return slowConn{s}, nil }
func (*slowlyClosed) Driver() driver.Driver                          { return nil }

type slowConn struct{ *slowlyClosed }

func (slowConn) Prepare(string) (driver.Stmt, error) { return nil, errors.ErrUnsupported }
func (slowConn) Begin() (driver.Tx, error)           { return nil, errors.ErrUnsupported }
func (c slowConn) Close() error {
	if c.first.CompareAndSwap(false, true) {
		close(c.closing)
		<-c.resume
	}
	return nil
}

// If several writes lose their server at the same time, each drops the idle connections. Connections made since then
// stay open.
func TestDropIdle_ClosesNoNewConnection(t *testing.T) {
	made := &slowlyClosed{closing: make(chan struct{}), resume: make(chan struct{})}
	db := sql.OpenDB(made)
	defer db.Close()
	db.SetMaxIdleConns(maxConns)
	use := func() {
		t.Helper()
		var two [2]*sql.Conn
		for i := range two {
			var err error
			if two[i], err = db.Conn(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, conn := range two {
			if err := conn.Raw(func(c any) error {
				if c == nil {
					return errors.New("the connection was closed while in the pool")
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
			conn.Close()
		}
	}
	use()
	s := &DB{writes: db}
	var dropped sync.WaitGroup
	dropped.Go(s.dropIdle)
	<-made.closing
	s.dropIdle()
	use()
	close(made.resume)
	dropped.Wait()
	use()
}
