package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	_ "modernc.org/sqlite" // driver "sqlite"

	"github.com/service-dev/service/test/browser"
	"github.com/service-dev/service/test/crowd"
)

const (
	growthRuns = 15 // for each route and size
	heavyEmail = "heavy@example.org"
	heavyUser  = "heavy user, " // prefix of the names of the heavy user's routes
	// Maximum ratio between the times with the most and the fewest accounts. Every statement finds its rows in
	// B-trees, whose depth grows with the logarithm of their size: from one page to four between ten and a million
	// accounts. So a route that reads and changes a few rows may become a few times slower, but not more.
	flatRatio, logRatio = 1.5, 3
	// growthNoise is the largest difference that counts as none.
	growthNoise = time.Millisecond
)

// growth measures every route and page while the number of other accounts grows.
func (b *bench) growth() error {
	return onDatabases("growth", func(engine, database string, _ ...string) error {
		g := &growthBench{bench: b, engine: engine, database: database}
		if database == "" {
			g.database = filepath.Join(b.work, "growth.db")
			defer os.Remove(g.database)
		}
		if err := g.run(); err != nil {
			return fmt.Errorf("%s: %w", engine, err)
		}
		g.print()
		return nil
	})
}

// growthBench is a growing database and two of its users.
type growthBench struct {
	*bench
	engine, database string
	backend          *server
	people           map[string]*linked // by name: a user with a few apps, and a heavy user
	sizes            []int
	names            []string                   // routes in the order of the table
	times            map[string][]time.Duration // by route; one median per size
	notes            []string
}

func (g *growthBench) run() error {
	g.times = map[string][]time.Duration{}
	if err := g.signUp(); err != nil {
		return err
	}
	filled := 0
	for _, size := range []int{10, 1000, 100_000, 1_000_000} {
		if size > g.accounts {
			break
		}
		took, err := timed(func() error { return g.fill(filled+1, size) })
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%s: filled with %d accounts in %.0f s\n", g.engine, size, took.Seconds())
		filled, g.sizes = size, append(g.sizes, size)
		if err := g.measureAll(); err != nil {
			return fmt.Errorf("with %d accounts: %w", size, err)
		}
	}
	return nil
}

// start starts the backend on the database.
func (g *growthBench) start() (err error) {
	g.backend, err = g.startBackend(g.database, "SERVICE_BACKEND_CODES_PER_MINUTE=100000",
		"SERVICE_BACKEND_TRUSTED_PROXIES=127.0.0.1", "SERVICE_BACKEND_TELEMETRY_MAX_EVENTS=1000000000")
	if err != nil {
		return err
	}
	for _, who := range g.people {
		who.Base = g.backend.url
	}
	return nil
}

// signUp creates the two users, who exist at every size, and the data that they own.
func (g *growthBench) signUp() error {
	if err := g.start(); err != nil {
		return err
	}
	g.people = map[string]*linked{}
	for name, email := range map[string]string{"": benchEmail, heavyUser: heavyEmail} {
		who, err := browser.Link(g.backend.url, email, benchPassword)
		if err != nil {
			return err
		}
		g.people[name] = &linked{who}
	}
	g.backend.stop()
	db, err := g.open()
	if err != nil {
		return err
	}
	defer db.Close()
	if err := crowd.AddTo(context.Background(), db, benchEmail, crowd.Ordinary()); err != nil {
		return err
	}
	return crowd.AddTo(context.Background(), db, heavyEmail, crowd.Heavy())
}

// open opens the database for filling, without waiting for the disk and without checking references.
func (g *growthBench) open() (*sql.DB, error) {
	if strings.HasPrefix(g.database, "postgres:") {
		return sql.Open("pgx", g.database+"&session_replication_role=replica&synchronous_commit=off&work_mem=256MB")
	}
	db, err := sql.Open("sqlite", "file:"+g.database+"?_pragma=busy_timeout(60000)&_pragma=synchronous(0)"+
		"&_pragma=journal_mode(OFF)&_pragma=cache_size(-400000)")
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

func (g *growthBench) fill(first, last int) error {
	db, err := g.open()
	if err != nil {
		return err
	}
	defer db.Close()
	if err := crowd.AddPeople(context.Background(), db, first, last, crowd.Ordinary()); err != nil {
		return err
	}
	if g.engine == "PostgreSQL" {
		if _, err = db.Exec("VACUUM ANALYZE"); err != nil { // like autovacuum while accounts are added
			return err
		}
		_, err = db.Exec("CHECKPOINT")
		return err
	}
	if err := db.Close(); err != nil {
		return err
	}
	file, err := os.OpenFile(g.database, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	return file.Sync() // so that the server does not have to wait for it
}

// measureAll starts the backend and adds a median to each route.
func (g *growthBench) measureAll() error {
	took, err := timed(g.start)
	if err != nil {
		return err
	}
	defer g.backend.stop()
	g.add("start of the server", took)
	if took, err = g.firstSweeps(); err != nil {
		return err
	}
	g.add("first sweeps after the start, processor time", took)
	for _, name := range []string{"", heavyUser} {
		visits, err := g.visits(g.people[name], map[bool]string{true: benchEmail, false: heavyEmail}[name == ""])
		if err != nil {
			return err
		}
		for _, v := range visits {
			var all []time.Duration
			for run := range v.runs + 1 {
				into := &all
				if run == 0 { // warm-up
					into = nil
				}
				if err := measure(into, v.do); err != nil {
					return fmt.Errorf("%s: %w", v.name, err)
				}
			}
			g.add(name+v.name, median(all))
		}
	}
	g.notes = append(g.notes, fmt.Sprintf("%s accounts: database %s, server resident %s",
		thousands(g.sizes[len(g.sizes)-1]), g.databaseSize(), g.resident()))
	return nil
}

func (g *growthBench) add(route string, took time.Duration) {
	if _, ok := g.times[route]; !ok {
		g.names = append(g.names, route)
	}
	g.times[route] = append(g.times[route], took)
}

// sweepLimit limits the wait for the first sweeps.
const sweepLimit = 10 * time.Minute

// firstSweeps waits until the server and its database are idle, and returns the processor time that the server has
// used since its start.
func (g *growthBench) firstSweeps() (used time.Duration, err error) {
	late := time.Now().Add(sweepLimit)
	for last := -sweepLimit; ; last = used {
		time.Sleep(500 * time.Millisecond)
		if used, err = processorTime(g.backend.pid); err != nil {
			return 0, err
		}
		queries, err := g.queries()
		switch {
		case err != nil:
			return 0, err
		case used-last <= 20*time.Millisecond && queries == 0: // it always checks keys and holds
			return used, nil
		case time.Now().After(late):
			return 0, fmt.Errorf("the first sweeps take longer than %s", sweepLimit)
		}
	}
}

// queries returns the number of queries that PostgreSQL is running. With PostgreSQL, the database does most of the
// work of the sweeps.
func (g *growthBench) queries() (running int, err error) {
	if g.engine != "PostgreSQL" {
		return 0, nil
	}
	db, err := sql.Open("pgx", g.database)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	return running, db.QueryRow(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
		AND backend_type = 'client backend' AND state <> 'idle' AND pid <> pg_backend_pid()`).Scan(&running)
}

// processorTime returns the processor time that a process has used.
func processorTime(pid int) (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond, nil // in ticks, which Linux counts at 100 per second
}

func (g *growthBench) resident() string {
	rss, _, _ := memory(g.backend.pid)
	return mb(rss)
}

func (g *growthBench) databaseSize() string {
	query := "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
	if g.engine == "PostgreSQL" {
		query = "SELECT pg_database_size(current_database())"
	}
	db, err := sql.Open(map[bool]string{true: "pgx", false: "sqlite"}[g.engine == "PostgreSQL"], g.database)
	if err != nil {
		return err.Error()
	}
	defer db.Close()
	var size int64
	if err := db.QueryRow(query).Scan(&size); err != nil {
		return err.Error()
	}
	return mb(size / 1024)
}

// print prints the table for an engine.
func (g *growthBench) print() {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%s, accounts:", g.engine)
	for _, size := range g.sizes {
		fmt.Fprintf(t, "\t%s", thousands(size))
	}
	fmt.Fprintln(t, "\tratio\t")
	for _, name := range g.names {
		times := g.times[name]
		fmt.Fprint(t, name)
		for _, one := range times {
			fmt.Fprint(t, "\t"+ms(one))
		}
		fewest, most := times[0], times[len(times)-1]
		fmt.Fprintf(t, "\t%s\t%s\n", ratio(float64(most), float64(fewest)), growthMark(fewest, most))
	}
	t.Flush()
	fmt.Println(strings.Join(g.notes, "\n"))
	fmt.Println()
}

func growthMark(fewest, most time.Duration) string {
	switch r := float64(most) / float64(fewest); {
	case r <= flatRatio || most-fewest < growthNoise:
		return "flat"
	case r <= logRatio:
		return "log"
	}
	return "GROWS"
}

// thousands formats a number with commas.
func thousands(n int) string {
	var parts []string
	for ; n >= 1000; n /= 1000 {
		parts = append(parts, fmt.Sprintf("%03d", n%1000))
	}
	parts = append(parts, strconv.Itoa(n))
	slices.Reverse(parts)
	return strings.Join(parts, ",")
}

// admin runs an operator command.
func (g *growthBench) admin(args ...string) error {
	cmd := exec.Command(filepath.Join(g.bin, "service-backend"), append([]string{"admin"}, args...)...)
	cmd.Env = g.backend.env
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState.ExitCode() != 1 { // 1: the ledger of the filled database does not balance
		return fmt.Errorf("admin %s: %w\n%s", args[0], err, out)
	}
	return nil
}
