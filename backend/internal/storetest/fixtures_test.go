package storetest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/secret"
)

var hash = secret.NewHasher([]byte("a key of thirty-two bytes or more"))

// clock is a clock controlled by the test.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// must returns the result of a call that must succeed: must(f.Start(ctx))(t).
func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		fatal(t, err)
		return v
	}
}

// fatal ends the test on an error.
func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// noError fails the test on an error. Goroutines may call it.
func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// errOf returns the error of a call whose result does not matter.
func errOf[T any](_ T, err error) error { return err }

// want fails the test unless the error is the wanted one.
func want(t *testing.T, what string, got, wanted error) {
	t.Helper()
	if !errors.Is(got, wanted) {
		t.Errorf("%s: got %v, want %v", what, got, wanted)
	}
}

// race runs f n times concurrently. It returns the number of calls that succeeded, and the number that failed with an
// error accepted by isLost. Any other error fails the test.
func race(t *testing.T, n int, isLost func(error) bool, f func(i int) error) (won, lost int) {
	t.Helper()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	for i, err := range errs {
		switch {
		case err == nil:
			won++
		case isLost(err):
			lost++
		default:
			t.Errorf("call %d of %d concurrent calls: got unexpected error %v", i, n, err)
		}
	}
	return won, lost
}

// isAny returns a predicate for race that accepts the target errors.
func isAny(targets ...error) func(error) bool {
	return func(err error) bool {
		for _, target := range targets {
			if errors.Is(err, target) {
				return true
			}
		}
		return false
	}
}

// addAccount inserts an account without its activity entry, so that tests can count the entries of their own actions.
func addAccount(t *testing.T, store *database, c *clock, id, email string) account.Account {
	t.Helper()
	a := account.Account{
		ID: id, Email: email, PasswordHash: "x", Active: true, PrivacyAccepted: c.now(), CreatedAt: c.now(),
	}
	fatal(t, store.InsertAccount(t.Context(), a))
	store.exec("DELETE FROM audit WHERE account_id = $1 AND action = 'account.created'", id)
	return a
}

// addLink inserts a code, approves it and redeems it for a link with the given ID. Like addAccount, it leaves no entry.
func addLink(t *testing.T, store *database, c *clock, id, accountID, host string) {
	t.Helper()
	now := c.now()
	code := link.Code{
		DeviceHash: "d" + id, UserHash: "u" + id, State: link.Pending, CreatedAt: now, ExpiresAt: now.Add(time.Hour),
		Requester: link.Requester{Host: host},
	}
	fatal(t, store.InsertCode(t.Context(), code, audit.Trace{}))
	if !must(store.Decide(t.Context(), code.UserHash, link.Approved, accountID, now, audit.Trace{}))(t) {
		t.Fatal("the code was not approved")
	}
	l := link.Link{ID: id, TokenHash: "t" + id, LinkedAt: now}
	must(store.Redeem(t.Context(), code.DeviceHash, now, l, audit.Trace{}))(t)
	store.exec("DELETE FROM audit WHERE account_id = $1 AND action = 'link.created'", accountID)
}
