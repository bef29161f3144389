package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/service-dev/service/backend/internal/analytics"
)

// AnalyticsSalt returns the salt of a day, and creates it if necessary.
func (s *Store) AnalyticsSalt(ctx context.Context, day int64, fresh []byte) (salt []byte, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		err := execTx(ctx, tx, "insert salt",
			`INSERT INTO analytics_salts (day, salt) VALUES ($1, $2) ON CONFLICT (day) DO NOTHING`, day, fresh)
		if err != nil {
			return err
		}
		salt, err = queryValue[[]byte](ctx, tx, `SELECT salt FROM analytics_salts WHERE day = $1`, day)
		return err
	})
	return salt, err
}

// CountAnalytics counts batches in one transaction, project by project.
func (s *Store) CountAnalytics(ctx context.Context, batches []analytics.Batch) ([]analytics.Outcome, error) {
	// The order is fixed, so that two writers cannot deadlock over projects.
	order := sortedIndex(batches, compareProjects)
	outcomes := make([]analytics.Outcome, len(batches))
	return outcomes, s.write(ctx, func(tx *sql.Tx) error {
		for group := range groups(order, batches, compareProjects) {
			own := make([]analytics.Batch, len(group))
			for i, at := range group {
				own[i] = batches[at]
			}
			got, err := countProject(ctx, tx, own)
			if err != nil {
				return err
			}
			for i, at := range group {
				outcomes[at] = got[i]
			}
		}
		return nil
	})
}

func compareProjects(a, b *analytics.Batch) int {
	return cmp.Or(strings.Compare(a.Account, b.Account), strings.Compare(a.Project, b.Project))
}

// countProject counts the batches of one project.
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
	outcomes, err := analytics.Aggregate(ctx, &analyticsRows{tx: tx, project: project, day: day}, batches, used)
	if err != nil {
		return nil, err
	}
	accepted := 0
	for _, o := range outcomes {
		accepted += o.Accepted
	}
	if accepted == 0 {
		return outcomes, nil
	}
	return outcomes, execTx(ctx, tx, "count for the quota",
		`UPDATE analytics_projects SET used_day = $2, used = $3 WHERE id = $1`, project, usedDay, used+int64(accepted))
}

// lockAnalytics returns the number of a project, which it assigns if necessary, and locks the project's row until the
// transaction ends.
func lockAnalytics(ctx context.Context, tx *sql.Tx, account, project string) (id, usedDay, used int64, err error) {
	for range 20 { // two concurrent transactions may choose the same number; the later one then tries the next
		err = tx.QueryRowContext(ctx, `UPDATE analytics_projects SET used = used WHERE account_id = $1 AND app_id = $2
			RETURNING id, used_day, used`, account, project).Scan(&id, &usedDay, &used)
		if !errors.Is(err, sql.ErrNoRows) {
			break
		}
		known, err := hasRow(ctx, tx, `SELECT 1 FROM projects WHERE account_id = $1 AND app_id = $2`, account, project)
		if err != nil {
			return 0, 0, 0, fmt.Errorf("read project: %w", err)
		}
		if !known {
			return 0, 0, 0, analytics.ErrNoProject
		}
		err = execTx(ctx, tx, "number project", `INSERT INTO analytics_projects (id, account_id, app_id, used_day, used)
			SELECT COALESCE(MAX(id), 0) + 1, $1, $2, 0, 0 FROM analytics_projects WHERE true
			ON CONFLICT DO NOTHING`, account, project)
		if err != nil {
			return 0, 0, 0, err
		}
	}
	if err != nil {
		return 0, 0, 0, fmt.Errorf("lock the project's analytics: %w", err)
	}
	return id, usedDay, used, nil
}

// analyticsRows implements analytics.Rows for a locked project in a transaction.
type analyticsRows struct {
	tx      *sql.Tx
	project int64
	day     int64 // day of arrival
}

// rowsAtOnce limits the parameters of one statement (SQLite accepts 32766).
const rowsAtOnce = 1000

func (r *analyticsRows) InsertSeen(ctx context.Context, ids []analytics.Key) (fresh []analytics.Key, err error) {
	for chunk := range slices.Chunk(ids, rowsAtOnce) {
		args := append(make([]any, 0, len(chunk)+2), r.project, r.day)
		for i := range chunk {
			args = append(args, chunk[i][:])
		}
		var hash sql.RawBytes
		err := queryEach(ctx, r.tx, func(row scanner) error {
			err := row.Scan(&hash)
			if err == nil {
				fresh = append(fresh, analytics.Key(hash))
			}
			return err
		}, `INSERT INTO analytics_seen (project, day, hash) VALUES `+tuples(len(chunk), 1, "$1", "$2")+
			` ON CONFLICT (project, hash) DO NOTHING RETURNING hash`, args...)
		if err != nil {
			return nil, fmt.Errorf("insert event ids: %w", err)
		}
	}
	return fresh, nil
}

func (r *analyticsRows) ActiveHours(
	ctx context.Context, installs []analytics.InstallDay,
) (map[analytics.InstallDay]analytics.ActiveHours, error) {
	byDay := map[int64][]any{}
	for i := range installs {
		byDay[installs[i].Day] = append(byDay[installs[i].Day], installs[i].Hash[:])
	}
	stored := map[analytics.InstallDay]analytics.ActiveHours{}
	for day, hashes := range byDay {
		for chunk := range slices.Chunk(hashes, rowsAtOnce) {
			var hash sql.RawBytes
			var a analytics.ActiveHours
			err := queryEach(ctx, r.tx, func(row scanner) error {
				err := row.Scan(&hash, &a.Hours, &a.Weight)
				if err == nil {
					stored[analytics.InstallDay{Day: day, Hash: analytics.Install(hash)}] = a
				}
				return err
			}, `SELECT hash, hours, weight FROM analytics_installs WHERE project = $1 AND day = $2 AND hash IN `+
				placeholders(len(chunk), 3), append([]any{r.project, day}, chunk...)...)
			if err != nil {
				return nil, fmt.Errorf("read installs: %w", err)
			}
		}
	}
	return stored, nil
}

func (r *analyticsRows) SetActiveHours(
	ctx context.Context, active map[analytics.InstallDay]analytics.ActiveHours,
) error {
	rows := make([][]any, 0, len(active))
	for install, a := range active {
		rows = append(rows, []any{install.Day, install.Hash[:], a.Hours, a.Weight})
	}
	return r.upsert(ctx, "store installs", `analytics_installs (project, day, hash, hours, weight)`,
		`(project, day, hash) DO UPDATE SET hours = excluded.hours, weight = excluded.weight`, rows)
}

// upsert inserts rows of the project, given without their project column, and resolves conflicts with onConflict.
func (r *analyticsRows) upsert(ctx context.Context, purpose, into, onConflict string, rows [][]any) error {
	for chunk := range slices.Chunk(rows, rowsAtOnce) {
		args := append([]any{r.project}, slices.Concat(chunk...)...)
		values := tuples(len(chunk), len(chunk[0]), "$1")
		//nolint:gosec // constants and placeholders
		statement := "INSERT INTO " + into + " VALUES " + values + " ON CONFLICT " + onConflict
		if err := execTx(ctx, r.tx, purpose, statement, args...); err != nil {
			return err
		}
	}
	return nil
}

func (r *analyticsRows) CounterKeys(
	ctx context.Context, periods []analytics.Period,
) (known []analytics.CounterKey, err error) {
	bySpan := map[analytics.Span][]any{}
	for _, p := range periods {
		bySpan[p.Span] = append(bySpan[p.Span], p.At)
	}
	for span, at := range bySpan {
		keys, err := queryAll(ctx, r.tx, func(row scanner) (analytics.CounterKey, error) {
			key := analytics.CounterKey{Period: analytics.Period{Span: span}}
			err := row.Scan(&key.At, &key.Kind, &key.Name, &key.Slice.Version, &key.Slice.Platform)
			return key, err
		}, `SELECT at, kind, name, '', '' FROM analytics_sums WHERE project = $1 AND span = $2 AND at IN `+
			placeholders(len(at), 3)+`
			UNION ALL SELECT at, kind, name, version, platform FROM analytics_slices
			WHERE project = $1 AND span = $2 AND at IN `+placeholders(len(at), 3),
			append([]any{r.project, int64(span)}, at...)...)
		if err != nil {
			return nil, fmt.Errorf("read counters: %w", err)
		}
		known = append(known, keys...)
	}
	return known, nil
}

func (r *analyticsRows) AddToCounters(ctx context.Context, deltas []analytics.Counter) error {
	var whole, sliced [][]any
	for _, c := range deltas {
		if c.Slice == (analytics.Slice{}) {
			whole = append(whole, []any{int64(c.Span), c.At, int64(c.Kind), c.Name, c.N})
			continue
		}
		sliced = append(sliced, []any{int64(c.Span), c.At, int64(c.Kind), c.Slice.Version, c.Slice.Platform, c.Name, c.N})
	}
	err := r.upsert(ctx, "add to counters", `analytics_sums (project, span, at, kind, name, n)`,
		`(project, span, at, kind, name) DO UPDATE SET n = analytics_sums.n + excluded.n`, whole)
	if err != nil {
		return err
	}
	return r.upsert(ctx, "add to counters by version and platform",
		`analytics_slices (project, span, at, kind, version, platform, name, n)`,
		`(project, span, at, kind, version, platform, name) DO UPDATE SET n = analytics_slices.n + excluded.n`, sliced)
}

// tuples returns n rows of placeholders, each with the fixed ones followed by numbered ones: "($1,$2,$3),($1,$2,$4)".
func tuples(n, numbered int, fixed ...string) string {
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
		for j := range numbered {
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

// placeholders returns n placeholders numbered from first, for example "($3,$4,$5)".
func placeholders(n, first int) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = "$" + strconv.Itoa(first+i)
	}
	return "(" + strings.Join(parts, ",") + ")"
}

// sortedIndex returns the indices of all in sorted order. The sort is stable.
func sortedIndex[T any](all []T, compare func(a, b *T) int) []int {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return compare(&all[a], &all[b]) })
	return order
}

// groups splits order into runs of indices whose elements are equal, and yields each run.
func groups[T any](order []int, all []T, compare func(a, b *T) int) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		for start, end := 0, 0; start < len(order); start = end {
			for end < len(order) && compare(&all[order[start]], &all[order[end]]) == 0 {
				end++
			}
			if !yield(order[start:end]) {
				return
			}
		}
	}
}
