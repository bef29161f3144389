package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/test/browser"
)

// Clients that request a large file and never read it use little memory and are disconnected. A client that reads
// slowly receives the whole file.
func TestStalledReaders(t *testing.T) {
	eachDatabase(t, func(t *testing.T, database string) {
		const mostMemory = 200 << 10 // KB
		b := startBackend(t, database)
		address := strings.TrimPrefix(b.url, "http://")
		ended := make(chan error, 1)
		go func() { ended <- readSlowly(b.url + "/assets/simulator.wasm") }()
		for i := range 460 {
			encoding := ""
			if i >= 60 {
				encoding = "Accept-Encoding: gzip\r\n"
			}
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			if _, err := fmt.Fprintf(conn, "GET /assets/simulator.wasm HTTP/1.1\r\nHost: localhost\r\n%s\r\n",
				encoding); err != nil {
				t.Fatal(err)
			}
		}
		most := 0
		if !eventually(3*time.Minute, func() bool {
			now := usageOf(t, b.cmd.Process.Pid)
			most = max(most, now.kilobytes)
			return now.sockets < 50
		}) {
			t.Error("stalled connections are open after 3 minutes, want them closed")
		}
		if most > mostMemory {
			t.Errorf("the server took %d MB of memory, want at most %d MB", most>>10, mostMemory>>10)
		}
		if err := <-ended; err != nil {
			t.Errorf("slow reader: %v", err)
		}
	})
}

// readSlowly reads a file in more time than the server allows for a part of it.
func readSlowly(address string) error {
	request, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept-Encoding", "identity")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("got status %d", response.StatusCode)
	}
	for {
		_, err := io.CopyN(io.Discard, response.Body, 128<<10)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		time.Sleep(time.Second / 2)
	}
}

// An export needs no directory for temporary files except the server's own, as in a container without one.
func TestExport_WithoutTempDir(t *testing.T) {
	eachDatabase(t, func(t *testing.T, database string) {
		b := startBackend(t, database, "TMPDIR="+filepath.Join(t.TempDir(), "missing"))
		linked, err := browser.Link(b.url, "ada@example.org", "correct horse battery")
		if err != nil {
			t.Fatal(err)
		}
		page, at, err := linked.Browser.Get(b.url + "/account/settings")
		if err != nil {
			t.Fatal(err)
		}
		export, _, err := linked.Browser.Submit(page, at, "/account/settings/export")
		if err != nil || !strings.Contains(export, `"exportedAt"`) {
			t.Errorf("got %v, %.300q; want the account's data", err, export)
		}
	})
}

// eachDatabase runs f with SQLite and with PostgreSQL in parallel.
func eachDatabase(t *testing.T, f func(t *testing.T, database string)) {
	t.Helper()
	t.Parallel()
	for name, database := range map[string]func(*testing.T) string{
		"SQLite": func(*testing.T) string { return "" }, "PostgreSQL": newPostgres,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, database(t))
		})
	}
}
