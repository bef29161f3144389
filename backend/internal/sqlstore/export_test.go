package sqlstore

import (
	"context"

	"github.com/service-dev/service/backend/internal/credit"
)

// MigrationLock exports migrationLock.
const MigrationLock int64 = migrationLock

// Write exports write for tests that use PostgreSQL.
var Write = (*Store).write

// CommitTogether writes holds and settlements in one group, and returns the charge and the error of each.
func CommitTogether(s *Store, work ...any) (charged []credit.Amount, errs []error) {
	batch := make([]*pending[*creditOp], len(work))
	for i, one := range work {
		op := &creditOp{}
		switch one := one.(type) {
		case credit.Hold:
			op.hold, op.at = one, one.LeaseUntil.Add(-credit.Lease)
		case credit.Settlement:
			op.settle, op.at = one, one.At
		}
		batch[i] = &pending[*creditOp]{ctx: context.Background(), work: op, done: make(chan struct{})}
	}
	s.credit.commit(batch)
	for _, p := range batch {
		<-p.done
		err := p.err
		if err == nil {
			err = p.work.refused
		}
		charged, errs = append(charged, p.work.charged), append(errs, err)
	}
	return charged, errs
}
