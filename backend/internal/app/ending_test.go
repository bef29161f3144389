package app

import (
	"database/sql"
	"log/slog"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/proto/backendapi"
	"github.com/service-dev/service/test/chromium"
)

// The simulator page explains why it stopped: the user was signed out, or another process revoked the link and so ended
// the session.
func TestSimulatorPage_Ends(t *testing.T) {
	b := startBackend(t)
	browser := newBrowser(t)
	var s backendapi.Session
	if status := b.call("POST", backendapi.PathSessions, `{"project":"com.example.hello"}`,
		&s); status != http.StatusCreated {
		t.Fatalf("create session: got status %d, want 201", status)
	}
	signIn := func() {
		t.Helper()
		run(t, browser, chromedp.Navigate(s.SessionURL), chromium.Type("#email", "ada@example.org"),
			chromium.Type("#password", testPassword), chromedp.Submit("#password"))
		see(t, browser, "#socket", "Connected")
	}
	signIn()
	client, err := sql.Open("sqlite", "file:"+b.database+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.ExecContext(t.Context(), "DELETE FROM web_sessions"); err != nil {
		t.Fatal(err)
	}
	see(t, browser, "#socket", "Signed out")
	see(t, browser, "#notice", "sign in again")

	signIn()
	operator, err := db.Attach(t.Context(), b.database)
	if err != nil {
		t.Fatal(err)
	}
	defer operator.Close()
	ada, err := account.NewStore(operator).AccountByEmail(t.Context(), "ada@example.org")
	if err != nil {
		t.Fatal(err)
	}
	links := link.New(link.Options{Store: link.NewStore(operator), Hasher: secret.NewHasher(nil),
		Log: slog.New(slog.DiscardHandler)})
	if n, err := links.RevokeAll(t.Context(), ada.ID, audit.Operator()); err != nil || n != 1 {
		t.Fatalf("revoked %d links (error %v), want 1", n, err)
	}
	see(t, browser, "#socket", "Session closed")
}
