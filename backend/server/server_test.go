package server

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// start runs an embedded backend in dir until stop is called, which waits until the backend has ended.
func start(t *testing.T, dir string) (s *Server, stop func()) {
	t.Helper()
	return startWith(t, Options{DataDir: dir})
}

func startWith(t *testing.T, o Options) (s *Server, stop func()) {
	t.Helper()
	s, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	return s, func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
	}
}

func issueCode(t *testing.T, base string) (deviceCode string) {
	t.Helper()
	res, err := http.Post(base+"/api/auth/device/code", "application/json", strings.NewReader(`{"scope":"account_full"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var code struct{ DeviceCode, VerificationURL string }
	err = json.NewDecoder(res.Body).Decode(&code)
	if err != nil || !strings.Contains(code.VerificationURL, ".localhost:") {
		t.Fatalf("%d: %+v, %v", res.StatusCode, code, err)
	}
	return code.DeviceCode
}

func poll(t *testing.T, base, deviceCode string) int {
	t.Helper()
	res, err := http.Post(base+"/api/auth/device/token", "application/json", strings.NewReader(`{"deviceCode":"`+deviceCode+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// A restart keeps the instance's ID, its address and its pending codes.
func TestRestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "backend")
	first, stop := start(t, dir)
	if !strings.HasPrefix(first.URL(), "http://localhost:") || len(first.ID()) != 16 {
		t.Errorf("got ID %q at %s, want 16 characters at localhost", first.ID(), first.URL())
	}
	code := issueCode(t, first.URL())
	if connections, pending, err := first.Activity(t.Context()); connections != 0 || pending != 1 || err != nil {
		t.Errorf("activity: got %d, %d, %v; want 0 connections and 1 code", connections, pending, err)
	}
	stop()
	second, stop := start(t, dir)
	defer stop()
	if !regexp.MustCompile(`^http://service-[0-9a-f]{8}\.localhost:\d+$`).MatchString(first.SiteURL()) ||
		second.SiteURL() != first.SiteURL() {
		t.Errorf("the pages' address changed from %s to %s", first.SiteURL(), second.SiteURL())
	}
	if second.ID() != first.ID() || second.URL() != first.URL() {
		t.Errorf("the instance changed from %s at %s to %s at %s", first.ID(), first.URL(), second.ID(), second.URL())
	}
	if status := poll(t, second.URL(), code); status != http.StatusOK {
		t.Errorf("a code from before the restart: got status %d, want 200", status)
	}
}

func TestDataIsTheOwnersAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("on Windows permissions are in access lists")
	}
	for name, made := range map[string]bool{"made": false, "found too open": true} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "backend")
			if made {
				if err := os.Mkdir(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			s, stop := start(t, dir)
			defer stop()
			issueCode(t, s.URL())
			mode(t, dir, 0o700)
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				mode(t, filepath.Join(dir, e.Name()), 0o600)
			}
			for _, want := range []string{"hmac.key", "instance", "port", "service.db", "service.db-wal"} {
				if _, err := os.Stat(filepath.Join(dir, want)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func mode(t *testing.T, path string, want os.FileMode) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != want {
		t.Errorf("the mode of %s is %o, want %o", filepath.Base(path), got, want)
	}
}

// A port that another process uses on either loopback address is not chosen.
func TestTakenPort(t *testing.T) {
	for network, host := range map[string]string{"tcp4": "127.0.0.1", "tcp6": "::1"} {
		t.Run(network, func(t *testing.T) {
			other, err := net.Listen(network, net.JoinHostPort(host, "0"))
			if err != nil {
				t.Skip(err)
			}
			defer other.Close()
			port := strconv.Itoa(other.Addr().(*net.TCPAddr).Port)
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "port"), []byte(port+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			s, stop := start(t, dir)
			if strings.HasSuffix(s.URL(), ":"+port) {
				t.Errorf("got %s, but another process has that port on %s", s.URL(), host)
			}
			issueCode(t, s.URL())
			stop()
			again, stop := start(t, dir)
			defer stop()
			if again.URL() != s.URL() {
				t.Errorf("the new port was not kept: %s, then %s", s.URL(), again.URL())
			}
		})
	}
}

func TestPortFileThatMakesNoSense(t *testing.T) {
	for _, content := range []string{"", "x", "0", "80", "-1", "65536", "99999999999999999999"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "port"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		s, stop := start(t, dir)
		issueCode(t, s.URL())
		stop()
	}
}

// Without its key, every stored hash is useless, so a damaged key file is reported and not changed.
func TestDamagedKeyIsRefused(t *testing.T) {
	dir := t.TempDir()
	_, stop := start(t, dir)
	stop()
	path := filepath.Join(dir, "hmac.key")
	for _, content := range []string{"", "\n", "abcd", strings.Repeat("z", 64), strings.Repeat("ab", 31)} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := New(t.Context(), Options{DataDir: dir})
		if err == nil || !strings.Contains(err.Error(), "hmac.key") || content != "" && content != "\n" && strings.Contains(err.Error(), content) {
			t.Errorf("key file %q: got error %v, want one that names the file but not its content", content, err)
		}
		if kept, err := os.ReadFile(path); err != nil || string(kept) != content {
			t.Errorf("the key file %q was changed to %q, %v", content, kept, err)
		}
	}
}

func TestDirectoryThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(t.Context(), Options{DataDir: filepath.Join(file, "backend")}); err == nil || !strings.Contains(err.Error(), "directory") {
		t.Errorf("got %v, want an error about the directory", err)
	}
}

// If many processes create the key at the same time, all get the same key.
func TestKeyIsMadeOnce(t *testing.T) {
	dir := t.TempDir()
	got := make(chan string, 20)
	for range cap(got) {
		go func() {
			k, err := openData(dir)
			if err != nil {
				t.Error(err)
			}
			got <- string(k.key) + k.id
		}()
	}
	first := <-got
	for range cap(got) - 1 {
		if <-got != first {
			t.Error("processes got different keys or instances")
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, ".*-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files remain: %v, %v", left, err)
	}
}
