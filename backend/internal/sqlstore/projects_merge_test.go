package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
)

// A merge that runs again resolves its projects again, because it may have read a change by another write of its batch
// that was rolled back.
func TestMergeProjects_RerunUsesOriginalArguments(t *testing.T) {
	n := newNotes(t)
	err := n.write(t.Context(), func(tx *sql.Tx) error {
		for _, statement := range []string{
			"INSERT INTO accounts (id, email, password_hash, state, privacy_accepted_at, created_at) VALUES ('ada', 'ada@example.com', '', 'active', 1, 1)",
			"INSERT INTO projects (account_id, app_id, created_at) VALUES ('ada', 'one', 1), ('ada', 'two', 1), ('ada', 'three', 1)",
		} {
			if err := n.run(tx, statement); err != nil {
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
		go func() { out <- n.MergeProjects(ctx, "ada", from, into, e) }()
		n.until(func() bool { return len(n.batches.queue) == others+1 })
		return out
	}
	release := n.hold()
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	undone := merge(ctx, "one", "two", 0)
	merged := merge(t.Context(), "one", "three", 1) // in this batch "one" is an alias of "two"
	breaker := n.behind(t.Context(), 2, func(tx *sql.Tx) error {
		cancel()
		return errors.Join(n.run(tx, "ROLLBACK"), errors.New("broke it"))
	})
	release()
	<-breaker
	if err := <-undone; !errors.Is(err, context.Canceled) {
		t.Errorf("the first merge returned %v, want context.Canceled", err)
	}
	if err := <-merged; err != nil {
		t.Errorf("the second merge returned %v", err)
	}
	all, err := n.Projects(t.Context(), "ada", "", time.UnixMilli(1))
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
	if id, err := n.ProjectID(t.Context(), "ada", "one"); id != "three" || err != nil {
		t.Errorf("one resolves to %q (error %v), want three", id, err)
	}
}
