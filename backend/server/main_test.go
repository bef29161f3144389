package server

import (
	"bytes"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/internal/buildinfo"
	"github.com/service-dev/service/internal/loopback"
)

const testKey = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

// run runs service-backend with the arguments, and returns its exit code and output.
func run(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = Main(args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestVersion(t *testing.T) {
	code, out, errs := run("version")
	if code != 0 || errs != "" || out != "service-backend "+buildinfo.Version+" commit "+buildinfo.Commit+" built "+buildinfo.BuiltAt+"\n" {
		t.Errorf("got exit code %d, %q, %q; want 0 and the build's version", code, out, errs)
	}
}

func TestListenAt_LocalhostIsBothAddresses(t *testing.T) {
	other, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skipf("SKIPPED: no IPv6 on this machine: %v", err)
	}
	defer other.Close()
	_, port, _ := net.SplitHostPort(other.Addr().String())
	if listeners, err := listenAt(t.Context(), "localhost:"+port); err == nil || !strings.Contains(err.Error(), "[::1]:"+port) ||
		!strings.Contains(err.Error(), "another port") {
		t.Errorf("another program has [::1]:%s: got %v, %v; want an error", port, listeners, err)
	}
	if free, err := net.Listen("tcp", "127.0.0.1:"+port); err != nil {
		t.Errorf("after the error, 127.0.0.1:%s is still in use: %v", port, err)
	} else {
		free.Close()
	}
	other.Close()
	for address, count := range map[string]int{"Localhost:" + port: 2, "localhost:0": 2, "127.0.0.1:0": 1} {
		listeners, err := listenAt(t.Context(), address)
		if err != nil || len(listeners) != count || loopback.Port(listeners[0]) != loopback.Port(listeners[count-1]) {
			t.Errorf("%s: %v, %v; want %d listeners on one port", address, listeners, err, count)
		}
		_ = loopback.Close(listeners)
	}
}

func TestRefusals(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.db")
	for _, tc := range []struct {
		name string
		args []string
		key  string
		says string
	}{
		{"no key", []string{"--data-dir", dir}, "", "SERVICE_BACKEND_HMAC_KEY"},
		{"short key", []string{"--data-dir", dir}, testKey[:20], "SERVICE_BACKEND_HMAC_KEY"},
		{"address in use", []string{"--data-dir", dir, "--listen", busy.Addr().String()}, testKey, busy.Addr().String()},
		{"bad setting", []string{"--link-code-ttl", "1"}, testKey, "link_code_ttl"},
		{"bad flag value", []string{"--link-code-ttl", "x"}, testKey, "link-code-ttl"},
		{"unknown flag", []string{"--nothing"}, testKey, "--nothing"},
		{"unknown command", []string{"serve"}, testKey, "serve"},
		{"data directory that is not there", []string{"--data-dir", filepath.Join(dir, "none"), "--listen", "127.0.0.1:0"}, testKey, "none"},
		{"revoke whom", []string{"admin", "revoke"}, "", "--account"},
		{"revoke two", []string{"admin", "revoke", "--account", "a", "--email", "a@example.org"}, "", "exactly one"},
		{"revoke account and link", []string{"admin", "revoke", "--account", "a", "--link", "b"}, "", "exactly one"},
		{"revoke three", []string{"admin", "revoke", "--account", "a", "--email", "b", "--link", "c"}, "", "exactly one"},
		{"revoke with an argument", []string{"admin", "revoke", "ada"}, "", "ada"},
		{"links of whom", []string{"admin", "links"}, "", "1 arg"},
		{"links on no database", []string{"admin", "links", "ada@example.org", "--database", empty}, "", "--database"},
		{"revoke on no database", []string{"admin", "revoke", "--account", "a", "--database", empty}, "", "--database"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("SERVICE_BACKEND_HMAC_KEY", tc.key)
			code, out, errs := run(tc.args...)
			if code != 1 || out != "" || !strings.HasPrefix(errs, "service-backend: ") || !strings.Contains(errs, tc.says) {
				t.Errorf("got exit code %d, stdout %q, stderr %q; want 1 and one error", code, out, errs)
			}
			if tc.key != "" && strings.Contains(errs, tc.key) {
				t.Error("the error contains the key")
			}
		})
	}
}
