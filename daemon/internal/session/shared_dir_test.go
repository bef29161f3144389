package session

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/internal/problem"
)

// Agents started in the home directory or above share neither sessions nor projects, and a service.json there does not
// apply to any folder.
func TestSharedDirectory_SeparatesAgents(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	app := filepath.Join(home, "app")
	if err := os.Mkdir(app, 0o700); err != nil {
		t.Fatal(err)
	}
	m := newLocal(t, t.TempDir(), &fakeTransports{}, nil)
	agent := func(dir, id string) caller.Caller {
		who := from(dir)
		who.Agent = id
		return who
	}
	open := func(who caller.Caller, req LocalRequest) Opened {
		t.Helper()
		o, err := m.StartLocal(t.Context(), who, req)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	for _, dir := range []string{home, filepath.Dir(home), string(filepath.Separator), ""} {
		a, b := agent(dir, "1-a"), agent(dir, "2-b")
		first, second := open(a, LocalRequest{}), open(b, LocalRequest{})
		if !second.Created || first.Project == second.Project {
			t.Errorf("in %q: two agents share %s of %s", dir, second.SessionID, second.Project)
		}
		if again := open(a, LocalRequest{}); again.SessionID != first.SessionID {
			t.Errorf("in %q: the agent gets %s, want its session %s again", dir, again.SessionID, first.SessionID)
		}
		fresh := open(b, LocalRequest{Fresh: true})
		if got := m.ClosePrevious(t.Context(), backend.Target{}, b, fresh); got.Closed != second.SessionID {
			t.Errorf("in %q: got %+v, want the agent's own session closed", dir, got)
		}
		if id, _ := m.Latest(t.Context(), a); id != first.SessionID {
			t.Errorf("in %q: the other agent's last session is %s, want %s", dir, id, first.SessionID)
		}
		if _, err := m.Open(t.Context(), backend.Target{Bearer: "svc_x"}, a,
			Request{}); code(err) != problem.CodeInvalidRequest {
			t.Errorf("in %q: browser session without a project: %v, want invalid_request", dir, err)
		}
	}
	if a, b := open(agent(app, "1-a"), LocalRequest{}), open(agent(app, "2-b"), LocalRequest{}); a.SessionID != b.SessionID {
		t.Errorf("agents of one app have %s and %s, want one session", a.SessionID, b.SessionID)
	}
	manifest := filepath.Join(home, ManifestName)
	if err := os.WriteFile(manifest, []byte(`{"project":"com.example.home"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{app: "", home: "com.example.home"} {
		if got, err := namedProject(t.Context(), "", from(dir)); got != want || err != nil {
			t.Errorf("service.json in the home directory names %q for %s (error %v), want %q", got, dir, err, want)
		}
	}
}
