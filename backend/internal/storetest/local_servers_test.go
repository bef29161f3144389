package storetest

import (
	"reflect"
	"testing"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credentials"
	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/projects"
)

func TestLocalServers(t *testing.T) {
	eachEngine(t, map[string]func(*testing.T, *purses){
		"kept, checked, removed": serverLife, "a project has a few": serverLimit, "merged projects": serverMerge,
	}, func(t *testing.T, db *database, test func(*testing.T, *purses)) {
		f := newTenants(t, db)
		test(t, &purses{f, newCreditLedger(db, f.clock, false), db})
	})
}

func (f *purses) serverEntry(project, action string) audit.Entry {
	return audit.New(f.clock.now(), "ada", audit.Person(), action, project, "local server")
}

func (f *purses) put(t *testing.T, project, id string, most int) error {
	t.Helper()
	return f.store.PutLocalServer(t.Context(), gateway.LocalServer{ID: id, BaseURL: "http://localhost:1/v1",
		Models: []string{"a"}, Keyed: true, Checked: f.clock.now()}, most, f.serverEntry(project, "gateway.server_added"))
}

func serverLife(t *testing.T, f *purses) {
	want(t, "unknown project", f.put(t, "com.example.none", "x", 10), projects.ErrNotFound)
	fatal(t, f.put(t, appID, "ollama", 10))
	fatal(t, f.put(t, appID, "ollama", 1)) // replaces the server with the same name
	checked := gateway.LocalServer{ID: "ollama", BaseURL: "http://localhost:1/v1", Keyed: true, Models: []string{"b", "c"},
		Problem: "away", Checked: f.clock.now()}
	fatal(t, f.store.NoteLocalServer(t.Context(), "ada", appID, checked))
	stale := checked
	stale.BaseURL, stale.Models = "http://localhost:2/v1", nil
	fatal(t, f.store.NoteLocalServer(t.Context(), "ada", appID, stale)) // checked before its address changed
	got := must(f.store.LocalServers(t.Context(), "ada", appID))(t)
	if len(got) != 1 || !got[0].Checked.Equal(checked.Checked) {
		t.Fatalf("servers: got %+v, want one with the result of its check", got)
	}
	got[0].Checked = checked.Checked
	if !reflect.DeepEqual(got[0], checked) {
		t.Errorf("server: got %+v, want the one that was stored", got[0])
	}
	if others := must(f.store.LocalServers(t.Context(), "bob", appID))(t); len(others) != 0 {
		t.Errorf("another account sees the servers %+v, want none", others)
	}
	fatal(t, f.store.DeleteLocalServer(t.Context(), "ollama", f.serverEntry(appID, "gateway.server_removed")))
	want(t, "removed twice", f.store.DeleteLocalServer(t.Context(), "ollama",
		f.serverEntry(appID, "gateway.server_removed")), gateway.ErrNoServer)
	if n := len(f.entries(t, "gateway.server_added")) + len(f.entries(t, "gateway.server_removed")); n != 3 {
		t.Errorf("%d audit entries, want 3", n)
	}
}

func serverLimit(t *testing.T, f *purses) {
	for _, id := range []string{"a", "b"} {
		fatal(t, f.put(t, appID, id, 2))
	}
	want(t, "one too many", f.put(t, appID, "c", 2), gateway.ErrServers)
	fatal(t, f.put(t, appID, "b", 2))
}

// A server of the merged project moves with its key, unless the other project has a server with that name.
func serverMerge(t *testing.T, f *purses) {
	for _, of := range [][2]string{{appID, "a"}, {appID, "b"}, {otherID, "b"}} {
		fatal(t, f.put(t, of[0], of[1], 10))
	}
	for _, id := range []string{"a", "b"} {
		c := credentials.Stored{AccountID: "ada", Project: appID, SealedFor: appID,
			Provider: credentials.ServerPrefix + id, SetAt: f.clock.now()}
		fatal(t, f.store.PutCredential(t.Context(), c, "", f.serverEntry(appID, "credential.set")))
	}
	fatal(t, f.store.MergeProjects(t.Context(), "ada", appID, otherID, audit.New(f.clock.now(), "ada", audit.Person(),
		"project.merged", otherID, "merged")))
	if got := must(f.store.LocalServers(t.Context(), "ada", otherID))(t); len(got) != 2 ||
		got[0].ID != "a" || got[1].ID != "b" {
		t.Errorf("servers: got %+v, want a and b", got)
	}
	keys := must(f.store.Credentials(t.Context(), "ada", otherID))(t)
	if len(keys) != 1 || keys[0].Provider != credentials.ServerPrefix+"a" {
		t.Errorf("keys of servers: got %+v, want one", keys)
	}
}
