package db_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/glasses"
)

// A merge that runs again resolves its projects again, because it may have read a change by another write of its batch
// that was rolled back.
func TestMergeProjects_RerunUsesOriginalArguments(t *testing.T) {
	n := db.NewNotes(t)
	store := projects.NewStore(n.DB)
	err := n.Write(t.Context(), func(tx *sql.Tx) error {
		for _, statement := range []string{
			`INSERT INTO accounts (id, email, password_hash, state, privacy_accepted_at, created_at)
				VALUES ('ada', 'ada@example.com', '', 'active', 1, 1)`,
			`INSERT INTO projects (account_id, app_id, created_at)
				VALUES ('ada', 'one', 1), ('ada', 'two', 1), ('ada', 'three', 1)`,
		} {
			if err := n.Run(tx, statement); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	merge := func(ctx context.Context, from, into string, others int) <-chan error {
		out := make(chan error, 1)
		e := audit.New(time.UnixMilli(1), "ada", audit.Actor{Kind: "person"}, "project.merged", into, from)
		go func() { out <- store.MergeProjects(ctx, "ada", from, into, e) }()
		n.AwaitQueued(others + 1)
		return out
	}
	release := n.Hold()
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	undone := merge(ctx, "one", "two", 0)
	merged := merge(t.Context(), "one", "three", 1) // in this batch "one" is an alias of "two"
	breaker := n.Behind(t.Context(), 2, func(tx *sql.Tx) error {
		cancel()
		return errors.Join(n.Run(tx, "ROLLBACK"), errors.New("broke it"))
	})
	release()
	<-breaker
	if err := <-undone; !errors.Is(err, context.Canceled) {
		t.Errorf("the first merge returned %v, want context.Canceled", err)
	}
	if err := <-merged; err != nil {
		t.Errorf("the second merge returned %v", err)
	}
	all, err := store.Projects(t.Context(), "ada", "", time.UnixMilli(1))
	if err != nil {
		t.Fatal(err)
	}
	ids := []string{}
	for _, p := range all {
		ids = append(ids, p.ID)
	}
	if !slices.Equal(ids, []string{"three", "two"}) {
		t.Errorf("got projects %v, want one merged into three", ids)
	}
	if id, err := store.ProjectID(t.Context(), "ada", "one"); id != "three" || err != nil {
		t.Errorf("one resolves to %q (error %v), want three", id, err)
	}
}

// A write that runs again repeats all of its work.
func TestBatchWriter_RerunsAppendedEvents(t *testing.T) {
	n := db.NewNotes(t)
	for _, statement := range []string{"PRAGMA foreign_keys = 0", // the session needs no account here
		`INSERT INTO sessions (id, account_id, link_id, app_id, platform, device_model, is_current, created_at,
				last_active_at, expires_at) VALUES ('ses_1', 'ada', 'l', 'app', 'ios', 'even_g1', 1, 1, 1, 1)`} {
		n.Exec(statement)
	}
	release := n.Hold()
	defer release()
	rows := []sessions.Row{{SessionID: "ses_1", Event: glasses.Event{Sender: "app", ID: "1", Kind: "command",
		Type: "display.show", Payload: []byte("{}")}}}
	appended := make(chan error, 1)
	go func() { appended <- sessions.NewStore(n.DB).AppendEvents(t.Context(), rows, sessions.DefaultQuota) }()
	n.AwaitQueued(1)
	breaker := n.Behind(t.Context(), 1, func(tx *sql.Tx) error {
		return errors.Join(n.Run(tx, "ROLLBACK"),
			errors.New("broke it"))
	})
	release()
	<-breaker
	var kept int
	if err := <-appended; err != nil {
		t.Fatal(err)
	}
	if err := n.QueryRowContext(t.Context(),
		"SELECT COUNT(*) FROM events WHERE session_id = 'ses_1'").Scan(&kept); err != nil ||
		kept != 1 {
		t.Errorf("%d events are stored (error %v), want 1", kept, err)
	}
}
