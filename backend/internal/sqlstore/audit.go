package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
)

// auditStatement inserts an entry.
func auditStatement(e audit.Entry) statement {
	return stmt(`INSERT INTO audit (id, account_id, at, actor, link_id, action, app_id, summary, before, after)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`, e.ID, e.AccountID, toMS(e.At), e.Actor.Kind, e.Actor.LinkID,
		e.Action, e.Project, e.Summary, textOrNull(e.Before), textOrNull(e.After))
}

// insertAudit inserts an entry in the transaction of the change that it records.
func insertAudit(ctx context.Context, tx *sql.Tx, e audit.Entry) error {
	return execAll(ctx, tx, "insert audit entry", auditStatement(e))
}

// writeAudited is like write, but also inserts an entry after f has succeeded.
func (s *Store) writeAudited(ctx context.Context, e audit.Entry, f func(tx *sql.Tx) error) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		if err := f(tx); err != nil {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
}

// InsertAudit inserts an entry in its own transaction, for an event that changed no row.
func (s *Store) InsertAudit(ctx context.Context, e audit.Entry) error {
	return s.write(ctx, func(tx *sql.Tx) error { return insertAudit(ctx, tx, e) })
}

// markUndone records that the entry undoneBy undid an entry, in the transaction that undoes it. It returns none if the
// entry has no before value or is already undone.
func markUndone(ctx context.Context, tx *sql.Tx, none error, accountID, entryID, undoneBy string) error {
	return mustChange(ctx, tx, none, "mark audit entry undone", `UPDATE audit SET undone_by = $1
		WHERE id = $2 AND account_id = $3 AND before IS NOT NULL AND undone_by IS NULL`, undoneBy, entryID, accountID)
}

const auditQuery = `SELECT a.id, a.account_id, a.at, a.actor, a.link_id, a.action, a.app_id, a.summary, a.before,
		a.after, a.undone_by, l.host, l.client
	FROM audit a LEFT JOIN links l ON l.id = a.link_id AND l.account_id = a.account_id WHERE a.account_id = $1`

func scanAudit(row scanner) (e audit.Entry, err error) {
	var host, client string
	err = row.Scan(&e.ID, &e.AccountID, intoTime(&e.At), &e.Actor.Kind, &e.Actor.LinkID, &e.Action, &e.Project, &e.Summary,
		(*[]byte)(&e.Before), (*[]byte)(&e.After), intoText(&e.UndoneBy), intoText(&host), intoText(&client))
	e.ActorName = audit.Name(e.Actor.Kind, host, client)
	return e, err
}

// AuditEntries lists entries, newest first. Even if few entries match, the query reads at most the number of entries
// that an account keeps.
func (s *Store) AuditEntries(ctx context.Context, accountID string, f audit.Filter) ([]audit.Entry, error) {
	query, args := auditQuery, []any{accountID}
	where := func(condition string, value any) {
		args = append(args, value)
		query += " AND " + strings.ReplaceAll(condition, "?", "$"+strconv.Itoa(len(args)))
	}
	if f.Project != "" {
		where("a.app_id = ?", f.Project)
	}
	if len(f.Nouns) > 0 {
		var nouns []string
		for _, noun := range f.Nouns {
			args = append(args, noun+".%")
			nouns = append(nouns, "a.action LIKE $"+strconv.Itoa(len(args)))
		}
		query += " AND (" + strings.Join(nouns, " OR ") + ")"
	}
	if f.Actor != "" {
		where("a.actor = ?", f.Actor)
	}
	if f.LinkID != "" {
		where("a.link_id = ?", f.LinkID)
	}
	if !f.From.IsZero() {
		where("a.at >= ?", toMS(f.From))
	}
	if !f.To.IsZero() {
		where("a.at < ?", toMS(f.To))
	}
	if f.ChangesOnly {
		query += " AND a.action NOT LIKE '%.read'"
	}
	if f.Before != "" {
		where("a.id < ?", f.Before)
	}
	return queryAll(ctx, s.reads, scanAudit, query+" ORDER BY a.id DESC LIMIT "+strconv.Itoa(f.Limit), args...)
}

// AuditEntry returns audit.ErrNotFound for an unknown entry.
func (s *Store) AuditEntry(ctx context.Context, accountID, id string) (audit.Entry, error) {
	return queryOne(ctx, s.reads, audit.ErrNotFound, scanAudit, auditQuery+" AND a.id = $2", accountID, id)
}

// AddAuditRead inserts e unless an entry after since records the same action by the same actor on the same project.
// Usually such an entry exists, so it writes nothing.
func (s *Store) AddAuditRead(ctx context.Context, e audit.Entry, since time.Time) error {
	if known, err := hasAuditSince(ctx, s.reads, e, since); known || err != nil {
		return err
	}
	return s.writeProjects(ctx, e.AccountID, func(tx *sql.Tx) error {
		if known, err := hasAuditSince(ctx, tx, e, since); known || err != nil {
			return err
		}
		return insertAudit(ctx, tx, e)
	})
}

func hasAuditSince(ctx context.Context, q querier, e audit.Entry, since time.Time) (bool, error) {
	return hasRow(ctx, q, `SELECT 1 FROM audit WHERE account_id = $1 AND action = $2 AND at > $3 AND app_id = $4
		AND actor = $5 AND link_id = $6 LIMIT 1`,
		e.AccountID, e.Action, toMS(since), e.Project, e.Actor.Kind, e.Actor.LinkID)
}

// auditShare is an actor of an account that has more entries than its share.
type auditShare struct {
	accountID, actor, linkID string
	keep                     int
}

// SweepAudit deletes entries older than old. In accounts that have an entry since recent, it also deletes the oldest
// entries beyond each actor's share. Other accounts are usually trimmed already; otherwise they wait for their next
// entry. It keeps the latest entry of each actor for each setting that can be undone. It returns the number of deleted
// entries.
func (s *Store) SweepAudit(ctx context.Context, old, recent time.Time, ofPerson, ofOther int) (int64, error) {
	deleted, err := s.exec(ctx, "delete old audit entries", `DELETE FROM audit WHERE at < $1`, toMS(old))
	if err != nil {
		return 0, err
	}
	full, err := queryAll(ctx, s.reads, func(row scanner) (a auditShare, err error) {
		err = row.Scan(&a.accountID, &a.actor, &a.linkID)
		if a.keep = ofOther; a.actor == audit.KindPerson {
			a.keep = ofPerson
		}
		return a, err
	}, `SELECT account_id, actor, link_id FROM audit
		WHERE account_id IN (SELECT account_id FROM audit WHERE at >= $1) GROUP BY account_id, actor, link_id
		HAVING (actor = $2 AND COUNT(*) > $3) OR (actor <> $2 AND COUNT(*) > $4)`,
		toMS(recent), audit.KindPerson, ofPerson, ofOther)
	if err != nil {
		return deleted, err
	}
	for _, a := range full {
		n, err := s.trimAudit(ctx, a)
		deleted += n
		if err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

// auditOf selects the entries of one actor of an account.
const auditOf = ` FROM audit WHERE account_id = $1 AND actor = $2 AND link_id = $3`

// trimAudit deletes an actor's oldest entries beyond its share, except the ones that an undo needs.
func (s *Store) trimAudit(ctx context.Context, a auditShare) (int64, error) {
	const purpose = "trim the audit log"
	who := []any{a.accountID, a.actor, a.linkID}
	oldest, err := queryValue[string](ctx, s.reads,
		"SELECT id"+auditOf+" ORDER BY id DESC LIMIT 1 OFFSET $4", append(who, a.keep-1)...)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", purpose, err)
	}
	deleted, err := s.exec(ctx, purpose, "DELETE"+auditOf+" AND id < $4 AND (before IS NULL OR undone_by IS NOT NULL)",
		append(who, oldest)...)
	if err != nil {
		return deleted, err
	}
	spare, err := s.spareUndos(ctx, a, oldest)
	if err != nil {
		return deleted, err
	}
	for ids := range slices.Chunk(spare, 500) {
		n, err := s.exec(ctx, purpose, "DELETE"+auditOf+" AND id IN "+placeholders(len(ids), 4),
			slices.Concat(who, anys(ids))...)
		deleted += n
		if err != nil {
			return deleted, err
		}
	}
	return deleted, nil
}

// spareUndos returns an actor's entries before oldest that can be undone, but whose settings all have later entries.
func (s *Store) spareUndos(ctx context.Context, a auditShare, oldest string) (spare []string, err error) {
	changed := map[string]bool{}
	err = queryEach(ctx, s.reads, func(row scanner) error {
		var e audit.Entry
		if err := row.Scan(&e.ID, &e.Project, &e.Action, (*[]byte)(&e.Before)); err != nil {
			return err
		}
		isSpare := e.ID < oldest
		for _, name := range e.Settings() {
			isSpare = isSpare && changed[name]
			changed[name] = true
		}
		if isSpare {
			spare = append(spare, e.ID)
		}
		return nil
	}, "SELECT id, app_id, action, before"+auditOf+" AND before IS NOT NULL AND undone_by IS NULL ORDER BY id DESC",
		a.accountID, a.actor, a.linkID)
	return spare, err
}
