package credit_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/db"
	"github.com/service-dev/service/backend/internal/dbtest"
	"github.com/service-dev/service/backend/internal/secret"
)

// addPurse stores an account with the projects of the model.
func addPurse(t testing.TB, store *db.DB, id string, now time.Time) {
	t.Helper()
	err := account.NewStore(store).InsertAccount(t.Context(), account.Account{ID: id, Email: id + "@example.org",
		PasswordHash: "x",
		Active:       true, PrivacyAccepted: now, CreatedAt: now})
	for _, p := range modelProjects {
		dbtest.AddProject(t, store, id, p)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func newLedger(store *db.DB, now func() time.Time) *credit.Ledger {
	return credit.New(credit.Options{Store: credit.NewStore(store),
		Hasher: secret.NewHasher([]byte("a key of thirty-two bytes or more")), Free: 2 * credit.USD, Now: now})
}

func kindOfRefusal(err error) string {
	for _, known := range []any{new(*credit.NoCredit), new(*credit.Reserved), new(*credit.CapReached),
		new(*credit.AttestationRequired)} {
		if err != nil && errors.As(err, known) {
			return fmt.Sprintf("%T", known)[1:]
		}
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func call(outcome string) credit.Call {
	return credit.Call{Model: "small", Kind: "chat", Outcome: outcome, TextIn: 3, TextOut: 4}
}

// carry settles a hold whose call the operator pays for.
func (m *purse) carry(rt *rapid.T, h *modelHold) {
	if err := m.ledger.Carry(m.t.Context(), h.ID, 1234, call("failed")); err != nil {
		rt.Fatal(err)
	}
	if h.state == "open" {
		m.operator += 1234
	}
	cost := credit.Amount(0)
	if h.state == "expired" {
		cost = 1234
	}
	m.settled(h, cost, call("failed"))
}

// values returns the caps, with -1 for no cap.
func values(c credit.Caps) (all []credit.Amount) {
	for _, one := range []*credit.Amount{c.Day, c.Month, c.Keys} {
		if one == nil {
			all = append(all, -1)
		} else {
			all = append(all, *one)
		}
	}
	return all
}
