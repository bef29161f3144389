package storetest

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/service-dev/service/test/enginetest"
)

// Query plans
//
// A statement must not become slower with the number of accounts. Every statement that the tests of this package run is
// therefore explained on a database with the store's schema, and the next test that ends fails if the plan reads a
// table without an index, reads a whole index, reads an index by a condition that many accounts share, or sorts rows of
// more than one account. Exceptions are listed in plans_allowed_test.go. TestMain checks that the tests run every
// statement.

// plans collects the statements of all tests.
var plans = &planCheck{
	statements: map[string]map[string]string{}, explained: map[string]bool{}, used: map[string]bool{},
	databases: map[string]*sql.DB{},
}

type planCheck struct {
	mu         sync.Mutex
	statements map[string]map[string]string // text by normalised text, by engine
	explained  map[string]bool              // by engine and normalised text
	used       map[string]bool              // exceptions, by fragment

	explaining sync.Mutex
	databases  map[string]*sql.DB // by engine
	directory  string             // of SQLite's database
}

// lists are the placeholders of statements whose length depends on the data.
var lists = regexp.MustCompile(`\$\d+(,\$\d+)+(\),\([$\d,]+)*`)

func engineOf(address string) string {
	if enginetest.IsPostgres(address) {
		return "postgres"
	}
	return "sqlite"
}

// observe returns a function that collects statements.
func (p *planCheck) observe(engine string) func(statement string) {
	return func(statement string) {
		text := strings.TrimSpace(statement)
		word, _, _ := strings.Cut(text, " ")
		if strings.HasSuffix(text, ";") { // part of a migration
			return
		}
		if !slices.Contains([]string{"SELECT", "INSERT", "UPDATE", "DELETE", "WITH"}, word) {
			return
		}
		key := lists.ReplaceAllString(text, "list")
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.statements[engine] == nil {
			p.statements[engine] = map[string]string{}
		}
		if _, ok := p.statements[engine][key]; !ok {
			p.statements[engine][key] = text
		}
	}
}

// check explains the statements collected since the last check.
func (p *planCheck) check(t *testing.T, address string) {
	t.Helper()
	p.explaining.Lock()
	defer p.explaining.Unlock()
	engine := engineOf(address)
	p.mu.Lock()
	all := maps.Clone(p.statements[engine])
	p.mu.Unlock()
	for key, text := range all {
		if p.explained[engine+key] || strings.Contains(text, "goose_db_version") || strings.Contains(text, "pg_catalog.") {
			continue
		}
		p.explained[engine+key] = true
		found, err := p.explain(t, engine, text)
		if err != nil {
			t.Errorf("explain on %s: %v\n%s", engine, err, text)
		}
		for _, fault := range found {
			if !p.allowed(text) {
				t.Errorf("on %s a statement %s. Add an index, rewrite it, or list it in plans_allowed_test.go:\n%s", engine,
					fault, text)
			}
		}
	}
}

func (p *planCheck) allowed(text string) bool {
	for _, a := range allowedPlans {
		if strings.Contains(spaces.ReplaceAllString(text, " "), a.statement) {
			p.used[a.statement] = true
			return true
		}
	}
	return false
}

var spaces = regexp.MustCompile(`\s+`)

// explain returns the faults of a statement's plan.
func (p *planCheck) explain(t *testing.T, engine, text string) ([]string, error) {
	db := p.databases[engine]
	if db == nil {
		db = p.create(t, engine)
		p.databases[engine] = db
	}
	// The test's context has ended when its cleanup runs.
	conn, err := db.Conn(context.Background())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if engine == "sqlite" {
		return explainSQLite(conn, text)
	}
	return explainPostgres(conn, text)
}

// finish closes the databases. If every test has run, it returns the faults of the collection.
func (p *planCheck) finish() (wrong []string) {
	for _, db := range p.databases {
		db.Close()
	}
	_ = os.RemoveAll(p.directory)
	if flag.Lookup("test.run").Value.String() != "" || flag.Lookup("test.skip").Value.String() != "" || testing.Short() ||
		len(p.databases) < 2 {
		return nil
	}
	for _, a := range allowedPlans {
		if !p.used[a.statement] {
			wrong = append(wrong, "the exception in plans_allowed_test.go is not needed: "+a.statement)
		}
	}
	var all []string
	for _, statements := range p.statements {
		all = append(all, slices.Collect(maps.Values(statements))...)
	}
	for _, literal := range storeStatements() {
		run := slices.ContainsFunc(all, func(text string) bool { return strings.Contains(text, literal) })
		if !run && !slices.Contains(notExamined, spaces.ReplaceAllString(literal, " ")) {
			wrong = append(wrong, "no test of storetest runs this statement, so its plan is unknown:\n"+literal)
		}
	}
	return wrong
}

var beginsStatement = regexp.MustCompile(`^(SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH) \S`)

// storeStatements returns the string literals of the backend that begin a statement, up to their first verb of fmt.
func storeStatements() (all []string) {
	names, _ := filepath.Glob("../*/*.go")
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") || strings.Contains(name, "dbtest") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			return []string{err.Error()}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				text, _ := strconv.Unquote(lit.Value)
				if text = strings.TrimSpace(text); beginsStatement.MatchString(text) {
					before, _, _ := strings.Cut(text, "%s")
					all = append(all, strings.TrimSpace(before))
				}
			}
			return true
		})
	}
	return all
}

// reportPlans prints the result of finish, and returns the exit code.
func reportPlans(code int) int {
	for _, wrong := range plans.finish() {
		fmt.Fprintln(os.Stderr, wrong)
		code = max(code, 1)
	}
	return code
}
