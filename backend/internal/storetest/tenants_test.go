package storetest

import (
	"testing"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/projects"
)

const otherID = "com.example.other"

// tenants are ada, with two projects and an agent on a laptop, and bob, with a project of the same ID.
type tenants struct {
	clock    *clock
	projects *projects.Service
	audit    *audit.Service
}

const laptop = "link-of-ada"

func newTenants(t *testing.T, store *database) *tenants {
	t.Helper()
	c := newClock()
	f := &tenants{clock: c, projects: &projects.Service{Store: store.projectsStore, Hasher: hash, Now: c.now},
		audit: &audit.Service{Store: store.auditStore, Now: c.now}}
	for _, id := range []string{"ada", "bob"} {
		addAccount(t, store, c, id, id+"@example.org")
	}
	for _, p := range [][2]string{{"ada", appID}, {"ada", otherID}, {"bob", appID}} {
		must(f.projects.MintKey(t.Context(), p[0], p[1], "laptop", audit.Person()))(t)
	}
	addLink(t, store, c, laptop, "ada", "laptop")
	return f
}

// entries lists ada's audit entries for an action, newest first.
func (f *tenants) entries(t *testing.T, action string) []audit.Entry {
	t.Helper()
	all := must(f.audit.List(t.Context(), "ada", audit.Filter{Limit: 100}))(t)
	var own []audit.Entry
	for _, e := range all {
		if e.Action == action {
			own = append(own, e)
		}
	}
	return own
}
