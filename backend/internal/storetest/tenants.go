package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/account"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/projects"
)

// TenantStore is what it takes to have accounts, linked agents, projects and their audit log.
type TenantStore interface {
	projects.Store
	audit.Store
	link.CodeStore
	link.TokenStores
	InsertAccount(ctx context.Context, a account.Account) error
}

const otherID = "com.example.other"

// tenants are ada with two projects and an agent on a laptop, and bob with a project of the same id.
type tenants struct {
	clock    *clock
	projects *projects.Service
	audit    *audit.Service
}

const laptop = "link-of-ada"

func newTenants(t *testing.T, store TenantStore) *tenants {
	t.Helper()
	c := &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	f := &tenants{clock: c, projects: &projects.Service{Store: store, Hasher: hash, Now: c.now}, audit: &audit.Service{Store: store, Now: c.now}}
	for _, id := range []string{"ada", "bob"} {
		err := store.InsertAccount(t.Context(), account.Account{ID: id, Email: id + "@example.org", PasswordHash: "x", Active: true,
			PrivacyAccepted: c.now(), CreatedAt: c.now()})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range [][2]string{{"ada", appID}, {"ada", otherID}, {"bob", appID}} {
		if _, err := f.projects.MintKey(t.Context(), p[0], p[1], "laptop", audit.Person()); err != nil {
			t.Fatal(err)
		}
	}
	now := c.now()
	err := store.InsertCode(t.Context(), link.Code{DeviceHash: "d", UserHash: "u", State: link.Pending, CreatedAt: now, ExpiresAt: now.Add(time.Hour),
		Requester: link.Requester{Host: "laptop"}}, audit.Trace{})
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := store.Decide(t.Context(), "u", link.Approved, "ada", now, audit.Trace{}); err != nil || !ok {
		t.Fatalf("approve: %v, %v", ok, err)
	}
	if _, err := store.Redeem(t.Context(), "d", now, link.Link{ID: laptop, TokenHash: "t", LinkedAt: now}, audit.Trace{}); err != nil {
		t.Fatal(err)
	}
	return f
}

// entries lists ada's audit entries of an action, newest first.
func (f *tenants) entries(t *testing.T, action string) []audit.Entry {
	t.Helper()
	all, err := f.audit.List(t.Context(), "ada", audit.Filter{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var own []audit.Entry
	for _, e := range all {
		if e.Action == action {
			own = append(own, e)
		}
	}
	return own
}
