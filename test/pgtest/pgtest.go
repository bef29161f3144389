// Package pgtest runs PostgreSQL for tests: one cluster per test binary, on a private socket, created with the
// machine's initdb. It is independent of the schema.
package pgtest

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // driver "pgx"

	"github.com/service-dev/service/test/reaper"
)

// Cluster is a running server. TestMain starts and stops it.
type Cluster struct {
	dir, bin string
	options  string // options of the server
	release  func()
	admin    *sql.DB
	next     atomic.Int32
}

// ErrMissing is returned by Start on a machine without a PostgreSQL server.
var ErrMissing = errors.New("PostgreSQL is not installed (apt-get install postgresql)")

// Start creates and starts a cluster in a temporary directory. The cluster stops when this process ends, even if it
// is killed. Commits do not wait for the disk, because tests kill processes but do not interrupt the machine's power.
func Start() (*Cluster, error) { return start("fsync=off") }

// StartDurable is like Start, but commits wait for the disk, as on a production server.
func StartDurable() (*Cluster, error) { return start("fsync=on") }

func start(setting string) (*Cluster, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		path, err := exec.LookPath("initdb")
		if err != nil {
			return nil, ErrMissing
		}
		found = []string{path}
	}
	dir, err := os.MkdirTemp("", "pg")
	if err != nil {
		return nil, err
	}
	release, err := reaper.Watch(dir)
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	c := &Cluster{dir: dir, bin: filepath.Dir(found[len(found)-1]), release: release}
	err = c.start(setting)
	if err == nil {
		c.admin, err = sql.Open("pgx", c.address("postgres"))
	}
	if err != nil {
		release()
		os.RemoveAll(dir)
		return nil, err
	}
	return c, nil
}

func (c *Cluster) start(setting string) error {
	if err := chown(c.dir); err != nil {
		return err
	}
	if err := c.run("initdb", "-D", c.data(), "-U", "service", "-A", "trust", "-E", "UTF8", "--locale=C",
		"-N"); err != nil {
		return err
	}
	c.options = fmt.Sprintf("-k '%s' -c listen_addresses='' -c max_connections=200 -c shared_buffers=64MB -c %s",
		c.dir, setting)
	return c.launch()
}

func (c *Cluster) launch() error {
	return c.run("pg_ctl", "-D", c.data(), "-w", "-t", "60", "-o", c.options, "-l", filepath.Join(c.dir, "log"), "start")
}

func (c *Cluster) halt() error {
	return c.run("pg_ctl", "-D", c.data(), "-m", "immediate", "-w", "stop")
}

// Halt stops the server abruptly, as in a crash. Resume starts it again.
func (c *Cluster) Halt(t testing.TB) {
	t.Helper()
	must(t, c.halt())
}

// Resume restarts a server stopped by Halt.
func (c *Cluster) Resume(t testing.TB) {
	t.Helper()
	must(t, c.launch())
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Files returns the directory that contains all data of the server, including every database.
func (c *Cluster) Files() string { return c.data() }

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

// run runs a PostgreSQL program. If this process is root, it runs as a separate user, because PostgreSQL refuses to
// run as root.
func (c *Cluster) run(name string, args ...string) error {
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Dir = c.dir
	if err := asServer(cmd); err != nil {
		return err
	}
	// Use a file, not a pipe: the server keeps stdout open, and Run would wait for a pipe.
	out, err := os.CreateTemp("", "pgout")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(out.Name())
		return fmt.Errorf("%s: %w\n%s", name, err, bytes.TrimSpace(text))
	}
	return nil
}

// Stop stops the server and removes its files.
func (c *Cluster) Stop() {
	_ = c.admin.Close()
	if err := c.halt(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	c.release()
	os.RemoveAll(c.dir)
}

// Database creates an empty database for one test and returns its URL.
func (c *Cluster) Database(t testing.TB) string {
	t.Helper()
	return c.copyOf(t, "template1")
}

// Create creates an empty database that exists until the cluster stops, and returns its URL.
func (c *Cluster) Create() (string, error) {
	name, err := c.create("template1")
	return c.address(name), err
}

// Copy creates a database for one test as a copy of another database, which must have no connections, and returns its
// URL.
func (c *Cluster) Copy(t testing.TB, database string) string {
	t.Helper()
	return c.copyOf(t, databaseName(t, database))
}

func databaseName(t testing.TB, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(u.Path, "/")
}

// copyOf creates a copy of a database and deletes it after the test, because a hundred copies fill a gigabyte.
func (c *Cluster) copyOf(t testing.TB, template string) string {
	t.Helper()
	name, err := c.create(template)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := c.admin.Exec("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return c.address(name)
}

func (c *Cluster) create(template string) (name string, err error) {
	name = fmt.Sprintf("t%d", c.next.Add(1))
	_, err = c.admin.Exec("CREATE DATABASE " + name + " TEMPLATE " + template)
	return name, err
}

// address returns the URL of a database.
func (c *Cluster) address(name string) string {
	return socketURL(name, c.dir)
}

// socketURL returns the URL of a database on a server whose socket is in dir.
func socketURL(name, dir string) string {
	host := strings.ReplaceAll(url.QueryEscape(dir), "+", "%20") // pgx does not decode a plus sign
	return "postgres://service@/" + name + "?host=" + host
}

// Dump returns the entire content of a database as SQL text.
func (c *Cluster) Dump(t testing.TB, database string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(c.bin, "pg_dump"), "-h", c.dir, "-U", "service", "--inserts", "--no-owner",
		databaseName(t, database))
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("pg_dump: %v", err)
	}
	return string(out)
}

// Load runs a dump's statements on a database.
func (c *Cluster) Load(t testing.TB, database, file string) {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(c.bin, "psql"), "-q", "-h", c.dir, "-U", "service", "-v", "ON_ERROR_STOP=1",
		strings.TrimPrefix(u.Path, "/"))
	cmd.Stdin = bytes.NewReader(data)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("psql: %v\n%s", err, out)
	}
}

// Missing skips the test with a clear message on a developer's machine and fails it in CI.
func Missing(t testing.TB) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(ErrMissing)
	}
	t.Skipf("SKIPPED: %v", ErrMissing)
}
