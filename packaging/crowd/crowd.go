// Package crowd fills a backend's database with people and what they leave behind: links, projects, sessions, events,
// reports and audit entries. Tests of query plans and the benchmark of growth use it. It writes the tables directly,
// because a million sign-ups would take days.
package crowd

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Amounts are the numbers of rows that one person owns. Keys, Counters and Seen are for each project, Events for each
// session.
type Amounts struct {
	Links, Projects, Keys, Counters, Seen, Sessions, Events, Audit, Calls, Telemetry int
}

// Ordinary is what a person with a few apps owns after some weeks.
func Ordinary() Amounts {
	return Amounts{Links: 3, Projects: 2, Keys: 1, Counters: 2, Seen: 1, Sessions: 2, Events: 3, Audit: 4, Calls: 2,
		Telemetry: 2}
}

// Heavy is what one of the most active people owns after a year.
func Heavy() Amounts {
	return Amounts{Links: 40, Projects: 60, Keys: 3, Counters: 60, Seen: 50, Sessions: 2000, Events: 25, Audit: 10_000,
		Calls: 2000, Telemetry: 2000}
}

// AddPeople adds people with numbers from first to last and what each owns.
func AddPeople(ctx context.Context, db *sql.DB, first, last int, each Amounts) error {
	if err := run(ctx, db, people, "true", max(last-first+1, 0), first, each); err != nil {
		return err
	}
	return fill(ctx, db, fmt.Sprintf("a.id LIKE 'crowd-%%' AND a.created_at >= %d AND a.created_at <= %d", first, last),
		each)
}

// AddTo adds to what an existing account owns.
func AddTo(ctx context.Context, db *sql.DB, email string, each Amounts) error {
	return fill(ctx, db, "a.email = '"+strings.ReplaceAll(email, "'", "''")+"'", each)
}

// fill runs the statements of every table for the accounts that a condition selects.
func fill(ctx context.Context, db *sql.DB, who string, each Amounts) error {
	for _, t := range slices.Concat(ofAccounts(each), ofProjects(each), ofSessions(each), history(each), rare()) {
		if err := run(ctx, db, t.statement, who, t.rows, 0, each); err != nil {
			return err
		}
	}
	return nil
}

func ago(days int) string { return fmt.Sprintf("a.created_at %% %d * 86400000", days) }

var insertInto = regexp.MustCompile(`INSERT INTO (\w+)`)

// run runs one statement: {who} selects the accounts, {n} is a table with the column i of 1 to rows, {now} is the time
// in milliseconds and {day} in days, and {agoN} is a number of milliseconds up to N days, which differs from person to
// person.
func run(ctx context.Context, db *sql.DB, statement, who string, rows, first int, each Amounts) error {
	if rows == 0 {
		return nil
	}
	now, bytes := time.Now(), "BLOB"
	if strings.Contains(fmt.Sprintf("%T", db.Driver()), "stdlib") { // pgx
		bytes = "BYTEA"
	}
	statement = strings.NewReplacer(
		"{ago29}", ago(29), "{ago80}", ago(80), "{ago390}", ago(390), "{who}", who, "{bytes}", bytes,
		"{first}", strconv.Itoa(first), "{events}", strconv.Itoa(each.Events),
		"{n}", "WITH RECURSIVE n(i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < "+
			strconv.Itoa(rows)+")",
		"{now}", strconv.FormatInt(now.UnixMilli(), 10), "{day}", strconv.FormatInt(now.Unix()/86400, 10),
	).Replace(statement)
	if _, err := db.ExecContext(ctx, statement); err != nil {
		return fmt.Errorf("fill %s: %w", insertInto.FindString(statement), err)
	}
	return nil
}
