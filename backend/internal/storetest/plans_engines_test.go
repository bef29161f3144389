package storetest

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/test/crowd"
	"github.com/service-dev/service/test/enginetest"
)

// create creates the database on which statements are explained. SQLite plans without statistics, because the
// store never runs ANALYZE, so an empty database is enough. PostgreSQL plans with the statistics of a filled database.
func (p *planCheck) create(t *testing.T, engine string) *sql.DB {
	t.Helper()
	ctx := context.Background() // the test's context has ended
	migrate := func(address string) {
		fatal(t, must(db.Open(ctx, address, slog.New(slog.DiscardHandler)))(t).Close())
	}
	if engine == "sqlite" {
		p.directory = must(os.MkdirTemp("", "plans"))(t)
		file := filepath.Join(p.directory, "service.db")
		migrate(file)
		return must(sql.Open("sqlite", file))(t)
	}
	address := must(enginetest.Postgres(t).Create())(t)
	migrate(address)
	db := must(sql.Open("pgx", address+"&default_query_exec_mode=exec"))(t)
	fatal(t, crowd.AddPeople(ctx, db, 1, 2000, crowd.Ordinary()))
	_ = must(db.Exec("ANALYZE"))(t)
	return db
}

// owners are columns that identify a row, or an owner with few rows: an account, a project or a session.
var owners = []string{
	"id", "rowid", "hash", "account_id", "session_id", "install_id", "project", "alias", "email", "book", "debit", "credit",
	"key", "device_hash", "user_hash", "token_hash", "address_hash", "network_hash", "install_hash", "credential_id",
	"challenge", "page_id", "subject", "link_id",
}

var (
	placeholder  = regexp.MustCompile(`\$(\d+)`)
	searchLine   = regexp.MustCompile(`^SEARCH (\S+)(?: .*?)?\((.*)\)`)
	sqliteEquals = regexp.MustCompile(`(\w+)=\?`)
	valueRows    = regexp.MustCompile(`^(CONSTANT ROW|\d+-ROW VALUES CLAUSE)`)
	aliasInQuery = regexp.MustCompile(`(?i)\b(?:FROM|JOIN|INTO|UPDATE)\s+(\w+)(?:\s+(?:AS\s+)?(\w+))?`)
)

// deletesDue matches a statement that deletes every row found with an index on a time, and so reads no row twice.
var deletesDue = regexp.MustCompile(`^DELETE FROM \w+ WHERE (expires_at|at|until|spent_until|hour|day|period) <=? \$1$`)

// explainSQLite returns the faults of a statement's plan.
func explainSQLite(conn *sql.Conn, text string) (faults []string, err error) {
	parameters := 0
	for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
		var n int
		_, _ = fmt.Sscan(m[1], &n)
		parameters = max(parameters, n)
	}
	rows, err := conn.QueryContext(context.Background(), "EXPLAIN QUERY PLAN "+text, make([]any, parameters)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	tables := map[string]string{}
	for _, m := range aliasInQuery.FindAllStringSubmatch(text, -1) {
		tables[m[1]], tables[m[2]] = m[1], m[1]
	}
	var sorts, shared []string
	derived := map[string]bool{}
	for rows.Next() {
		var id, parent, unused int
		var line string
		if err := rows.Scan(&id, &parent, &unused, &line); err != nil {
			return nil, err
		}
		word, rest, _ := strings.Cut(line, " ")
		name, _, _ := strings.Cut(rest, " ")
		switch m := searchLine.FindStringSubmatch(line); {
		case word == "MATERIALIZE" || word == "CO-ROUTINE":
			derived[rest] = true
		case word == "SCAN" && !derived[name] && !derived[rest] && !isSmall(tables[name]) && !valueRows.MatchString(rest):
			faults = append(faults, "reads all of "+rest)
		case m != nil && !derived[m[1]] && !isSmall(tables[m[1]]) && !anyOwner(sqliteEquals, m[2]) &&
			!deletesDue.MatchString(text):
			shared = append(shared, "reads rows of "+m[1]+" of many accounts ("+m[2]+")")
		case strings.HasPrefix(line, "USE TEMP B-TREE FOR ORDER BY"):
			sorts = append(sorts, "sorts rows of many accounts")
		}
	}
	faults = append(faults, shared...)
	if len(faults) > 0 {
		faults = append(faults, sorts...)
	}
	return faults, rows.Err()
}

func anyOwner(equals *regexp.Regexp, condition string) bool {
	return slices.ContainsFunc(equals.FindAllStringSubmatch(condition, -1), func(m []string) bool {
		return slices.Contains(owners, m[1])
	})
}

// explainPostgres returns the faults of the plan that PostgreSQL uses for any parameters, if it avoids sequential
// scans.
func explainPostgres(conn *sql.Conn, text string) (faults []string, err error) {
	ctx := context.Background()
	for _, s := range []string{"SET enable_seqscan = off", "SET plan_cache_mode = force_generic_plan", "DEALLOCATE ALL",
		"PREPARE examined AS " + text} {
		if _, err := conn.ExecContext(ctx, s); err != nil {
			return nil, err
		}
	}
	var parameters int
	err = conn.QueryRowContext(ctx, `SELECT COALESCE(ARRAY_LENGTH(parameter_types, 1), 0) FROM pg_prepared_statements
		WHERE name = 'examined'`).Scan(&parameters)
	if err != nil {
		return nil, err
	}
	execute := "EXPLAIN (FORMAT JSON) EXECUTE examined"
	if parameters > 0 {
		execute += "(" + strings.TrimSuffix(strings.Repeat("NULL,", parameters), ",") + ")"
	}
	var plan []byte
	if err := conn.QueryRowContext(ctx, execute).Scan(&plan); err != nil {
		return nil, err
	}
	var explained []struct{ Plan planNode }
	if err := json.Unmarshal(plan, &explained); err != nil {
		return nil, err
	}
	return explained[0].Plan.faults("", deletesDue.MatchString(text)), nil
}

// planNode is a node of a plan of PostgreSQL.
type planNode struct {
	Type      string `json:"Node Type"`
	Table     string `json:"Relation Name"`
	Condition string `json:"Index Cond"`
	Plans     []planNode
}

var postgresEquals = regexp.MustCompile(`(\w+)\)?(?:::\w+)? = `)

// faults returns the faults of a node and its children. table is the table of the parent, which reads the heap for an
// index scan. due reports whether the statement deletes the rows found by a condition on a time.
func (n planNode) faults(table string, due bool) (found []string) {
	if n.Table != "" {
		table = n.Table
	}
	for _, child := range n.Plans {
		found = append(found, child.faults(table, due)...)
	}
	scans := slices.Contains([]string{"Index Scan", "Index Only Scan", "Bitmap Index Scan"}, n.Type)
	switch {
	case isSmall(table):
	case n.Type == "Seq Scan":
		found = append(found, "reads all of "+table)
	case scans && n.Condition == "":
		found = append(found, "reads a whole index of "+table)
	case scans && !anyOwner(postgresEquals, n.Condition) && !due:
		found = append(found, "reads rows of "+table+" of many accounts "+n.Condition)
	case n.Type == "Sort" && len(found) > 0:
		found = append(found, "sorts rows of many accounts")
	}
	return found
}

func isSmall(table string) bool { return smallTables[table] != "" }
