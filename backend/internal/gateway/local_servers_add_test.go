package gateway

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/dbtest"
)

// faultyKeys stores the key of one server, and fails on demand.
type faultyKeys struct {
	key              string
	checkErr, setErr error
}

func (k *faultyKeys) CheckServerKey(string) error { return k.checkErr }

func (k *faultyKeys) SetServerKey(_ context.Context, _, _, _, value string, _ audit.Actor) error {
	if k.setErr == nil {
		k.key = value
	}
	return k.setErr
}

func (k *faultyKeys) ServerKey(context.Context, string, string, string) (string, error) {
	return k.key, nil
}

func (k *faultyKeys) RemoveServerKey(context.Context, string, string, string, audit.Actor) error {
	if k.setErr == nil {
		k.key = ""
	}
	return k.setErr
}

// newServerStore returns a store with servers in a project.
func newServerStore(t *testing.T, account, project string, servers ...LocalServer) *Store {
	t.Helper()
	d := dbtest.Open(t)
	dbtest.AddAccount(t, d, account)
	dbtest.AddProject(t, d, account, project)
	store := NewStore(d)
	for _, s := range servers {
		e := audit.New(time.Now(), account, audit.Person(), "local_server.added", project, "x")
		if err := store.PutLocalServer(t.Context(), s, 10, e); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

// If any step fails, the server that would have been replaced keeps its settings and key.
func TestLocalServers_AddChangesNothingIfItFails(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer server.Close()
	fault := errors.New("fault")
	const app = "com.example.hello"
	old := LocalServer{ID: "mine", BaseURL: "http://localhost:1/v1", Models: []string{"a"}, Keyed: true}
	for key, servers := range map[string][]LocalServer{"old": {old}, "": nil} {
		for what, k := range map[string]*faultyKeys{"check": {checkErr: fault}, "put": {}, "set": {setErr: fault}} {
			store := newServerStore(t, "ada", app, servers...)
			if what == "put" {
				dbtest.Exec(t, store.DB, `CREATE TRIGGER refuse BEFORE INSERT ON local_servers
					BEGIN SELECT RAISE(ABORT, 'fault'); END`)
			}
			before, err := store.LocalServers(t.Context(), "ada", app)
			if err != nil {
				t.Fatal(err)
			}
			k.key, asked = key, 0
			_, err = NewLocalServers(store, k, time.Now).Add(t.Context(), "ada", app, "mine", server.URL, "new", audit.Person())
			after, readErr := store.LocalServers(t.Context(), "ada", app)
			if err == nil || !strings.Contains(err.Error(), "fault") || readErr != nil || !reflect.DeepEqual(after, before) ||
				k.key != key {
				t.Errorf("%s: got error %v, servers %+v with key %q; want the fault and no change", what, err, after, k.key)
			}
			if (asked == 0) != (what == "check") {
				t.Errorf("%s: the server received %d requests, want none if the check of the key failed", what, asked)
			}
		}
	}
	servers := NewLocalServers(newServerStore(t, "ada", app), &faultyKeys{}, time.Now)
	for key, problem := range map[string]string{"": errKeyWanted.Error(), "k": errKeyRefused.Error()} {
		s, err := servers.Add(t.Context(), "ada", app, "mine", server.URL, key, audit.Person())
		if err != nil || s.Problem != problem {
			t.Errorf("key %q: got error %v, server %+v, want it added with the problem", key, err, s)
		}
	}
}
