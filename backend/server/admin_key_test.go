package server

import (
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/app"
	"github.com/service-dev/service/backend/internal/config"
	"github.com/service-dev/service/internal/loopback"
)

// A database belongs to the key that it was first used with. Until the operator confirms another key, the server and
// the admin commands refuse it, because they would write wrong hashes or find none.
func TestAnotherKeyIsRefused(t *testing.T) {
	d := newDesk(t)
	other := strings.Repeat("9", 64)
	start := func(key string) error {
		t.Helper()
		raw, err := hex.DecodeString(key)
		if err != nil {
			t.Fatal(err)
		}
		settings := config.Embedded(filepath.Dir(d.file), "http://localhost:1", "http://localhost:1", raw, "")
		settings.Database = d.file
		a, err := app.New(t.Context(), app.Options{Config: settings, Log: slog.New(slog.DiscardHandler)})
		if err == nil {
			err = a.Close()
		}
		return err
	}
	if err := start(testKey); err != nil { // the database belonged to no key before
		t.Fatal(err)
	}
	commands := map[string]string{"trail": "", "suspend ada-id": "suspended", "restore ada-id": "active", "reset-link ada@example.org": "token=", "revoke --account ada-id": "no live link"}
	refused := func(key string) {
		t.Helper()
		t.Setenv("SERVICE_BACKEND_HMAC_KEY", key)
		for command := range commands {
			if exit, out, errs := d.admin(strings.Fields(command)...); exit != 1 || out != "" || !strings.Contains(errs,
				"first used with") || !strings.Contains(errs, "hmac_key_file") {
				t.Errorf("%s with another key: got exit code %d, %q, %q; want 1 and the way out", command, exit, out, errs)
			}
		}
		if err := start(key); err == nil || !strings.Contains(err.Error(), "first used with") {
			t.Errorf("a server with another key: got error %v, want it to say so", err)
		}
	}
	refused(other)
	if a, err := account.NewStore(d.db).AccountByID(t.Context(), "ada-id"); err != nil || !a.Active {
		t.Errorf("got account %+v, error %v; want it still active", a, err)
	}
	t.Setenv("SERVICE_BACKEND_HMAC_KEY", testKey)
	for _, command := range []string{"trail", "suspend ada-id", "restore ada-id", "reset-link ada@example.org", "revoke --account ada-id"} {
		if _, out, errs := d.admin(strings.Fields(command)...); !strings.Contains(out+errs, commands[command]) || strings.Contains(errs, "key") {
			t.Errorf("%s: %q, %q", command, out, errs)
		}
	}
	t.Setenv("SERVICE_BACKEND_HMAC_KEY", other)
	for _, says := range []string{"from now on", "already"} {
		if exit, out, errs := d.admin("replace-key"); exit != 0 || !strings.Contains(out, says) {
			t.Errorf("replace-key: got exit code %d, %q, %q; want 0", exit, out, errs)
		}
	}
	if err := start(other); err != nil {
		t.Error(err)
	}
	refused(testKey)
}

// If an embedded backend has lost its key file, it reports that and does not start, because every stored hash would be
// useless.
func TestEmbeddedKeyThatWasLost(t *testing.T) {
	dir := t.TempDir()
	begin := func() error {
		s, err := New(t.Context(), Options{DataDir: dir})
		if err == nil {
			_ = loopback.Close(s.listeners)
			err = s.app.Close()
		}
		return err
	}
	for range 2 {
		if err := begin(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(dir, keyFile)); err != nil {
		t.Fatal(err)
	}
	if err := begin(); !errors.Is(err, ErrOtherKey) || !strings.Contains(err.Error(), keyFile) ||
		!strings.Contains(err.Error(), "restore the key") {
		t.Errorf("%v", err)
	}
	t.Setenv("SERVICE_BACKEND_HMAC_KEY", "") // the command needs only the options named in the error
	d := desk{T: t, file: filepath.Join(dir, "service.db")}
	if exit, out, errs := d.admin("replace-key", "--hmac-key-file", filepath.Join(dir, keyFile)); exit != 0 || !strings.Contains(out, "from now on") {
		t.Errorf("got exit code %d, %q, %q; want 0 and the key replaced", exit, out, errs)
	}
	if err := begin(); err != nil {
		t.Error(err)
	}
}
