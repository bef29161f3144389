package server

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credentials"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/backend/internal/secret"
)

// The operator puts a new key first, rotates while the server runs, and removes the old key.
func TestAdminRotateCredentialsKey(t *testing.T) {
	dir := t.TempDir()
	database, keyFile := filepath.Join(dir, "service.db"), filepath.Join(dir, "keys")
	store, err := db.Open(t.Context(), database, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	ada := account.Account{ID: "ada-id", Email: "ada@example.org", PasswordHash: "x", Active: true, CreatedAt: time.Now()}
	if err := account.NewStore(store).InsertAccount(t.Context(), ada); err != nil {
		t.Fatal(err)
	}
	hasher := secret.NewHasher(make([]byte, 32))
	const app = "com.example.app"
	if _, err := (&projects.Service{Store: projects.NewStore(store), Hasher: hasher, Now: time.Now}).MintKey(t.Context(),
		ada.ID, app, "x", audit.Person()); err != nil {
		t.Fatal(err)
	}
	old, next := strings.Repeat("01", 32)+"\n", strings.Repeat("02", 32)+"\n"
	with := func(text string) *credentials.Service {
		t.Helper()
		keys, err := credentials.ParseKeys(text)
		if err != nil {
			t.Fatal(err)
		}
		providers, err := credentials.LoadProviders("")
		if err != nil {
			t.Fatal(err)
		}
		return credentials.New(credentials.Options{Store: credentials.NewStore(store), Hasher: hasher, Keys: keys,
			Providers: providers})
	}
	const value = "sk-canary-value-of-a-credential"
	if err := with(old).Set(t.Context(), ada.ID, app, "openai", value, "", audit.Person()); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		keys string
		code int
		says []string
	}{
		{"", 1, []string{"no key"}},
		{"nonsense", 1, []string{"line 1"}},
		{next, 1, []string{"rewrapped 0", "is missing from the key file"}},
		{old, 0, []string{"rewrapped 0", "nothing can be removed"}},
		{next + old, 0, []string{"rewrapped 1", "may be removed", "key 2 ("}},
		{next + old, 0, []string{"rewrapped 0", "may be removed", "key 2 ("}},
		{next, 0, []string{"rewrapped 0", "nothing can be removed"}},
	} {
		if err := os.WriteFile(keyFile, []byte(step.keys), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, errs := run("admin", "rotate-credentials-key", "--database", database, "--credentials-key-file", keyFile)
		if code != step.code {
			t.Errorf("got exit code %d, %q, %q; want the step's code", code, out, errs)
		}
		for _, says := range step.says {
			if !strings.Contains(out+errs, says) {
				t.Errorf("got %q, %q; want %q in them", out, errs, says)
			}
		}
		if text := out + errs; strings.Contains(text, "0101") || strings.Contains(text, "0202") || strings.Contains(text, "nonsense") || strings.Contains(text, value) {
			t.Errorf("the output contains a secret: %q", text)
		}
	}
	t.Setenv("SERVICE_BACKEND_CREDENTIALS_KEY", "nonsense")
	if code, out, errs := run("admin", "rotate-credentials-key", "--database", database); code != 1 || !strings.Contains(errs, "SERVICE_BACKEND_CREDENTIALS_KEY: line 1") ||
		strings.Contains(out+errs, "nonsense") {
		t.Errorf("got exit code %d, %q, %q; want 1 and an error without the value", code, out, errs)
	}
	t.Setenv("SERVICE_BACKEND_CREDENTIALS_KEY", "")
	const other = "com.example.damaged"
	if _, err := (&projects.Service{Store: projects.NewStore(store), Hasher: hasher, Now: time.Now}).MintKey(t.Context(),
		ada.ID, other, "x", audit.Person()); err != nil {
		t.Fatal(err)
	}
	if err := with(old).Set(t.Context(), ada.ID, other, "openai", value, "", audit.Person()); err != nil {
		t.Fatal(err)
	}
	stored, err := credentials.NewStore(store).Credential(t.Context(), ada.ID, other, "openai")
	if err != nil {
		t.Fatal(err)
	}
	whole := stored.Wrapped
	stored.Wrapped = "1.AAAA"
	if ok, err := credentials.NewStore(store).Rewrap(t.Context(), stored, whole); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if err := os.WriteFile(keyFile, []byte(next+old), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := run("admin", "rotate-credentials-key", "--database", database, "--credentials-key-file", keyFile)
	for _, says := range []string{"rewrapped 0", "cannot be decrypted", "openai", other, ada.ID, "1 credential",
		"must stay", stored.KeyID} {
		if code != 1 || !strings.Contains(out+errs, says) {
			t.Errorf("got exit code %d, %q, %q; want 1 and %q", code, out, errs, says)
		}
	}
	if got, err := with(next).Open(t.Context(), ada.ID, app, "openai"); err != nil || got != value {
		t.Errorf("%q (%v)", got, err)
	}
}
