// Package pgtest runs PostgreSQL for tests: one cluster for each test binary, on a private socket, created with the
// machine's initdb. It does not know what is stored.
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

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/service-dev/service/packaging/reaper"
)

// Cluster is a running server. Start it in TestMain and stop it there.
type Cluster struct {
	dir, bin string
	options  string // of the server
	release  func()
	admin    *sql.DB
	next     atomic.Int32
}

// ErrMissing means that this machine has no PostgreSQL server.
var ErrMissing = errors.New("PostgreSQL is not installed (apt-get install postgresql)")

// Start creates and starts a cluster in a temporary directory. It ends with this process, however this process ends.
// Commits do not wait for the disk, because tests kill processes but do not cut the machine's power.
func Start() (*Cluster, error) { return start("fsync=off") }

// StartDurable is Start with commits that wait for the disk, as those of a server do.
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

// Halt stops the server as a crash does. Resume starts it again.
func (c *Cluster) Halt(t testing.TB) {
	t.Helper()
	must(t, c.halt())
}

// Resume starts a server that Halt has stopped.
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

// Files returns the directory with every byte that the server stores, of all databases.
func (c *Cluster) Files() string { return c.data() }

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

// run runs a program of PostgreSQL, as a separate user if this process is root, because it refuses to run as root.
func (c *Cluster) run(name string, args ...string) error {
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Dir = c.dir
	if err := asServer(cmd); err != nil {
		return err
	}
	// A file, not a pipe: the server keeps it open, and a pipe would keep Run waiting.
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

// Database creates an empty database for a test and returns its URL.
func (c *Cluster) Database(t testing.TB) string {
	t.Helper()
	return c.copyOf(t, "template1")
}

// Create creates an empty database that exists as long as the cluster, and returns its URL.
func (c *Cluster) Create() (string, error) {
	name, err := c.create("template1")
	return c.address(name), err
}

// Copy creates a database for a test with the content of another, to which nobody may be connected, and returns its
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

// copyOf creates a database that is deleted after its test, because a hundred of them fill a gigabyte.
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
	host := strings.ReplaceAll(url.QueryEscape(c.dir), "+", "%20") // pgx does not decode a plus sign
	return "postgres://service@/" + name + "?host=" + host
}

// Dump returns the whole content of a database as text.
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

// Missing skips with a clear message on a developer's machine and fails in CI.
func Missing(t testing.TB) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(ErrMissing)
	}
	t.Skipf("SKIPPED: %v", ErrMissing)
}
