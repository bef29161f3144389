package gateway

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
)

// faultyKeeper stores one server and its key, and fails on demand.
type faultyKeeper struct {
	LocalServerStore
	ServerKeys
	servers                  []LocalServer
	key                      string
	checkErr, putErr, setErr error
}

func (k *faultyKeeper) LocalServers(context.Context, string, string) ([]LocalServer, error) {
	return k.servers, nil
}

func (k *faultyKeeper) PutLocalServer(_ context.Context, s LocalServer, _ int, _ audit.Entry) error {
	if k.putErr == nil {
		k.servers = []LocalServer{s}
	}
	return k.putErr
}

func (k *faultyKeeper) DeleteLocalServer(context.Context, string, audit.Entry) error {
	k.servers = nil
	return nil
}

func (k *faultyKeeper) CheckServerKey(string) error { return k.checkErr }

func (k *faultyKeeper) SetServerKey(_ context.Context, _, _, _, value string, _ audit.Actor) error {
	if k.setErr == nil {
		k.key = value
	}
	return k.setErr
}

func (k *faultyKeeper) ServerKey(context.Context, string, string, string) (string, error) {
	return k.key, nil
}

func (k *faultyKeeper) RemoveServerKey(context.Context, string, string, string, audit.Actor) error {
	if k.setErr == nil {
		k.key = ""
	}
	return k.setErr
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
	old := LocalServer{ID: "mine", BaseURL: "http://localhost:1/v1", Models: []string{"a"}, Keyed: true}
	for _, before := range []faultyKeeper{{servers: []LocalServer{old}, key: "old"}, {}} {
		for what, failing := range map[string]faultyKeeper{
			"check": {checkErr: fault}, "put": {putErr: fault}, "set": {setErr: fault},
		} {
			k := failing
			k.servers, k.key = before.servers, before.key
			asked = 0
			_, err := NewLocalServers(&k, &k, time.Now).
				Add(t.Context(), "ada", "com.example.hello", "mine", server.URL, "new", audit.Person())
			if !errors.Is(err, fault) || !reflect.DeepEqual(k.servers, before.servers) || k.key != before.key {
				t.Errorf("%s: got error %v, servers %+v with key %q; want the fault and no change", what, err, k.servers, k.key)
			}
			if (asked == 0) != (what == "check") {
				t.Errorf("%s: the server received %d requests, want none if the check of the key failed", what, asked)
			}
		}
	}
	k := &faultyKeeper{}
	for key, problem := range map[string]string{"": errKeyWanted.Error(), "k": errKeyRefused.Error()} {
		s, err := NewLocalServers(k, k, time.Now).
			Add(t.Context(), "ada", "com.example.hello", "mine", server.URL, key, audit.Person())
		if err != nil || s.Problem != problem {
			t.Errorf("key %q: got error %v, server %+v, want it added with the problem", key, err, s)
		}
	}
}
