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
			got, err := countProject(ctx, tx, own, s.batches == nil)
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
func countProject(
	ctx context.Context, tx *sql.Tx, batches []analytics.Batch, postgres bool,
) ([]analytics.Outcome, error) {
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
	outcomes, err := analytics.Aggregate(ctx, &analyticsRows{bulk{tx, postgres}, project, day}, batches, used)
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
	bulk
	project int64
	day     int64 // day of arrival
}

// InsertSeen relies on the project's lock: no other transaction inserts its IDs meanwhile.
func (r *analyticsRows) InsertSeen(ctx context.Context, ids []analytics.Key) (fresh []bool, err error) {
	const purpose, table = "insert event ids", "analytics_seen"
	fresh = make([]bool, len(ids))
	project, day := column{"project", r.project}, column{"day", r.day}
	if !r.postgres {
		inserted, err := r.insertEach(ctx, purpose, table, " ON CONFLICT (project, hash) DO NOTHING", len(ids),
			project, day, hashColumn(ids))
		for _, i := range inserted {
			fresh[i] = true
		}
		return fresh, err
	}
	// Few IDs are known. Looking for them first costs less than ON CONFLICT, for which PostgreSQL writes every row
	// twice.
	known := make([]bool, len(ids))
	err = r.read(ctx, "read event ids", "1", table, func(row scanner) error {
		var i, one int
		err := row.Scan(&i, &one)
		known[i] = true
		return err
	}, len(ids), project, hashColumn(ids))
	if err != nil {
		return nil, err
	}
	unknown := make([]analytics.Key, 0, len(ids))
	for i := range ids {
		if fresh[i] = !known[i]; fresh[i] {
			unknown = append(unknown, ids[i])
		}
	}
	return fresh, r.insert(ctx, purpose, table, "", len(unknown), project, day, hashColumn(unknown))
}

func hashColumn[H ~[16]byte](hashes []H) column {
	values := make([][]byte, len(hashes))
	for i := range hashes {
		values[i] = hashes[i][:]
	}
	return column{"hash", values}
}

func (r *analyticsRows) ActiveHours(
	ctx context.Context, installs []analytics.InstallDay,
) (map[analytics.InstallDay]analytics.ActiveHours, error) {
	days, hashes := make([]int64, len(installs)), make([]analytics.Install, len(installs))
	for i := range installs {
		days[i], hashes[i] = installs[i].Day, installs[i].Hash
	}
	stored := map[analytics.InstallDay]analytics.ActiveHours{}
	return stored, r.read(ctx, "read installs", "hours, weight", "analytics_installs", func(row scanner) error {
		var i int
		var a analytics.ActiveHours
		err := row.Scan(&i, &a.Hours, &a.Weight)
		stored[installs[i]] = a
		return err
	}, len(installs), column{"project", r.project}, column{"day", days}, hashColumn(hashes))
}

func (r *analyticsRows) SetActiveHours(
	ctx context.Context, active map[analytics.InstallDay]analytics.ActiveHours,
) error {
	var days, hours, weights []int64
	var hashes []analytics.Install
	for install, a := range active {
		days, hashes = append(days, install.Day), append(hashes, install.Hash)
		hours, weights = append(hours, a.Hours), append(weights, a.Weight)
	}
	return r.insert(ctx, "store installs", "analytics_installs",
		` ON CONFLICT (project, day, hash) DO UPDATE SET hours = excluded.hours, weight = excluded.weight`, len(days),
		column{"project", r.project}, column{"day", days}, hashColumn(hashes), column{"hours", hours},
		column{"weight", weights})
}

// Tables of counters: for the whole app, and for its versions and platforms.
const (
	sumsTable   = "analytics_sums"
	slicesTable = "analytics_slices"
)

var counterTables = []string{sumsTable, slicesTable}

// counterColumns returns the key columns of the counters in a table, and the values of n.
func (r *analyticsRows) counterColumns(table string, counters []analytics.Counter) (key []column, n []int64) {
	var spans, ats, kinds []int64
	var names, versions, platforms []string
	for _, c := range counters {
		spans, ats, kinds = append(spans, int64(c.Span)), append(ats, c.At), append(kinds, int64(c.Kind))
		names, n = append(names, c.Name), append(n, c.N)
		versions, platforms = append(versions, c.Slice.Version), append(platforms, c.Slice.Platform)
	}
	key = []column{{"project", r.project}, {"span", spans}, {"at", ats}, {"kind", kinds}}
	if table == slicesTable {
		key = append(key, column{"version", versions}, column{"platform", platforms})
	}
	return append(key, column{"name", names}), n
}

// splitCounters returns the counters of each table, in the given order.
func splitCounters(counters []analytics.Counter) map[string][]analytics.Counter {
	byTable := map[string][]analytics.Counter{}
	for _, c := range counters {
		table := slicesTable
		if c.Slice == (analytics.Slice{}) {
			table = sumsTable
		}
		byTable[table] = append(byTable[table], c)
	}
	return byTable
}

func (r *analyticsRows) AddToCounters(
	ctx context.Context, deltas []analytics.Counter,
	fit func(added []analytics.Counter, known []analytics.CounterKey) []analytics.Counter,
) error {
	var added []analytics.Counter
	byTable := splitCounters(deltas)
	for _, table := range counterTables {
		counters := byTable[table]
		if len(counters) == 0 {
			continue
		}
		key, n := r.counterColumns(table, counters)
		missing, err := r.addTo(ctx, "add to counters", table, n, key...)
		if err != nil {
			return err
		}
		for _, i := range missing {
			added = append(added, counters[i])
		}
	}
	if len(added) == 0 {
		return nil
	}
	known, err := r.counterKeys(ctx, added)
	if err != nil {
		return err
	}
	byTable = splitCounters(fit(added, known))
	for _, table := range counterTables {
		counters := byTable[table]
		key, n := r.counterColumns(table, counters)
		err := r.insert(ctx, "insert counters", table, " ON CONFLICT ("+names("", key)+") DO UPDATE SET n = "+table+
			".n + excluded.n", len(counters), append(key, column{"n", n})...)
		if err != nil {
			return err
		}
	}
	return nil
}

// counterKeys returns the keys of all counters that exist in the periods of the given counters.
func (r *analyticsRows) counterKeys(
	ctx context.Context, some []analytics.Counter,
) (known []analytics.CounterKey, err error) {
	var periods []analytics.Period
	var spans, ats []int64
	for i := range some {
		if p := some[i].Period; !slices.Contains(periods, p) {
			periods, spans, ats = append(periods, p), append(spans, int64(p.Span)), append(ats, p.At)
		}
	}
	for table, selected := range map[string]string{
		sumsTable: "kind, name, '', ''", slicesTable: "kind, name, version, platform",
	} {
		err := r.read(ctx, "read counters", selected, table, func(row scanner) error {
			var i int
			var key analytics.CounterKey
			err := row.Scan(&i, &key.Kind, &key.Name, &key.Slice.Version, &key.Slice.Platform)
			key.Period = periods[i]
			known = append(known, key)
			return err
		}, len(periods), column{"project", r.project}, column{"span", spans}, column{"at", ats})
		if err != nil {
			return nil, err
		}
	}
	return known, nil
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
