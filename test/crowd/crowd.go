// Package crowd fills a backend's database with users and their data: links, projects, sessions, events, reports and
// audit entries. Tests of query plans and the growth benchmark use it. It writes to the tables directly, because a
// million sign-ups would take days.
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

// Amounts maps tables to the number of rows per user. The amounts of keys, counters and seen are per project, the
// amount of events is per session.
type Amounts map[string]int

// Ordinary returns the amounts of a user with a few apps after some weeks.
func Ordinary() Amounts {
	return Amounts{"links": 3, "projects": 2, "keys": 1, "counters": 2, "seen": 1, "sessions": 2, "events": 3, "audit": 4,
		"calls": 2, "telemetry": 2, "trail": 3}
}

// Heavy returns the amounts of one of the most active users after a year.
func Heavy() Amounts {
	return Amounts{"links": 40, "projects": 60, "keys": 3, "counters": 60, "seen": 50, "sessions": 2000, "events": 25,
		"audit": 10_000, "calls": 2000, "telemetry": 2000, "trail": 3}
}

// AddPeople adds the users with the numbers from first to last, and their data.
func AddPeople(ctx context.Context, db *sql.DB, first, last int, each Amounts) error {
	if err := run(ctx, db, people, "true", max(last-first+1, 0), first, each); err != nil {
		return err
	}
	return fill(ctx, db, fmt.Sprintf("a.id LIKE 'crowd-%%' AND a.created_at >= %d AND a.created_at <= %d", first, last),
		each)
}

// AddTo adds data to an existing account.
func AddTo(ctx context.Context, db *sql.DB, email string, each Amounts) error {
	return fill(ctx, db, "a.email = '"+strings.ReplaceAll(email, "'", "''")+"'", each)
}

// fill runs the statements of all tables for the accounts that a condition selects.
func fill(ctx context.Context, db *sql.DB, who string, each Amounts) error {
	for _, t := range slices.Concat(ofAccounts, ofProjects, ofSessions, history, rare()) {
		rows := 1
		if t.rows != "" {
			rows = each[t.rows]
		}
		if err := run(ctx, db, t.statement, who, rows, 0, each); err != nil {
			return err
		}
	}
	return nil
}

func ago(days int) string { return fmt.Sprintf("a.created_at %% %d * 86400000", days) }

var insertInto = regexp.MustCompile(`INSERT INTO (\w+)`)

// run runs one statement: {who} selects the accounts, {n} is a table with the column i of 1 to rows, {now} is the
// time in milliseconds and {day} in days, and {agoN} is a number of milliseconds up to N days, which differs between
// users.
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
		"{first}", strconv.Itoa(first), "{events}", strconv.Itoa(each["events"]),
		"{n}", "WITH RECURSIVE n(i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < "+
			strconv.Itoa(rows)+")",
		"{now}", strconv.FormatInt(now.UnixMilli(), 10), "{day}", strconv.FormatInt(now.Unix()/86400, 10),
	).Replace(statement)
	if _, err := db.ExecContext(ctx, statement); err != nil {
		return fmt.Errorf("fill %s: %w", insertInto.FindString(statement), err)
	}
	return nil
}
