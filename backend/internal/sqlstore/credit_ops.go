package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/projects"
)

// Grouping of the ledger's writes
//
// Calls of one account contend for its balance, so with one transaction each they would wait for each other's commits.
// Instead, one goroutine collects all pending holds and settlements and writes them in one transaction, which changes
// an account's sums once: see creditGroup. If a group fails and one of its writes may be the cause, each write runs
// again in its own transaction.
//
// On PostgreSQL, another process may hold the lock of an account, even for seconds if the process was frozen. A write
// that cannot get its locks at once is handed to a second goroutine, together with all later writes of its account, so
// that other accounts do not wait.

const (
	maxCreditOps = 128
	// creditTimeout limits the transaction of a group.
	creditTimeout = 10 * time.Second
	// quickLock is the time that a group waits for a lock: longer than another process's transaction usually takes.
	quickLock = 25 * time.Millisecond
)

// creditOp is one write of the ledger: a hold, the settlement of a hold, or a call without money. Each run of its group
// overwrites the results.
type creditOp struct {
	hold   credit.Hold       // inserted if it has an ID
	settle credit.Settlement // settles HoldID, or only its call if callID is set
	callID string
	at     time.Time

	refused error // why nothing was written
	ended   endedHold
	late    bool // the hold had already been released
	repeat  bool // the hold had already been settled, or does not exist
	charged credit.Amount
}

func (op *creditOp) reset() {
	op.refused, op.ended, op.late, op.repeat, op.charged = nil, endedHold{}, false, false, 0
}

// account returns the account of the write.
func (op *creditOp) account() string { return cmp.Or(op.hold.Account, op.settle.Call.Account) }

// newCreditQueue starts a queue of the ledger's writes. It runs until close. If lockTimeout is not 0, writes that wait
// longer for a lock fail with errLocked.
func (s *Store) newCreditQueue(lockTimeout time.Duration) *batchQueue[*creditOp] {
	q := newBatchQueue[*creditOp](maxCreditOps)
	q.commit = func(batch []*pending[*creditOp]) {
		locked := map[string]bool{} // accounts of writes that ran alone and failed with errLocked
		q.commitTogether(batch, func(some []*pending[*creditOp]) error {
			account := some[0].work.account()
			if len(some) == 1 && locked[account] {
				return errLocked
			}
			err := s.writeCredit(some, lockTimeout)
			locked[account] = len(some) == 1 && account != "" && errors.Is(err, errLocked)
			return err
		})
	}
	go q.serve()
	return q
}

// contending counts the contended writes in progress by account.
type contending struct {
	mu       sync.Mutex
	accounts map[string]int
}

func (c *contending) has(account string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.accounts[account] > 0
}

func (c *contending) add(account string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.accounts == nil {
		c.accounts = map[string]int{}
	}
	if c.accounts[account] += n; c.accounts[account] == 0 {
		delete(c.accounts, account)
	}
}

// doCredit writes op in a group.
func (s *Store) doCredit(ctx context.Context, op *creditOp) error {
	account := op.account()
	if !s.contending.has(account) {
		if err := s.credit.do(ctx, op); !errors.Is(err, errLocked) {
			return err
		}
	}
	s.contending.add(account, 1)
	defer s.contending.add(account, -1)
	return s.contended.do(ctx, op)
}

// writeCredit writes a batch in one transaction.
func (s *Store) writeCredit(batch []*pending[*creditOp], lockTimeout time.Duration) (err error) {
	defer recovered(&err)
	ctx, cancel := context.WithTimeout(context.Background(), creditTimeout)
	defer cancel()
	return s.writeSteps(ctx, lockTimeout, func(tx stepper) error {
		g := newCreditGroup(s, tx)
		for _, p := range batch {
			p.work.reset()
			g.ops = append(g.ops, p.work)
		}
		return g.run(ctx)
	})
}

// InsertHold reserves money. It writes nothing if the hold is refused.
func (s *Store) InsertHold(ctx context.Context, h credit.Hold, at time.Time) error {
	op := &creditOp{hold: h, at: at}
	if err := s.doCredit(ctx, op); err != nil {
		return err
	}
	return op.refused
}

// SettleHold charges an open hold and counts the call in one transaction.
func (s *Store) SettleHold(ctx context.Context, in credit.Settlement) (credit.Amount, error) {
	op := &creditOp{settle: in, at: in.At}
	var err error
	for range 3 { // try again without the project if it has just been deleted
		if err = s.doCredit(ctx, op); !errors.Is(err, projects.ErrNotFound) {
			break
		}
	}
	if err != nil {
		return 0, err
	}
	return op.charged, op.refused
}

// RecordCall counts a call that cost nothing. It ignores a call of an unknown project.
func (s *Store) RecordCall(ctx context.Context, id string, c credit.Call, at time.Time) error {
	err := s.doCredit(ctx, &creditOp{settle: credit.Settlement{Call: c}, callID: id, at: at})
	if errors.Is(err, projects.ErrNotFound) { // the project has just been deleted
		return nil
	}
	return err
}
