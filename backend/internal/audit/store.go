package audit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/db"
)

// Store stores audit entries and the linking trail. Every method is atomic.
type Store struct{ *db.DB }

// NewStore returns a store in d.
func NewStore(d *db.DB) *Store { return &Store{d} }

// Statement returns the statement that inserts an entry.
func Statement(e Entry) db.Statement {
	return db.Stmt(`INSERT INTO audit (id, account_id, at, actor, link_id, action, app_id, summary, before, after)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`, e.ID, e.AccountID, db.ToMS(e.At), e.Actor.Kind, e.Actor.LinkID,
		e.Action, e.Project, e.Summary, db.TextOrNull(e.Before), db.TextOrNull(e.After))
}

// Insert inserts an entry in the transaction of the change that it records.
func Insert(ctx context.Context, tx *sql.Tx, e Entry) error {
	return db.ExecAll(ctx, tx, "insert audit entry", Statement(e))
}

// Write is like d.Write, but also inserts an entry after f has succeeded.
func Write(ctx context.Context, d *db.DB, e Entry, f func(tx *sql.Tx) error) error {
	return d.Write(ctx, func(tx *sql.Tx) error {
		if err := f(tx); err != nil {
			return err
		}
		return Insert(ctx, tx, e)
	})
}

// InsertAudit inserts an entry in its own transaction, for an event that changed no row.
func (s *Store) InsertAudit(ctx context.Context, e Entry) error {
	return s.Write(ctx, func(tx *sql.Tx) error { return Insert(ctx, tx, e) })
}

// MarkUndone records that the entry undoneBy undid an entry, in the transaction that undoes it. It fails with the
// error none if the entry has no before value or was already undone.
func MarkUndone(ctx context.Context, tx *sql.Tx, none error, accountID, entryID, undoneBy string) error {
	return db.MustChange(ctx, tx, none, "mark audit entry undone", `UPDATE audit SET undone_by = $1
		WHERE id = $2 AND account_id = $3 AND before IS NOT NULL AND undone_by IS NULL`, undoneBy, entryID, accountID)
}

// ErrOtherVersion is returned by SaveVersion if the version to replace is not the stored one.
var ErrOtherVersion = errors.New("another version is stored")

// SaveVersion saves a version of a project's only row in a table, with its audit entry. If the statement changes no
// row, it returns ErrOtherVersion and the stored version.
func SaveVersion(
	ctx context.Context, tx *sql.Tx, table, project string, e Entry, save db.Statement,
) (current int64, err error) {
	saved, err := db.Changed(ctx, tx, "save version in "+table, save.Text, save.Args...)
	switch {
	case err != nil:
		return 0, err
	case saved:
		return 0, Insert(ctx, tx, e)
	}
	//nolint:gosec // constants
	current, err = db.QueryValue[int64](ctx, tx,
		"SELECT version FROM "+table+" WHERE account_id = $1 AND app_id = $2", e.AccountID, project)
	if err := db.ReplaceNoRows(err, nil); err != nil {
		return 0, fmt.Errorf("read version in %s: %w", table, err)
	}
	return current, ErrOtherVersion
}

const auditQuery = `SELECT a.id, a.account_id, a.at, a.actor, a.link_id, a.action, a.app_id, a.summary, a.before,
		a.after, a.undone_by, l.host, l.client
	FROM audit a LEFT JOIN links l ON l.id = a.link_id AND l.account_id = a.account_id WHERE a.account_id = $1`

func scanAudit(row db.Row) (e Entry, err error) {
	var host, client string
	err = row.Scan(&e.ID, &e.AccountID, db.IntoTime(&e.At), &e.Actor.Kind, &e.Actor.LinkID, &e.Action, &e.Project,
		&e.Summary, (*[]byte)(&e.Before), (*[]byte)(&e.After), db.IntoText(&e.UndoneBy), db.IntoText(&host),
		db.IntoText(&client))
	e.ActorName = Name(e.Actor.Kind, host, client)
	return e, err
}

// AuditEntries lists entries, newest first. Even if few entries match, the query reads at most the number of entries
// that an account keeps.
func (s *Store) AuditEntries(ctx context.Context, accountID string, f Filter) ([]Entry, error) {
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
		where("a.at >= ?", db.ToMS(f.From))
	}
	if !f.To.IsZero() {
		where("a.at < ?", db.ToMS(f.To))
	}
	if f.ChangesOnly {
		query += " AND a.action NOT LIKE '%.read'"
	}
	if f.Before != "" {
		where("a.id < ?", f.Before)
	}
	return db.All(ctx, s, scanAudit, query+" ORDER BY a.id DESC LIMIT "+strconv.Itoa(f.Limit), args...)
}

// AuditEntry returns ErrNotFound for an unknown entry.
func (s *Store) AuditEntry(ctx context.Context, accountID, id string) (Entry, error) {
	return db.One(ctx, s, ErrNotFound, scanAudit, auditQuery+" AND a.id = $2", accountID, id)
}

// AddAuditRead inserts e unless an entry after since records the same action by the same actor on the same project.
// Usually such an entry exists, and AddAuditRead writes nothing.
func (s *Store) AddAuditRead(ctx context.Context, e Entry, since time.Time) error {
	if known, err := hasAuditSince(ctx, s, e, since); known || err != nil {
		return err
	}
	return s.WriteAccount(ctx, e.AccountID, func(tx *sql.Tx) error {
		if known, err := hasAuditSince(ctx, tx, e, since); known || err != nil {
			return err
		}
		return Insert(ctx, tx, e)
	})
}

func hasAuditSince(ctx context.Context, q db.Querier, e Entry, since time.Time) (bool, error) {
	return db.Exists(ctx, q, `SELECT 1 FROM audit WHERE account_id = $1 AND action = $2 AND at > $3 AND app_id = $4
		AND actor = $5 AND link_id = $6 LIMIT 1`,
		e.AccountID, e.Action, db.ToMS(since), e.Project, e.Actor.Kind, e.Actor.LinkID)
}

// auditShare identifies an actor that has more entries in an account than its share.
type auditShare struct {
	accountID, actor, linkID string
	keep                     int
}

// SweepAudit deletes entries older than old. In accounts with an entry since recent, it also deletes the oldest
// entries beyond each actor's share; other accounts are usually trimmed already. It keeps the latest entry of each
// actor for each setting that can be undone. It returns the number of deleted entries.
func (s *Store) SweepAudit(ctx context.Context, old, recent time.Time, ofPerson, ofOther int) (int64, error) {
	deleted, err := s.Exec(ctx, "delete old audit entries", `DELETE FROM audit WHERE at < $1`, db.ToMS(old))
	if err != nil {
		return 0, err
	}
	full, err := db.All(ctx, s, func(row db.Row) (a auditShare, err error) {
		err = row.Scan(&a.accountID, &a.actor, &a.linkID)
		if a.keep = ofOther; a.actor == KindPerson {
			a.keep = ofPerson
		}
		return a, err
	}, `SELECT account_id, actor, link_id FROM audit
		WHERE account_id IN (SELECT account_id FROM audit WHERE at >= $1) GROUP BY account_id, actor, link_id
		HAVING (actor = $2 AND COUNT(*) > $3) OR (actor <> $2 AND COUNT(*) > $4)`,
		db.ToMS(recent), KindPerson, ofPerson, ofOther)
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
	oldest, err := db.QueryValue[string](ctx, s,
		"SELECT id"+auditOf+" ORDER BY id DESC LIMIT 1 OFFSET $4", append(who, a.keep-1)...)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", purpose, err)
	}
	deleted, err := s.Exec(ctx, purpose, "DELETE"+auditOf+" AND id < $4 AND (before IS NULL OR undone_by IS NOT NULL)",
		append(who, oldest)...)
	if err != nil {
		return deleted, err
	}
	spare, err := s.spareUndos(ctx, a, oldest)
	if err != nil {
		return deleted, err
	}
	for ids := range slices.Chunk(spare, 500) {
		n, err := s.Exec(ctx, purpose, "DELETE"+auditOf+" AND id IN "+db.Placeholders(len(ids), 4),
			slices.Concat(who, db.Args(ids))...)
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
	err = db.Each(ctx, s, func(row db.Row) error {
		var e Entry
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

// InsertTrace inserts the trail line of a change in the same transaction. It does nothing for the
// zero trace.
func InsertTrace(ctx context.Context, tx *sql.Tx, t Trace, codeHash, linkID, accountID string) error {
	if t.Empty() {
		return nil
	}
	return InsertTrail(ctx, tx, t.Line(codeHash, linkID, accountID))
}

// InsertTrail inserts a line. It does not change an existing line.
func InsertTrail(ctx context.Context, tx *sql.Tx, l TrailLine) error {
	return db.ExecAll(ctx, tx, "insert trail line", TrailStatement(l))
}

// TrailStatement inserts a line. It does not change an existing line.
func TrailStatement(l TrailLine) db.Statement {
	return db.Stmt(`INSERT INTO link_trail (id, at, action, code_ref, link_ref, account_ref, address_ref)
		VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO NOTHING`,
		l.ID, db.ToMS(l.At), l.Action, l.Code, l.Link, l.Account, l.Address)
}

// AddTrail inserts a line in its own transaction, for an event that changed no row. It does not change an existing
// line.
func (s *Store) AddTrail(ctx context.Context, l TrailLine) error {
	known, err := db.Exists(ctx, s, "SELECT 1 FROM link_trail WHERE id = $1", l.ID)
	if err != nil || known {
		return err
	}
	return s.Write(ctx, func(tx *sql.Tx) error { return InsertTrail(ctx, tx, l) })
}

// Trail lists lines, newest first.
func (s *Store) Trail(ctx context.Context, f TrailFilter) ([]TrailLine, error) {
	query := "SELECT id, at, action, code_ref, link_ref, account_ref, address_ref FROM link_trail WHERE 1 = 1"
	var args []any
	for _, condition := range [][2]string{
		{"code_ref", f.Code}, {"link_ref", f.Link}, {"account_ref", f.Account}, {"address_ref", f.Address},
	} {
		if column, ref := condition[0], condition[1]; ref != "" {
			args = append(args, ref)
			query += " AND " + column + " = $" + strconv.Itoa(len(args))
		}
	}
	limit := f.Limit
	if limit == 0 {
		limit = MaxTrailListed
	}
	query += " ORDER BY at DESC, id DESC LIMIT " + strconv.Itoa(min(max(limit, 1), MaxTrailListed))
	return db.All(ctx, s, func(row db.Row) (l TrailLine, err error) {
		err = row.Scan(&l.ID, db.IntoTime(&l.At), &l.Action, &l.Code, &l.Link, &l.Account, &l.Address)
		return l, err
	}, query, args...)
}

// maxTrailDeleted limits the lines that one transaction deletes, and therefore the time that other writes wait.
const maxTrailDeleted = 2000

// SweepTrail deletes lines from before old. It also deletes the oldest lines with actions in AnybodysTrail beyond
// keep. It returns the number of deleted lines.
func (s *Store) SweepTrail(ctx context.Context, old time.Time, keep int) (int64, error) {
	deleted, err := s.deleteTrail(ctx, "at < $1", db.ToMS(old))
	if err != nil {
		return deleted, err
	}
	var actions []string
	for _, a := range AnybodysTrail() {
		actions = append(actions, "'"+string(a)+"'")
	}
	anybodys := "action IN (" + strings.Join(actions, ", ") + ")"
	last, err := db.QueryValue[int64](ctx, s,
		"SELECT at FROM link_trail WHERE "+anybodys+" ORDER BY at DESC LIMIT 1 OFFSET $1", keep-1)
	if err != nil {
		if errors.Is(err, sql.ErrNoRows) {
			return deleted, nil
		}
		return deleted, err
	}
	more, err := s.deleteTrail(ctx, "at < $1 AND "+anybodys, last)
	return deleted + more, err
}

// deleteTrail deletes the lines that match a condition with the parameter $1.
func (s *Store) deleteTrail(ctx context.Context, where string, at int64) (deleted int64, err error) {
	for {
		n, err := s.Exec(ctx, "delete trail lines",
			"DELETE FROM link_trail WHERE id IN (SELECT id FROM link_trail WHERE "+where+" LIMIT $2)", at, maxTrailDeleted)
		deleted += n
		if err != nil || n < maxTrailDeleted {
			return deleted, err
		}
	}
}
