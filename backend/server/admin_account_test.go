package server

import (
	"encoding/hex"
	"errors"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/secret"
)

// The link that the operator's command prints works on the server exactly once.
func TestAdminResetLink(t *testing.T) {
	file := filepath.Join(t.TempDir(), "service.db")
	key := make([]byte, 32)
	quiet := slog.New(slog.DiscardHandler)
	store, err := db.Open(t.Context(), file, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	accounts := account.New(account.Options{Store: account.NewStore(store), Hasher: secret.NewHasher(key), Log: quiet})
	if _, err := accounts.SignUp(t.Context(), "ada@example.org", "correct horse battery"); err != nil {
		t.Fatal(err)
	}
	args := []string{"admin", "--database", file, "--site-url", "https://service.example", "reset-link"}
	if code, _, errs := run(append(args, "ada@example.org")...); code != 1 || !strings.Contains(errs, "key") {
		t.Errorf("without the server's key: got exit code %d, %q; want 1 and an error about the key", code, errs)
	}
	t.Setenv("SERVICE_BACKEND_HMAC_KEY", hex.EncodeToString(key))
	if code, out, errs := run(append(args, "bob@example.org")...); code != 1 || out != "" || !strings.Contains(errs, "no account") {
		t.Errorf("unknown account: got exit code %d, %q, %q; want 1 and an error", code, out, errs)
	}
	code, out, errs := run(append(args, " Ada@Example.org")...)
	if code != 0 || !strings.HasPrefix(out, "https://service.example/reset?token=") {
		t.Fatalf("got exit code %d, %q, %q; want 0 and a link", code, out, errs)
	}
	u, err := url.Parse(strings.TrimSpace(out))
	if err != nil {
		t.Fatal(err)
	}
	token := u.Query().Get("token")
	if a, err := accounts.ResetPassword(t.Context(), token, "another password", account.Access{}); err != nil || a.Email != "ada@example.org" {
		t.Errorf("reset the password of %v: got error %v, want success for ada", a.Email, err)
	}
	if _, err := accounts.ResetPassword(t.Context(), token, "another password", account.Access{}); !errors.Is(err, account.ErrBadToken) {
		t.Errorf("a link used twice: got %v, want ErrBadToken", err)
	}
}
