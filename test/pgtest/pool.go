package pgtest

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Pool starts PgBouncer with a pool mode, such as "transaction", in front of the cluster, and returns the URL of a
// database behind it. It ends with the test. The test is skipped if PgBouncer is not installed; in CI it fails.
func (c *Cluster) Pool(t testing.TB, database, mode string) string {
	t.Helper()
	path, err := exec.LookPath("pgbouncer")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("PgBouncer is not installed")
		}
		t.Skip("SKIPPED: PgBouncer is not installed (apt-get install pgbouncer)")
	}
	dir, err := os.MkdirTemp(c.dir, "pool")
	must(t, err)
	must(t, chown(dir))
	file := filepath.Join(dir, "pgbouncer.ini")
	must(t, os.WriteFile(file, fmt.Appendf(nil, "[databases]\n* = host=%s user=service\n[pgbouncer]\nauth_type = any\n"+
		"listen_addr =\nunix_socket_dir = %s\npool_mode = %s\nignore_startup_parameters = extra_float_digits\n",
		c.dir, dir, mode), 0o644))
	cmd := exec.Command(path, file)
	cmd.Dir = dir
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	must(t, asServer(cmd))
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	address := socketURL(databaseName(t, database), dir) + "&port=6432"
	db, err := sql.Open("pgx", address)
	must(t, err)
	defer db.Close()
	for end := time.Now().Add(20 * time.Second); db.Ping() != nil; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("PgBouncer does not answer:\n%s", log.String())
		}
	}
	return address
}
