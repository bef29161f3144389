package analytics

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/service-dev/service/backend/internal/db"
)

// Store stores analytics. Every method is atomic.
type Store struct{ *db.DB }

// NewStore returns a store in d.
func NewStore(d *db.DB) *Store { return &Store{d} }

// AnalyticsSalt returns the salt of a day (days since 1970, UTC). If the day has no salt yet, it stores and returns
// fresh.
func (s *Store) AnalyticsSalt(ctx context.Context, day int64, fresh []byte) (salt []byte, err error) {
	err = s.Write(ctx, func(tx *sql.Tx) error {
		err := db.Exec(ctx, tx, "insert salt",
			`INSERT INTO analytics_salts (day, salt) VALUES ($1, $2) ON CONFLICT (day) DO NOTHING`, day, fresh)
		if err != nil {
			return err
		}
		salt, err = db.QueryValue[[]byte](ctx, tx, `SELECT salt FROM analytics_salts WHERE day = $1`, day)
		return err
	})
	return salt, err
}

// CountAnalytics counts batches with aggregate in one transaction, and returns the outcome of each.
func (s *Store) CountAnalytics(ctx context.Context, batches []Batch) ([]Outcome, error) {
	// The order is fixed, so that two writers cannot deadlock over projects.
	projects := db.Groups(batches, compareProjects)
	outcomes := make([]Outcome, len(batches))
	return outcomes, s.Write(ctx, func(tx *sql.Tx) error {
		for group := range projects {
			own := make([]Batch, len(group))
			for i, at := range group {
				own[i] = batches[at]
			}
			got, err := countProject(ctx, tx, own, s.Bulk(tx))
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

func compareProjects(a, b *Batch) int {
	return cmp.Or(strings.Compare(a.Account, b.Account), strings.Compare(a.Project, b.Project))
}

// countProject counts the batches of one project.
func countProject(
	ctx context.Context, tx *sql.Tx, batches []Batch, rows db.Bulk,
) ([]Outcome, error) {
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
	outcomes, err := aggregate(ctx, &projectRows{rows, project, day}, batches, used)
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
	return outcomes, db.Exec(ctx, tx, "count for the quota",
		`UPDATE analytics_projects SET used_day = $2, used = $3 WHERE id = $1`, project, usedDay, used+int64(accepted))
}

// lockAnalytics locks the project's row until the transaction ends and returns the project's number, which it assigns
// if necessary.
func lockAnalytics(ctx context.Context, tx *sql.Tx, account, project string) (id, usedDay, used int64, err error) {
	for range 20 { // two concurrent transactions may choose the same number; the later one then tries the next
		err = tx.QueryRowContext(ctx, `UPDATE analytics_projects SET used = used WHERE account_id = $1 AND app_id = $2
			RETURNING id, used_day, used`, account, project).Scan(&id, &usedDay, &used)
		if !errors.Is(err, sql.ErrNoRows) {
			break
		}
		known, err := db.Exists(ctx, tx, `SELECT 1 FROM projects WHERE account_id = $1 AND app_id = $2`, account, project)
		if err != nil {
			return 0, 0, 0, fmt.Errorf("read project: %w", err)
		}
		if !known {
			return 0, 0, 0, ErrNoProject
		}
		err = db.Exec(ctx, tx, "number project", `INSERT INTO analytics_projects (id, account_id, app_id, used_day, used)
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

// projectRows are the rows of a project that is locked in a transaction.
type projectRows struct {
	db.Bulk
	project int64
	day     int64 // day of arrival
}

// insertSeen stores event IDs, which must be sorted and unique, and reports for each whether it was new. The caller
// must hold the project's lock, so that no other transaction inserts its IDs meanwhile.
func (r *projectRows) insertSeen(ctx context.Context, ids []Key) (fresh []bool, err error) {
	const purpose, table = "insert event ids", "analytics_seen"
	fresh = make([]bool, len(ids))
	project, day := db.Col("project", r.project), db.Col("day", r.day)
	if !r.Postgres {
		inserted, err := r.InsertEach(ctx, purpose, table, " ON CONFLICT (project, hash) DO NOTHING", len(ids),
			project, day, hashColumn(ids))
		for _, i := range inserted {
			fresh[i] = true
		}
		return fresh, err
	}
	// Few IDs are already stored. Looking for them first is cheaper than ON CONFLICT, for which PostgreSQL writes
	// every row twice.
	known := make([]bool, len(ids))
	err = r.Read(ctx, "read event ids", "1", table, func(row db.Row) error {
		var i, one int
		err := row.Scan(&i, &one)
		known[i] = true
		return err
	}, len(ids), project, hashColumn(ids))
	if err != nil {
		return nil, err
	}
	unknown := make([]Key, 0, len(ids))
	for i := range ids {
		if fresh[i] = !known[i]; fresh[i] {
			unknown = append(unknown, ids[i])
		}
	}
	_, err = r.Insert(ctx, purpose, table, "", len(unknown), project, day, hashColumn(unknown))
	return fresh, err
}

func hashColumn[H ~[16]byte](hashes []H) db.Column {
	values := make([][]byte, len(hashes))
	for i := range hashes {
		values[i] = hashes[i][:]
	}
	return db.Col("hash", values)
}

// activeHours returns the stored hours of the installs.
func (r *projectRows) activeHours(
	ctx context.Context, installs []InstallDay,
) (map[InstallDay]ActiveHours, error) {
	days, hashes := make([]int64, len(installs)), make([]Install, len(installs))
	for i := range installs {
		days[i], hashes[i] = installs[i].Day, installs[i].Hash
	}
	stored := map[InstallDay]ActiveHours{}
	return stored, r.Read(ctx, "read installs", "hours, weight", "analytics_installs", func(row db.Row) error {
		var i int
		var a ActiveHours
		err := row.Scan(&i, &a.Hours, &a.Weight)
		stored[installs[i]] = a
		return err
	}, len(installs), db.Col("project", r.project), db.Col("day", days), hashColumn(hashes))
}

// setActiveHours inserts or replaces rows.
func (r *projectRows) setActiveHours(
	ctx context.Context, active map[InstallDay]ActiveHours,
) error {
	var days, hours, weights []int64
	var hashes []Install
	for install, a := range active {
		days, hashes = append(days, install.Day), append(hashes, install.Hash)
		hours, weights = append(hours, a.Hours), append(weights, a.Weight)
	}
	_, err := r.Insert(ctx, "store installs", "analytics_installs",
		` ON CONFLICT (project, day, hash) DO UPDATE SET hours = excluded.hours, weight = excluded.weight`, len(days),
		db.Col("project", r.project), db.Col("day", days), hashColumn(hashes), db.Col("hours", hours),
		db.Col("weight", weights))
	return err
}

// Tables of counters: for the whole app, and for its versions and platforms.
const (
	sumsTable   = "analytics_sums"
	slicesTable = "analytics_slices"
)

var counterTables = []string{sumsTable, slicesTable}

// counterColumns returns the key columns of the counters in a table, and the values of n.
func (r *projectRows) counterColumns(table string, counters []Counter) (key []db.Column, n []int64) {
	var spans, ats, kinds []int64
	var names, versions, platforms []string
	for _, c := range counters {
		spans, ats, kinds = append(spans, int64(c.Span)), append(ats, c.At), append(kinds, int64(c.Kind))
		names, n = append(names, c.Name), append(n, c.N)
		versions, platforms = append(versions, c.Slice.Version), append(platforms, c.Slice.Platform)
	}
	key = []db.Column{db.Col("project", r.project), db.Col("span", spans), db.Col("at", ats), db.Col("kind", kinds)}
	if table == slicesTable {
		key = append(key, db.Col("version", versions), db.Col("platform", platforms))
	}
	return append(key, db.Col("name", names)), n
}

// splitCounters returns the counters of each table, in the order of counters.
func splitCounters(counters []Counter) map[string][]Counter {
	byTable := map[string][]Counter{}
	for _, c := range counters {
		table := slicesTable
		if c.Slice == (Slice{}) {
			table = sumsTable
		}
		byTable[table] = append(byTable[table], c)
	}
	return byTable
}

// addToCounters adds the deltas of counters that exist. It passes the remaining deltas, in order, to fit, together with
// the keys of all counters of the same periods. It then adds the deltas returned by fit, and creates counters as
// needed.
func (r *projectRows) addToCounters(
	ctx context.Context, deltas []Counter,
	fit func(added []Counter, known []CounterKey) []Counter,
) error {
	var added []Counter
	byTable := splitCounters(deltas)
	for _, table := range counterTables {
		counters := byTable[table]
		if len(counters) == 0 {
			continue
		}
		key, n := r.counterColumns(table, counters)
		missing, err := r.AddTo(ctx, "add to counters", table, n, key...)
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
		_, err := r.Insert(ctx, "insert counters", table, " ON CONFLICT ("+db.ColumnNames("", key)+") DO UPDATE SET n = "+table+
			".n + excluded.n", len(counters), append(key, db.Col("n", n))...)
		if err != nil {
			return err
		}
	}
	return nil
}

// counterKeys returns the keys of all counters that exist in the periods of counters.
func (r *projectRows) counterKeys(
	ctx context.Context, some []Counter,
) (known []CounterKey, err error) {
	var periods []Period
	var spans, ats []int64
	for i := range some {
		if p := some[i].Period; !slices.Contains(periods, p) {
			periods, spans, ats = append(periods, p), append(spans, int64(p.Span)), append(ats, p.At)
		}
	}
	for table, selected := range map[string]string{
		sumsTable: "kind, name, '', ''", slicesTable: "kind, name, version, platform",
	} {
		err := r.Read(ctx, "read counters", selected, table, func(row db.Row) error {
			var i int
			var key CounterKey
			err := row.Scan(&i, &key.Kind, &key.Name, &key.Slice.Version, &key.Slice.Platform)
			key.Period = periods[i]
			known = append(known, key)
			return err
		}, len(periods), db.Col("project", r.project), db.Col("span", spans), db.Col("at", ats))
		if err != nil {
			return nil, err
		}
	}
	return known, nil
}
