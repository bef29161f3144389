package sqlstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/projects"
)

// Grouping of the ledger's writes
//
// Calls of one account wait for its balance, so a transaction for each would make them wait for each other's commits.
// One goroutine therefore takes all holds and settlements that wait and writes them in one transaction, in which an
// account's sums change once: see creditGroup. A failure that may be due to one of them has each run again in a
// transaction of its own. Several processes still wait for each other, group by group.

const (
	maxCreditOps = 128
	// creditTimeout bounds the transaction of a group.
	creditTimeout = 10 * time.Second
)

// creditOp is one write of the ledger: a hold, the settlement of one, or a call without money. What it results in is
// set anew whenever its group runs.
type creditOp struct {
	hold   credit.Hold       // to insert, if it has an id
	settle credit.Settlement // of HoldID, or only its call if callID is set
	callID string
	at     time.Time

	refused error // why nothing of it is written
	ended   endedHold
	late    bool // ended was given back before
	repeat  bool // the hold was settled before, or does not exist
	charged credit.Amount
}

func (op *creditOp) reset() {
	op.refused, op.ended, op.late, op.repeat, op.charged = nil, endedHold{}, false, false, 0
}

// newCreditQueue starts the queue of the ledger's writes, which runs until close.
func (s *Store) newCreditQueue() *batchQueue[*creditOp] {
	q := newBatchQueue[*creditOp](maxCreditOps)
	q.commit = func(batch []*pending[*creditOp]) { s.commitCredit(q, batch) }
	go q.serve()
	return q
}

// commitCredit answers a batch.
func (s *Store) commitCredit(q *batchQueue[*creditOp], batch []*pending[*creditOp]) {
	batch = slices.DeleteFunc(batch, func(p *pending[*creditOp]) bool { return p.expired() || !p.claim() })
	if len(batch) == 0 {
		return
	}
	err := s.writeCredit(batch)
	q.active = len(batch) + len(q.queue)
	alone := err != nil && len(batch) > 1 && !isUnavailable(err)
	for i, p := range batch {
		if alone {
			err = s.writeCredit(batch[i : i+1])
		}
		p.answer(err)
	}
}

// writeCredit writes a batch in one transaction.
func (s *Store) writeCredit(batch []*pending[*creditOp]) (err error) {
	defer recovered(&err)
	ctx, cancel := context.WithTimeout(context.Background(), creditTimeout)
	defer cancel()
	return s.writeSteps(ctx, func(tx stepper) error {
		g := newCreditGroup(s, tx)
		for _, p := range batch {
			p.work.reset()
			g.ops = append(g.ops, p.work)
		}
		return g.run(ctx)
	})
}

// InsertHold sets money aside. A refusal writes nothing.
func (s *Store) InsertHold(ctx context.Context, h credit.Hold, at time.Time) error {
	op := &creditOp{hold: h, at: at}
	if err := s.credit.do(ctx, op); err != nil {
		return err
	}
	return op.refused
}

// SettleHold charges an open hold and counts the call, all in one transaction.
func (s *Store) SettleHold(ctx context.Context, in credit.Settlement) (credit.Amount, error) {
	op := &creditOp{settle: in, at: in.At}
	var err error
	for range 3 { // again if the project was deleted meanwhile: then there is nothing to count the call in
		if err = s.credit.do(ctx, op); !errors.Is(err, projects.ErrNotFound) {
			break
		}
	}
	if err != nil {
		return 0, err
	}
	return op.charged, op.refused
}

// RecordCall counts a call without money. A call of an unknown project is not counted.
func (s *Store) RecordCall(ctx context.Context, id string, c credit.Call, at time.Time) error {
	err := s.credit.do(ctx, &creditOp{settle: credit.Settlement{Call: c}, callID: id, at: at})
	if errors.Is(err, projects.ErrNotFound) { // it was deleted meanwhile
		return nil
	}
	return err
}
