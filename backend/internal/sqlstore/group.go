package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	groupMost  = 64  // writes in one transaction, so that the last of them does not wait long
	groupQueue = 256 // writes that wait; more wait before the queue
	// groupMoment is the longest that the writer waits for more.
	groupMoment = 4 * time.Millisecond
)

var (
	errClosed = errors.New("the database is closed")
	errEnded  = errors.New("the write ended its goroutine") // by runtime.Goexit
)

// group is the one writer of a SQLite database. It commits everything that waits in one transaction, since a commit waits
// for the disk and a statement hardly does: under load it costs all of them what it costs one. Each write fails alone, and
// is answered when its group has reached the disk.
//
// What a write runs must not be cancelled in the middle: SQLite answers an interruption by undoing the whole transaction,
// with what others did in it. The database is opened by steadily for that reason.
type group struct {
	db    *sql.DB
	queue chan *member
	ended chan struct{} // closed when the writer has ended
	// atWork is how many callers there were at the last commit, answered and waiting. It is the writer's alone.
	atWork int

	mu     sync.RWMutex // held for reading while a write is queued, so that the end comes behind it
	closed bool
}

// member is one write on its way.
type member struct {
	ctx   context.Context
	run   func(tx *sql.Tx) error
	taken atomic.Bool // by the writer that runs it, or by a caller who no longer wants it
	err   error       // what it is answered; not to be read before done is closed
	done  chan struct{}
}

// panicked is the error of a write that panicked: with what, and where.
type panicked string

func (p panicked) Error() string { return string(p) }

// newGroup starts the writer, which ends with close.
func newGroup(db *sql.DB) *group {
	g := &group{db: db, queue: make(chan *member, groupQueue), ended: make(chan struct{})}
	go g.serve()
	return g
}

// do runs f in a transaction and returns when it is committed, or f's error when nothing of it is. The end of ctx is the
// caller's answer at once until f runs; from then on it keeps statements that are given ctx from starting, and no more.
func (g *group) do(ctx context.Context, f func(tx *sql.Tx) error) error {
	m := &member{ctx: ctx, run: f, done: make(chan struct{})}
	if err := g.hand(m); err != nil {
		return err
	}
	select {
	case <-m.done:
	case <-ctx.Done():
		if m.take() {
			return ctx.Err()
		}
		<-m.done // f is running and uses what is the caller's
	}
	var p panicked
	if errors.As(m.err, &p) {
		panic(string(p))
	}
	return m.err
}

func (g *group) hand(m *member) error {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.closed {
		return errClosed
	}
	select {
	case g.queue <- m:
		return nil
	case <-m.ctx.Done():
		return m.ctx.Err()
	}
}

// close commits what is queued and ends the writer. Later writes get errClosed.
func (g *group) close() {
	g.mu.Lock()
	if !g.closed {
		g.closed = true
		close(g.queue)
	}
	g.mu.Unlock()
	<-g.ended
}

// serve commits group after group. Callers that are answered together often come again together: with several of them at
// work the writer waits a moment for those, a part of what a commit takes. Else they would be two halves for ever, each
// waiting for the commit of the other.
func (g *group) serve() {
	defer close(g.ended)
	var took time.Duration
	for first := range g.queue {
		all := g.gather([]*member{first}, groupMost, nil)
		if expected := min(g.atWork, groupMost); len(all) < expected {
			moment := time.NewTimer(min(took/2, groupMoment))
			all = g.gather(all, expected, moment.C)
			moment.Stop()
		}
		start := time.Now()
		g.commit(all)
		took = time.Since(start)
	}
}

// gather takes what waits, up to so many in all, and with until also what comes before then.
func (g *group) gather(all []*member, most int, until <-chan time.Time) []*member {
	for len(all) < most {
		m, ok := g.next(until)
		if !ok {
			break
		}
		all = append(all, m)
	}
	return all
}

func (g *group) next(until <-chan time.Time) (*member, bool) {
	select {
	case m, more := <-g.queue:
		return m, more
	default:
	}
	if until == nil {
		return nil, false
	}
	select {
	case m, more := <-g.queue:
		return m, more
	case <-until:
		return nil, false
	}
}

// commit settles every member. Most groups have none that fails, and savepoints would cost them a sixth of their time: only
// a group with one that fails is run again with a savepoint for each. A transaction that breaks all the same before its
// commit, e.g. because one member fills the disk, is run again member by member, so that each has its own fate.
func (g *group) commit(all []*member) {
	for _, m := range g.attempt(g.attempt(all, false), true) {
		g.attempt([]*member{m}, false)
	}
}

// attempt runs the members in one transaction and answers them. It gives back those that it has to leave undecided: all,
// when one of them broke the transaction, as without savepoints each does that fails; of a single one that is never so.
// It takes each only when its turn has come: to begin may take long, while another process holds the database.
func (g *group) attempt(all []*member, savepoints bool) (undecided []*member) {
	if all = slices.DeleteFunc(all, (*member).gone); len(all) == 0 {
		return nil
	}
	tx, err := g.db.BeginTx(context.Background(), nil)
	if err != nil {
		for _, m := range all {
			if m.take() {
				m.answer(err)
			}
		}
		return nil
	}
	ran, rest, broken := runAll(all, tx, savepoints)
	if broken == nil {
		err = tx.Commit()
		g.atWork = len(ran) + len(g.queue)
	}
	if errors.Is(err, errUndone) { // over something that a member did not tell
		broken = err
	}
	if broken != nil {
		broken = errors.Join(broken, ignoreDone(tx.Rollback()))
		if len(all) == 1 {
			all[0].answer(broken)
			return nil
		}
		for _, m := range ran {
			m.taken.Store(false) // until it runs again
		}
		return append(ran, rest...)
	}
	if err != nil {
		err = errors.Join(err, ignoreDone(tx.Rollback()))
		for _, m := range ran {
			m.answer(err)
		}
		return nil
	}
	// Also what failed is answered only now: it may have failed over what another of the group had written.
	for _, m := range ran {
		m.answer(m.err)
	}
	return nil
}

// runAll runs one member after the other until one breaks the transaction. A write may end its goroutine, as t.FailNow does,
// so they have one to themselves.
func runAll(all []*member, tx *sql.Tx, savepoints bool) (ran, rest []*member, broken error) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		broken = errEnded
		for i, m := range all {
			if m.gone() || !m.take() {
				continue
			}
			ran, rest = append(ran, m), all[i+1:]
			if err := m.within(tx, savepoints); err != nil {
				broken = err
				return
			}
		}
		broken = nil
	}()
	<-ended
	return ran, rest, broken
}

// within runs the member. m.err says why one failed; what it returns broke the transaction.
func (m *member) within(tx *sql.Tx, savepoint bool) error {
	if !savepoint {
		m.err = m.call(tx)
		return m.err
	}
	ctx := context.Background()
	if _, err := tx.ExecContext(ctx, "SAVEPOINT member"); err != nil {
		return err
	}
	if m.err = m.call(tx); m.err != nil {
		if _, err := tx.ExecContext(ctx, "ROLLBACK TO member"); err != nil {
			return errors.Join(m.err, err)
		}
	}
	_, err := tx.ExecContext(ctx, "RELEASE member")
	return err
}

// call runs the write. A panic becomes its error and goes on in its caller.
func (m *member) call(tx *sql.Tx) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = panicked(fmt.Sprintf("writing: %v\n\n%s", r, debug.Stack()))
		}
	}()
	return m.run(tx)
}

// take is true for the one who takes it.
func (m *member) take() bool { return m.taken.CompareAndSwap(false, true) }

// gone tells whether its caller's time is up, and answers one who waits.
func (m *member) gone() bool {
	err := m.ctx.Err()
	if err != nil && m.take() {
		m.answer(err)
	}
	return err != nil
}

func (m *member) answer(err error) {
	m.err = err
	close(m.done)
}
