package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/service-dev/service/backend/internal/analytics"
)

// AnalyticsSalt gives the salt of a day; fresh becomes it when the day has none.
func (s *Store) AnalyticsSalt(ctx context.Context, day int64, fresh []byte) (salt []byte, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO analytics_salts (day, salt) VALUES ($1, $2) ON CONFLICT (day) DO NOTHING`, day, fresh)
		if err != nil {
			return fmt.Errorf("inserting a salt: %w", err)
		}
		return tx.QueryRowContext(ctx, `SELECT salt FROM analytics_salts WHERE day = $1`, day).Scan(&salt)
	})
	return salt, err
}

// CountAnalytics counts batches in one transaction, project by project.
func (s *Store) CountAnalytics(ctx context.Context, batches []analytics.Batch) ([]analytics.Outcome, error) {
	// Always in the same order, so that two writers never wait for each other's projects.
	order := make([]int, len(batches))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(strings.Compare(batches[a].Account, batches[b].Account), strings.Compare(batches[a].Project, batches[b].Project))
	})
	outcomes := make([]analytics.Outcome, len(batches))
	return outcomes, s.write(ctx, func(tx *sql.Tx) error {
		for at := 0; at < len(order); {
			first := &batches[order[at]]
			var own []analytics.Batch
			for _, i := range order[at:] {
				if batches[i].Account != first.Account || batches[i].Project != first.Project {
					break
				}
				own = append(own, batches[i])
			}
			got, err := countProject(ctx, tx, own)
			if err != nil {
				return err
			}
			for i := range own {
				outcomes[order[at+i]] = got[i]
			}
			at += len(own)
		}
		return nil
	})
}

// countProject counts batches of one project.
func countProject(ctx context.Context, tx *sql.Tx, batches []analytics.Batch) ([]analytics.Outcome, error) {
	day := batches[0].Day
	for i := range batches {
		day = max(day, batches[i].Day)
	}
	project, usedDay, used, err := lockAnalytics(ctx, tx, batches[0].Account, batches[0].Project)
	if err != nil {
		return nil, err
	}
	if usedDay < day {
		usedDay, used = day, 0
	}
	t := analytics.NewTally(batches, used)
	fresh, err := insertSeen(ctx, tx, project, day, t.Keys())
	if err != nil {
		return nil, err
	}
	t.Count(fresh)
	if len(fresh) > 0 {
		if err := storeTally(ctx, tx, project, t); err != nil {
			return nil, err
		}
		_, err = tx.ExecContext(ctx, `UPDATE analytics_projects SET used_day = $2, used = $3 WHERE id = $1`, project, usedDay, used+int64(len(fresh)))
		if err != nil {
			return nil, fmt.Errorf("counting for the quota: %w", err)
		}
	}
	return t.Outcomes(), nil
}

// lockAnalytics gives the number of a project, made at first need, and holds its row until the transaction ends.
func lockAnalytics(ctx context.Context, tx *sql.Tx, account, project string) (id, usedDay, used int64, err error) {
	for range 20 { // two that make a number at once may take the same; the later tries the next
		err = tx.QueryRowContext(ctx, `UPDATE analytics_projects SET used = used WHERE account_id = $1 AND app_id = $2
			RETURNING id, used_day, used`, account, project).Scan(&id, &usedDay, &used)
		if !errors.Is(err, sql.ErrNoRows) {
			break
		}
		var n int
		if err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM projects WHERE account_id = $1 AND app_id = $2`, account, project).Scan(&n); err != nil {
			return 0, 0, 0, fmt.Errorf("reading project: %w", err)
		}
		if n == 0 {
			return 0, 0, 0, analytics.ErrNoProject
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO analytics_projects (id, account_id, app_id, used_day, used)
			SELECT COALESCE(MAX(id), 0) + 1, $1, $2, 0, 0 FROM analytics_projects WHERE true ON CONFLICT DO NOTHING`, account, project)
		if err != nil {
			return 0, 0, 0, fmt.Errorf("numbering project: %w", err)
		}
	}
	if err != nil {
		return 0, 0, 0, fmt.Errorf("locking the project's analytics: %w", err)
	}
	return id, usedDay, used, nil
}

// rowsAtOnce bounds the parameters of one statement (SQLite takes 32766).
const rowsAtOnce = 1000

// insertSeen keeps the keys and gives those that were not there.
func insertSeen(ctx context.Context, tx *sql.Tx, project, day int64, keys []analytics.Key) (fresh []analytics.Key, err error) {
	for chunk := range slices.Chunk(keys, rowsAtOnce) {
		args := append(make([]any, 0, len(chunk)+2), project, day)
		for i := range chunk {
			args = append(args, chunk[i][:])
		}
		rows, err := tx.QueryContext(ctx, `INSERT INTO analytics_seen (project, day, hash) VALUES `+tuples(len(chunk), 1, "$1", "$2")+
			` ON CONFLICT (project, hash) DO NOTHING RETURNING hash`, args...)
		if err != nil {
			return nil, fmt.Errorf("inserting ids: %w", err)
		}
		if fresh, err = appendHashes(fresh, rows); err != nil {
			return nil, fmt.Errorf("inserting ids: %w", err)
		}
	}
	return fresh, nil
}

func appendHashes(to []analytics.Key, rows *sql.Rows) ([]analytics.Key, error) {
	defer rows.Close()
	var raw sql.RawBytes
	for rows.Next() {
		if err := rows.Scan(&raw); err != nil {
			return nil, err
		}
		to = append(to, analytics.Key(raw))
	}
	return to, rows.Err()
}

// tuples gives n rows of placeholders: the fixed ones, then own numbered ones, as "($1,$2,$3),($1,$2,$4)".
func tuples(n, own int, fixed ...string) string {
	var b strings.Builder
	next := len(fixed) + 1
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('(')
		for _, f := range fixed {
			b.WriteString(f)
			b.WriteByte(',')
		}
		for j := range own {
			if j > 0 {
				b.WriteByte(',')
			}
			b.WriteByte('$')
			b.WriteString(strconv.Itoa(next))
			next++
		}
		b.WriteByte(')')
	}
	return b.String()
}

// list gives n placeholders from the number first on: "($3,$4,$5)".
func list(n, first int) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = "$" + strconv.Itoa(first+i)
	}
	return "(" + strings.Join(parts, ",") + ")"
}

// storeTally writes what the tally adds.
func storeTally(ctx context.Context, tx *sql.Tx, project int64, t *analytics.Tally) error {
	seated := map[analytics.Seat]analytics.Presence{}
	for day, installs := range t.Seats() {
		for chunk := range slices.Chunk(installs, rowsAtOnce) {
			if err := readInstalls(ctx, tx, project, day, chunk, seated); err != nil {
				return fmt.Errorf("reading installs: %w", err)
			}
		}
	}
	if err := upsertInstalls(ctx, tx, project, t.Seated(seated)); err != nil {
		return fmt.Errorf("storing installs: %w", err)
	}
	known, err := readSlots(ctx, tx, project, t.Moments())
	if err != nil {
		return fmt.Errorf("reading names: %w", err)
	}
	return addSums(ctx, tx, project, t.Sums(known))
}

func readInstalls(ctx context.Context, tx *sql.Tx, project, day int64, installs []analytics.Install, into map[analytics.Seat]analytics.Presence) error {
	args := append(make([]any, 0, len(installs)+2), project, day)
	for i := range installs {
		args = append(args, installs[i][:])
	}
	rows, err := tx.QueryContext(ctx, `SELECT hash, hours, weight FROM analytics_installs WHERE project = $1 AND day = $2 AND hash IN `+
		list(len(installs), 3), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	var raw sql.RawBytes
	for rows.Next() {
		var p analytics.Presence
		if err := rows.Scan(&raw, &p.Hours, &p.Weight); err != nil {
			return err
		}
		into[analytics.Seat{Day: day, Hash: analytics.Install(raw)}] = p
	}
	return rows.Err()
}

func upsertInstalls(ctx context.Context, tx *sql.Tx, project int64, changed map[analytics.Seat]analytics.Presence) error {
	for chunk := range slices.Chunk(slices.Collect(maps.Keys(changed)), rowsAtOnce) {
		args := append(make([]any, 0, 4*len(chunk)+1), project)
		for i := range chunk {
			p := changed[chunk[i]]
			args = append(args, chunk[i].Day, chunk[i].Hash[:], p.Hours, p.Weight)
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO analytics_installs (project, day, hash, hours, weight) VALUES `+tuples(len(chunk), 4, "$1")+
			` ON CONFLICT (project, day, hash) DO UPDATE SET hours = excluded.hours, weight = excluded.weight`, args...)
		if err != nil {
			return err
		}
	}
	return nil
}

// readSlots gives what names the hours and days have.
func readSlots(ctx context.Context, tx *sql.Tx, project int64, moments []analytics.Moment) (known []analytics.Slot, err error) {
	of := map[analytics.Span][]any{}
	for _, m := range moments {
		of[m.Span] = append(of[m.Span], m.At)
	}
	for span, at := range of {
		rows, err := tx.QueryContext(ctx, `SELECT at, kind, name FROM analytics_sums WHERE project = $1 AND span = $2 AND at IN `+list(len(at), 3),
			append([]any{project, int64(span)}, at...)...)
		if err != nil {
			return nil, err
		}
		if known, err = appendSlots(known, span, rows); err != nil {
			return nil, err
		}
	}
	return known, nil
}

func appendSlots(known []analytics.Slot, span analytics.Span, rows *sql.Rows) ([]analytics.Slot, error) {
	defer rows.Close()
	for rows.Next() {
		slot := analytics.Slot{Moment: analytics.Moment{Span: span}}
		if err := rows.Scan(&slot.At, &slot.Kind, &slot.Name); err != nil {
			return nil, err
		}
		known = append(known, slot)
	}
	return known, rows.Err()
}

// addSums adds to the stored sums, in the order given.
func addSums(ctx context.Context, tx *sql.Tx, project int64, sums []analytics.Sum) error {
	for chunk := range slices.Chunk(sums, rowsAtOnce) {
		args := append(make([]any, 0, 5*len(chunk)+1), project)
		for _, s := range chunk {
			args = append(args, int64(s.Span), s.At, int64(s.Kind), s.Name, s.N)
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO analytics_sums (project, span, at, kind, name, n) VALUES `+tuples(len(chunk), 5, "$1")+
			` ON CONFLICT (project, span, at, kind, name) DO UPDATE SET n = analytics_sums.n + excluded.n`, args...)
		if err != nil {
			return fmt.Errorf("adding to sums: %w", err)
		}
	}
	return nil
}
