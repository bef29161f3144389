package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/service-dev/service/internal/clientio/local"
	"github.com/service-dev/service/internal/problem"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/proto/backendapi"
)

// from returns the caller of a client in this process and in the given directory.
func from(cwd string) caller.Caller { return caller.Caller{Cwd: cwd, IO: local.New()} }

const testID = "ses_abcdefgh234567abcdef"

// fakeBackend opens one session for each project and platform.
type fakeBackend struct {
	noPages
	mu       sync.Mutex
	sessions map[string]backend.Session
	minted   int
	err      error
	asked    backendapi.SessionRequest
	since    int64
	limit    int
}

func (f *fakeBackend) CreateSession(
	_ context.Context, _ backend.Target, req backendapi.SessionRequest,
) (backend.Session, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = req
	if f.err != nil {
		return backend.Session{}, false, f.err
	}
	key := req.Project + " " + req.Platform
	if s, ok := f.sessions[key]; ok && !req.Fresh {
		return s, false, nil
	}
	if f.sessions == nil {
		f.sessions = map[string]backend.Session{}
	}
	s := backend.Session{SessionID: fmt.Sprintf("ses_abcdefgh%d", len(f.sessions)), Project: req.Project,
		Platform: req.Platform, State: "open"}
	f.sessions[key] = s
	return s, true, nil
}

func (f *fakeBackend) GetSession(_ context.Context, _ backend.Target, id string) (backend.Session, error) {
	return backend.Session{SessionID: id}, f.err
}

func (f *fakeBackend) ListSessions(context.Context, backend.Target) ([]backend.Session, error) {
	return []backend.Session{{SessionID: "ses_a", State: "open"}, {SessionID: "ses_b", State: "closed"}}, f.err
}

func (f *fakeBackend) CloseSession(_ context.Context, _ backend.Target, id string) (backend.Session, error) {
	return backend.Session{SessionID: id, State: "closed"}, f.err
}

func (f *fakeBackend) MintSessionSecret(context.Context, backend.Target, string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.minted++
	return fmt.Sprintf("sst_%d", f.minted), f.err
}

func (f *fakeBackend) ListEvents(_ context.Context, _ backend.Target, _ string, since int64,
	limit int) (backendapi.EventPage, error) {
	f.since, f.limit = since, limit
	return backendapi.EventPage{}, f.err
}

func newManager(t *testing.T) (*Manager, *fakeBackend, string) {
	t.Helper()
	dir := t.TempDir()
	f := &fakeBackend{}
	return New(Options{StateDir: dir, Backend: f}), f, dir
}

func code(err error) string {
	var p *problem.Error
	if errors.As(err, &p) {
		return p.Code
	}
	return fmt.Sprint(err)
}

func TestOpen_SavesSecretInFile(t *testing.T) {
	m, f, dir := newManager(t)
	open := func(req Request) Opened {
		t.Helper()
		o, err := m.Open(t.Context(), backend.Target{}, caller.Caller{}, req)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	first := open(Request{Project: "com.example.app"})
	data, err := os.ReadFile(first.AppTokenFile)
	if err != nil || string(data) != "sst_1" || !first.Created {
		t.Fatalf("secret %q, error %v, created %v; want a new session with sst_1", data, err, first.Created)
	}
	if want := filepath.Join(dir, "sessions", first.SessionID, "app.token"); first.AppTokenFile != want {
		t.Errorf("the file is %s, want %s", first.AppTokenFile, want)
	}
	if runtime.GOOS != "windows" {
		for path, mode := range map[string]fs.FileMode{first.AppTokenFile: 0o600, filepath.Dir(first.AppTokenFile): 0o700,
			filepath.Join(dir, "sessions"): 0o700} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
				t.Errorf("%s has mode %v, error %v; want it private", path, info.Mode(), err)
			}
		}
	}
	again := open(Request{Project: "com.example.app"})
	if again.Created || again.SessionID != first.SessionID || f.minted != 1 {
		t.Errorf("opened again: %+v after %d secrets; want the same session and one secret", again, f.minted)
	}
	if err := os.Remove(first.AppTokenFile); err != nil {
		t.Fatal(err)
	}
	open(Request{Project: "com.example.app"})
	if data, _ := os.ReadFile(first.AppTokenFile); string(data) != "sst_2" {
		t.Errorf("a missing file was rewritten with %q, want sst_2", data)
	}
	if _, err := m.Close(t.Context(), backend.Target{}, first.SessionID); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(first.AppTokenFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the secret still exists after its session closed: %v", err)
	}
}

func TestOpen_MintsOneSecretConcurrently(t *testing.T) {
	m, f, _ := newManager(t)
	if _, err := m.Open(t.Context(), backend.Target{}, caller.Caller{}, Request{Project: "a.b"}); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(m.opts.StateDir, Dir)); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if _, err := m.Open(t.Context(), backend.Target{}, caller.Caller{}, Request{Project: "a.b"}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if f.minted != 2 {
		t.Errorf("%d secrets were created, want the first and one for all others", f.minted)
	}
	if len(m.minting.locks) != 0 {
		t.Errorf("%d locks are left, want none", len(m.minting.locks))
	}
}

func TestOpen_ChecksRequest(t *testing.T) {
	for _, test := range []struct {
		req  Request
		code string
	}{
		{Request{Project: "com.example.app", Platform: "ios", DeviceModel: "even_g1"}, ""},
		{Request{Project: "com.example.My-App_2", Platform: "desktop"}, ""},
		{Request{Project: "app"}, problem.CodeInvalidRequest},
		{Request{Project: "../../etc"}, problem.CodeInvalidRequest},
		{Request{Project: "a..b"}, problem.CodeInvalidRequest},
		{Request{Project: "a." + strings.Repeat("b", 200)}, problem.CodeInvalidRequest},
		{Request{Project: "a.b", Platform: "watch"}, problem.CodeInvalidRequest},
		{Request{Project: "a.b", DeviceModel: "x/../y"}, problem.CodeInvalidRequest},
	} {
		m, f, _ := newManager(t)
		_, err := m.Open(t.Context(), backend.Target{}, caller.Caller{}, test.req)
		if test.code == "" && err != nil || test.code != "" && code(err) != test.code {
			t.Errorf("%+v: %v", test.req, err)
		}
		if test.code != "" && f.asked.Project != "" {
			t.Errorf("the invalid request %+v was sent to the backend", test.req)
		}
	}
}

func TestManager_RefusesInvalidIDs(t *testing.T) {
	m, _, _ := newManager(t)
	for _, id := range []string{"", "..", "ses_", "ses_../../x", "ses_ABCDEFGH", testID + "/x", strings.Repeat("s", 500)} {
		if _, err := m.Get(t.Context(), backend.Target{}, id); code(err) != problem.CodeNotFound {
			t.Errorf("get %q: %v", id, err)
		}
		if _, err := m.Close(t.Context(), backend.Target{}, id); code(err) != problem.CodeNotFound {
			t.Errorf("close %q: %v", id, err)
		}
		if _, err := m.Since(t.Context(), backend.Target{}, id, 0, 0); code(err) != problem.CodeNotFound {
			t.Errorf("events of %q: %v, want not_found", id, err)
		}
	}
}

func TestManager_ListsSessionsAndEvents(t *testing.T) {
	m, f, _ := newManager(t)
	if open, err := m.List(t.Context(), backend.Target{Bearer: "svc_x"}); err != nil || len(open) != 1 ||
		open[0].SessionID != "ses_a" {
		t.Errorf("open sessions: %v, error %v; want only ses_a", open, err)
	}
	for _, test := range []struct {
		since      int64
		limit      int
		wantSince  int64
		wantLimits int
	}{{0, 0, 0, 100}, {-1, -1, 0, 100}, {7, 9999, 7, 500}} {
		if _, err := m.Since(t.Context(), backend.Target{Bearer: "svc_x"}, testID, test.since, test.limit); err != nil ||
			f.since != test.wantSince || f.limit != test.wantLimits {
			t.Errorf("%+v: requested since %d limit %d, error %v", test, f.since, f.limit, err)
		}
	}
	f.err = &problem.Error{Code: problem.CodeBackendUnreachable, Message: "down"}
	if _, err := m.List(t.Context(), backend.Target{Bearer: "svc_x"}); code(err) != problem.CodeBackendUnreachable {
		t.Errorf("listing without a backend: %v, want unreachable", err)
	}
}

func TestOpen_ChoosesProject(t *testing.T) {
	m, f, _ := newManager(t)
	root := t.TempDir()
	write := func(dir, text string) string {
		t.Helper()
		dir = filepath.Join(root, dir)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if text != "" {
			if err := os.WriteFile(filepath.Join(dir, ManifestName), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	open := func(cwd string, req Request) (string, error) {
		_, err := m.Open(t.Context(), backend.Target{}, from(cwd), req)
		return f.asked.Project, err
	}
	write("app", `{"project":"com.example.app","other":1}`)
	deep := write("app/web/src", "")
	write("app/service", `{"name":"another tool's file"}`)
	for cwd, want := range map[string]string{
		deep: "com.example.app", filepath.Join(root, "app"): "com.example.app",
		filepath.Join(root, "app/service"): "com.example.app",
	} {
		if got, err := open(cwd, Request{}); got != want || err != nil {
			t.Errorf("%s: %q, %v", cwd, got, err)
		}
	}
	if got, _ := open(deep, Request{Project: "org.other.app"}); got != "org.other.app" {
		t.Errorf("the project is %q, want the argument", got)
	}
	if got, err := open(write("marked", "\ufeff{\"project\":\"com.example.marked\"}"), Request{}); got != "com.example.marked" {
		t.Errorf("a manifest with a byte order mark: project %q, %v", got, err)
	}
	for i, text := range []string{"\xff\xfe{\x00}\x00", "{", `{"project":7}`, `{"project":"x"}`, `[]`, `{"a":"` + strings.Repeat("x", 70<<10) +
		`"}`} {
		if _, err := open(write(fmt.Sprint("bad", i), text), Request{}); code(err) != problem.CodeInvalidManifest {
			t.Errorf("manifest %.20q: %v, want invalid_manifest", text, err)
		}
	}

	here, there := write("plain", ""), write("elsewhere", "")
	first, err := open(here, Request{})
	if err != nil || !strings.HasPrefix(first, "app.local.") || len(first) != len("app.local.")+10 {
		t.Fatalf("random id %q, error %v; want app.local. and 10 characters", first, err)
	}
	if again, _ := open(here, Request{}); again != first {
		t.Errorf("the directory's id changed from %q to %q", first, again)
	}
	for cwd, want := range map[string]string{deep: "com.example.app", here: first, write("unknown", ""): "", "": ""} {
		if got, err := m.Project(t.Context(), "", from(cwd)); got != want || err != nil {
			t.Errorf("the project of %s is %q, want %q, %v", cwd, got, want, err)
		}
	}
	if got, err := m.Project(t.Context(), "a.b", from(deep)); got != "a.b" || err != nil {
		t.Errorf("the project is %q (error %v), want the argument", got, err)
	}
	if _, err := m.Project(t.Context(), "../x", from(deep)); code(err) != problem.CodeInvalidRequest {
		t.Errorf("a project that is not an app id: %v, want invalid_request", err)
	}
	if other, _ := open(there, Request{}); other == first {
		t.Error("two directories have the same id")
	}
	if nowhere, err := open("", Request{}); err != nil || !strings.HasPrefix(nowhere, "app.local.") {
		t.Errorf("without a directory: %q, error %v; want a random id", nowhere, err)
	}
}

func TestProjects_LimitDirectories(t *testing.T) {
	p := &projects{path: filepath.Join(t.TempDir(), projectsName)}
	known := map[string]directoryProject{}
	for i := range maxDirectories {
		known[fmt.Sprintf("/d/%d", i)] = directoryProject{Project: "app.local.x", UsedAt: int64(1000 + i)}
	}
	if err := saveDirectories(p.path, known); err != nil {
		t.Fatal(err)
	}
	if _, err := p.assign("/new"); err != nil {
		t.Fatal(err)
	}
	known, err := loadDirectories[directoryProject](p.path)
	if _, old := known["/d/0"]; err != nil || len(known) != maxDirectories || old || known["/new"].Project == "" {
		t.Errorf("%d directories, the oldest is still there: %v, error %v", len(known), old, err)
	}
	if got := known["/d/1"].UsedAt; got != 1001 {
		t.Errorf("usedAt is %d, want 1001", got)
	}
	if _, err := p.assign("/d/1"); err != nil {
		t.Fatal(err)
	}
	known, _ = loadDirectories[directoryProject](p.path)
	if time.Since(time.UnixMilli(known["/d/1"].UsedAt)) > time.Minute {
		t.Error("a used directory is still the oldest")
	}
	if err := os.WriteFile(p.path, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.assign("/d/1"); err != nil {
		t.Errorf("a broken file: %v, want no error", err)
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"project":"com.example.app"}`))
	f.Add([]byte(`{"project":null}`))
	f.Add([]byte(`{"project":["x"]}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		project, err := parseManifest("service.json", data)
		if err != nil && (code(err) != problem.CodeInvalidManifest || project != "") || err == nil && project != "" &&
			!checkProject(project) {
			t.Errorf("%q: project %q, error %v", data, project, err)
		}
		if err != nil && json.Valid(data) == false && project != "" {
			t.Errorf("%q: project %q, want none", data, project)
		}
	})
}

func TestStateProblem_IsRetryableIfItMayPass(t *testing.T) {
	for _, c := range []struct {
		cause error
		want  bool
	}{{syscall.ENOSPC, true}, {syscall.EMFILE, true}, {syscall.EACCES, false}, {syscall.EROFS, false},
		{syscall.ENOTDIR, false}, {fs.ErrNotExist, false}} {
		var p *problem.Error
		if err := stateProblem("write", fmt.Errorf("x: %w", c.cause)); !errors.As(err, &p) || p.Retryable != c.want {
			t.Errorf("%v: retryable %v, want %v", c.cause, p.Retryable, c.want)
		}
	}
}
