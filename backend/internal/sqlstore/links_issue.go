package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/link"
)

// Writing new device codes
//
// A new code shares its commit with the codes that are pending at the same time: on SQLite, batchWriter does that for
// every write; on PostgreSQL, a queue collects codes and inserts them with two statements. If that fails and one of the
// codes may be the cause, each code is inserted in its own transaction.

const (
	maxNewCodes    = 64 // per transaction
	newCodeTimeout = 10 * time.Second
)

// newCode is a code and its line in the linking trail. The line has no ID if there is none.
type newCode struct {
	code link.Code
	line audit.TrailLine
}

// InsertCode returns link.ErrDuplicate if either hash is already in use.
func (s *Store) InsertCode(ctx context.Context, c link.Code, t audit.Trace) error {
	one := newCode{code: c}
	if !t.Empty() {
		one.line = t.Line(c.UserHash, "", "") // computed before the transaction to keep it short
	}
	var err error
	if s.codes != nil {
		err = s.codes.do(ctx, one)
	} else {
		err = s.insertCode(ctx, one)
	}
	if isDuplicate(err) {
		return link.ErrDuplicate
	}
	return err
}

// insertCode inserts a code and its trail line on SQLite.
func (s *Store) insertCode(ctx context.Context, one newCode) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		c := &one.code
		err := execTx(ctx, tx, "insert code", `INSERT INTO device_codes
				(device_hash, user_hash, state, host, os, client, ip, created_at, expires_at, interval_ms)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
			c.DeviceHash, c.UserHash, c.State, c.Requester.Host, c.Requester.OS, c.Requester.Client, c.Requester.IP,
			toMS(c.CreatedAt), toMS(c.ExpiresAt), c.Interval.Milliseconds())
		if err != nil || one.line.ID == "" {
			return err
		}
		return insertTrail(ctx, tx, one.line)
	})
}

// newCodeQueue starts the queue of new codes on PostgreSQL. It runs until close.
func (s *Store) newCodeQueue() *batchQueue[newCode] {
	q := newBatchQueue[newCode](maxNewCodes)
	q.commit = func(batch []*pending[newCode]) { q.commitTogether(batch, s.writeCodes) }
	go q.serve()
	return q
}

// writeCodes inserts a batch.
func (s *Store) writeCodes(batch []*pending[newCode]) (err error) {
	defer recovered(&err)
	ctx, cancel := context.WithTimeout(context.Background(), newCodeTimeout)
	defer cancel()
	codes := make([]newCode, len(batch))
	for i, p := range batch {
		codes[i] = p.work
	}
	return s.insertCodes(ctx, codes)
}

// insertCodes inserts codes and their trail lines in one transaction on PostgreSQL.
func (s *Store) insertCodes(ctx context.Context, codes []newCode) error {
	var device, user, state, host, system, client, ip []string
	var created, expires, interval []int64
	var lines []audit.TrailLine
	for _, one := range codes {
		c, who := one.code, one.code.Requester
		device, user, state = append(device, c.DeviceHash), append(user, c.UserHash), append(state, string(c.State))
		host, system = append(host, who.Host), append(system, who.OS)
		client, ip = append(client, who.Client), append(ip, who.IP)
		created, expires = append(created, toMS(c.CreatedAt)), append(expires, toMS(c.ExpiresAt))
		interval = append(interval, c.Interval.Milliseconds())
		if one.line.ID != "" {
			lines = append(lines, one.line)
		}
	}
	return s.write(ctx, func(tx *sql.Tx) error {
		b := bulk{tx, true}
		err := b.insert(ctx, "insert code", "device_codes", "", len(codes), column{"device_hash", device},
			column{"user_hash", user}, column{"state", state}, column{"host", host}, column{"os", system},
			column{"client", client}, column{"ip", ip}, column{"created_at", created}, column{"expires_at", expires},
			column{"interval_ms", interval})
		if err != nil {
			return err
		}
		return b.insertTrail(ctx, lines)
	})
}
