package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// stepper is a transaction of many statements. PostgreSQL receives them in batches, because a round trip costs more
// than most of the statements; on SQLite each statement runs separately.
type stepper interface {
	// exec runs statements, at the latest before the next query or the end of the transaction.
	exec(ctx context.Context, statements ...statement) error
	// query calls row for each row of each statement, with the statement's index.
	query(ctx context.Context, row func(i int, r scanner) error, statements ...statement) error
}

// errLocked is returned for a transaction that would have to wait for another one.
var errLocked = errors.New("another transaction holds a lock")

// writeSteps is like write, for a transaction of steps. On PostgreSQL, if lockTimeout is not 0, it returns errLocked if
// the transaction waits for a lock for longer than lockTimeout.
func (s *Store) writeSteps(ctx context.Context, lockTimeout time.Duration, f func(tx stepper) error) error {
	if s.batches != nil {
		return s.write(ctx, func(tx *sql.Tx) error { return f(oneByOne{tx}) })
	}
	return s.retry(ctx, func() error {
		conn, err := s.writes.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		err = conn.Raw(func(c any) error { return s.runPipeline(ctx, c.(*stdlib.Conn).Conn(), lockTimeout, f) })
		if lockTimeout != 0 && isLockTimeout(err) {
			return errLocked
		}
		return err
	})
}

// oneByOne runs each statement separately.
type oneByOne struct{ tx *sql.Tx }

func (o oneByOne) exec(ctx context.Context, statements ...statement) error {
	return execAll(ctx, o.tx, "write a step", statements...)
}

func (o oneByOne) query(ctx context.Context, row func(int, scanner) error, statements ...statement) error {
	for i, s := range statements {
		err := queryEach(ctx, o.tx, func(r scanner) error { return row(i, r) }, s.text, s.args...)
		if err != nil {
			return err
		}
	}
	return nil
}

// pipeline is a PostgreSQL transaction that collects statements and sends them together. Its first statement is BEGIN.
type pipeline struct {
	conn  *pgx.Conn
	queue *pgx.Batch
}

// runPipeline runs f and commits. If either fails, it rolls the transaction back.
func (s *Store) runPipeline(
	ctx context.Context, conn *pgx.Conn, lockTimeout time.Duration, f func(tx stepper) error,
) (err error) {
	p := &pipeline{conn, &pgx.Batch{}}
	p.queue.Queue("BEGIN")
	if lockTimeout != 0 {
		p.queue.Queue(`SELECT set_config('lock_timeout', $1, true)`, strconv.FormatInt(lockTimeout.Milliseconds(), 10))
	}
	defer func() {
		if !conn.IsClosed() && conn.PgConn().TxStatus() != 'I' {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxOutage)
			defer cancel()
			_, _ = conn.Exec(ctx, "ROLLBACK") // if this fails, the pool discards the connection
		}
	}()
	if err := f(p); err != nil {
		return err
	}
	var id sql.NullString
	if s.tracksCommits {
		p.queue.Queue(currentTransaction).QueryRow(func(row pgx.Row) error { return row.Scan(&id) })
	}
	if err := p.send(ctx); err != nil {
		return err
	}
	done, err := conn.Exec(ctx, "COMMIT")
	if err == nil && done.String() != "COMMIT" {
		err = pgx.ErrTxCommitRollback
	}
	if !s.tracksCommits {
		return preventRetry(err)
	}
	return s.settleCommit(ctx, id, err)
}

// send sends the collected statements and reads their results.
func (p *pipeline) send(ctx context.Context) error {
	queue := p.queue
	p.queue = &pgx.Batch{}
	if queue.Len() == 0 {
		return nil
	}
	return p.conn.SendBatch(ctx, queue).Close()
}

func (p *pipeline) exec(_ context.Context, statements ...statement) error {
	for _, s := range statements {
		p.queue.Queue(s.text, s.args...)
	}
	return nil
}

func (p *pipeline) query(ctx context.Context, row func(int, scanner) error, statements ...statement) error {
	for i, s := range statements {
		p.queue.Queue(s.text, s.args...).Query(func(rows pgx.Rows) error {
			for rows.Next() {
				if err := row(i, rows); err != nil {
					return err
				}
			}
			return rows.Err()
		})
	}
	return p.send(ctx)
}
