//go:build unix

package pluginhost

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/adapterfile"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/test/ownadapter"
)

// described is Go source that is added to the built adapter. The adapter then returns the description in the file
// <program>.json.
const described = `package main

import (
	"encoding/json"
	"os"

	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

func described() *pluginv1.DescribeTransportResponse {
	d := &pluginv1.DescribeTransportResponse{}
	data, _ := os.ReadFile(os.Args[0] + ".json")
	_ = json.Unmarshal(data, d)
	return d
}
`

// buildDescribed builds the documented adapter with a description that tests choose.
var buildDescribed = sync.OnceValues(func() (string, error) {
	source, err := ownadapter.Source()
	if err != nil {
		return "", err
	}
	before, after, _ := strings.Cut(source, "return &pluginv1.DescribeTransportResponse{")
	_, after, _ = strings.Cut(after, "}, nil\n")
	dir, err := os.MkdirTemp(built, "own")
	if err != nil {
		return "", err
	}
	return ownadapter.Build("../../..", dir, before+"return described(), nil\n"+after,
		map[string]string{"described.go": described})
})

// ownAdapter writes the adapter with a description into a new folder.
func ownAdapter(t *testing.T, description map[string]any) (path string) {
	t.Helper()
	program, err := buildDescribed()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "program")
	write(t, path, data, 0o700)
	describe(t, path, description)
	return path
}

func describe(t *testing.T, path string, description map[string]any) {
	t.Helper()
	text, err := json.Marshal(description)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path+".json", text, 0o600)
}

// add approves a program as servicectl does, and adds it.
func add(t *testing.T, h *Host, path string) (PluginStatus, error) {
	t.Helper()
	file, err := adapterfile.Inspect(path)
	if err != nil {
		t.Fatal(err)
	}
	withdraw, err := adapterfile.Approve(h.opts.ConfigDir, file)
	if err != nil {
		t.Fatal(err)
	}
	defer withdraw()
	return h.Add(t.Context(), file.Path, file.SHA256)
}

func TestAdd_StoresWhatTheAdapterDescribes(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, t.TempDir())
	path := ownAdapter(t, map[string]any{"name": "own", "version": "7", "title": "Own",
		"device_models": []string{"even_g1"},
		"virtual_clock": true})
	p, err := add(t, h, path)
	if err != nil || p.Name != "own" || p.Version != "7" || p.Title != "Own" || p.State != Stopped || p.PID != 0 {
		t.Fatalf("%+v, %v", p, err)
	}
	want := backend.Transport{Name: "own", Title: "Own", DeviceModels: []string{"even_g1"}, VirtualClock: true}
	again, err := New(h.opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []*Host{h, again} {
		if got, err := h.Transport("own"); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
	if found := h.Check()["own"]; found != nil {
		t.Errorf("an adapter just added is refused: %v", found)
	}
	if _, err := h.Remove("own"); err != nil {
		t.Fatal(err)
	}
	again, err = New(h.opts)
	if err != nil || len(again.Transports()) != len(shippedTransports()) {
		t.Errorf("after its removal: %v, %v", again.Transports(), err)
	}
	if _, err := h.Remove("own"); code(t, err).Code != problem.CodeAdapterNotFound {
		t.Errorf("removed twice: %v", err)
	}
	if _, err := h.Remove(LocalSim); code(t, err).Code != problem.CodeAdapterNotFound {
		t.Errorf("a shipped adapter was removed: %v", err)
	}
}

func TestAdd_RefusesADescription(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, t.TempDir())
	path := ownAdapter(t, nil)
	for reason, description := range map[string]map[string]any{
		"it calls itself":      {"name": LocalSim},
		"is not one of":        {"name": "local"},
		"a name has 1 to":      {"name": "Own Glasses"},
		"calls itself \"\"":    {"name": ""},
		"needs an account":     {"name": "own", "needs_account": true},
		"receive credentials":  {"name": "own", "hosts_sessions": true},
		"its title":            {"name": "own", "title": "two\nlines"},
		"its version":          {"name": "own", "version": strings.Repeat("7", maxVersion+1)},
		"which is unknown":     {"name": "own", "device_models": []string{"even_g1", "nothing"}},
		"more than are known":  {"name": "own", "device_models": append(glasses.ModelIDs(), "even_g1")},
		"not a line of at mos": {"name": "own", "title": strings.Repeat("x", maxTitle+1)},
	} {
		describe(t, path, description)
		_, err := add(t, h, path)
		if p := code(t, err); p.Code != problem.CodeAdapterNotUsable || !strings.Contains(p.Message, reason) ||
			p.FixHint == "" {
			t.Errorf("%v: %+v, want %q", description, p, reason)
		}
	}
	if list := h.Transports(); len(list) != len(shippedTransports()) {
		t.Errorf("refused adapters are listed: %+v", list)
	}
}

func TestAdd_NeedsAnApprovalOfThisFile(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, t.TempDir())
	path := ownAdapter(t, map[string]any{"name": "own"})
	file, err := adapterfile.Inspect(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(want string) {
		t.Helper()
		_, err := h.Add(t.Context(), file.Path, file.SHA256)
		if p := code(t, err); p.Code != want || p.FixHint == "" {
			t.Errorf("%+v, want %s", p, want)
		}
	}
	refused(problem.CodeAdapterNotApproved)
	if _, err := adapterfile.Approve(h.opts.ConfigDir, adapterfile.File{Path: path + "x",
		SHA256: file.SHA256}); err != nil {
		t.Fatal(err)
	}
	refused(problem.CodeAdapterNotApproved)
	if _, err := adapterfile.Approve(h.opts.ConfigDir, file); err != nil {
		t.Fatal(err)
	}
	data, _ := os.ReadFile(path)
	write(t, path, append(data, 'x'), 0o700)
	refused(problem.CodeAdapterNotUsable)
	write(t, path, data, 0o700)
	refused(problem.CodeAdapterNotApproved) // the approval was consumed
}

// An upgrade replaces the shipped adapters, but does not change an added one that lacks a call.
func TestProblemOf_HintsAtWhatAddsTheCall(t *testing.T) {
	t.Parallel()
	missing := status.Error(codes.Unimplemented, "unknown method Attach")
	for name, want := range map[string]string{
		LocalSim: restartReplaced,
		"own":    "Ask the adapter's author to add this call, or choose another transport.",
	} {
		p := code(t, problemOf(t.Context(), name, missing))
		if p.Code != problem.CodeAdapterUnavailable || p.FixHint != want {
			t.Errorf("%s: %+v, want the hint %q", name, p, want)
		}
	}
}

// A file that others could replace, or that changes, is never started. If it is added again, it replaces its earlier
// entry.
func TestAddedFile_IsCheckedBeforeEachStart(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, t.TempDir())
	path := ownAdapter(t, map[string]any{"name": "own"})
	if _, err := add(t, h, path); err != nil {
		t.Fatal(err)
	}
	open := backend.TransportOpen{SessionID: "loc_1", DeviceModel: glasses.DefaultDeviceModel}
	attach := func() error {
		g, err := h.Attach(t.Context(), "own", open)
		if err == nil {
			err = g.Close()
		}
		return err
	}
	data, _ := os.ReadFile(path)
	for reason, spoil := range map[string]func(){
		"can be written by every user": func() { _ = os.Chmod(path, 0o757) },
		"is not executable":            func() { _ = os.Chmod(path, 0o600) },
		"its checksum differs":         func() { write(t, path, append(data, 'x'), 0o700) },
		"is not a regular file":        func() { _ = os.Remove(path); _ = os.Symlink("/bin/true", path) },
		"is missing":                   func() { _ = os.Remove(path) },
	} {
		spoil()
		p := code(t, attach())
		if p.Code != problem.CodeAdapterUnavailable || !strings.Contains(p.Message, reason) || p.FixHint == "" {
			t.Errorf("%+v, want %q", p, reason)
		}
		_ = os.Remove(path)
		write(t, path, data, 0o700)
	}
	if err := attach(); err != nil {
		t.Fatalf("the file that was added is not started: %v", err)
	}
	describe(t, path, map[string]any{"name": "other"})
	if p, err := add(t, h, path); err != nil || p.Name != "other" || len(h.Transports()) != len(shippedTransports())+1 {
		t.Fatalf("the renamed adapter does not replace itself: %+v, %v", h.Transports(), err)
	}
	if err := attach(); code(t, err).Code != problem.CodeUnknownTransport {
		t.Errorf("its old name still works: %v", err)
	}
	second := ownAdapter(t, map[string]any{"name": "other"})
	if _, err := add(t, h, second); code(t, err).Code != problem.CodeAdapterDuplicate {
		t.Errorf("two adapters have one name: %v", err)
	}
}

// The host's built-in descriptions of the shipped transports match the adapters' own descriptions.
func TestShippedTransports_AreAsDescribed(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, install(t))
	before := h.Transports()
	for _, name := range []string{LocalSim, BrowserSim} {
		if _, done, err := h.adapters[name].get(t.Context()); err == nil {
			done()
		} else {
			t.Fatal(err)
		}
	}
	if after := h.Transports(); !reflect.DeepEqual(before, after) {
		t.Errorf("they describe %+v; the host assumed %+v", after, before)
	}
}

func TestParseAdded_BoundsTheOwner(t *testing.T) {
	t.Parallel()
	for owner, usable := range map[string]bool{"": true, strings.Repeat("o", maxOwner): true,
		strings.Repeat("o", maxOwner+1): false, "a\nb": false} {
		data, err := json.Marshal(addedList{Adapters: []addedAdapter{
			{Name: "own", Path: "/opt/own", SHA256: strings.Repeat("ab", 32), Owner: owner}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseAdded(data); (err == nil) != usable {
			t.Errorf("an owner of %d bytes: %v", len(owner), err)
		}
	}
}

func TestAdd_LogsTheFileUntilItHasAName(t *testing.T) {
	t.Parallel()
	h, log := serve(t, t.TempDir())
	if _, err := add(t, h, ownAdapter(t, map[string]any{"name": "own"})); err != nil {
		t.Fatal(err)
	}
	if text := log.String(); strings.Contains(text, `adapter=""`) || !strings.Contains(text, "adapter=program") {
		t.Errorf("the log does not name the file:\n%s", text)
	}
}

func TestNew_RenamesAnUnusableList(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, addedName), []byte(`{"adapters":[{"name":"localsim","path":"/x"}]}`), 0o600)
	sockets := t.TempDir()
	log := &lines{}
	h, err := New(Options{Dir: dir, ConfigDir: dir, SocketDir: sockets, Log: slog.New(slog.NewTextHandler(log, nil)),
		Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }})
	if err != nil || len(h.Transports()) != len(shippedTransports()) || !strings.Contains(log.String(),
		"list of added adapters") {
		t.Fatalf("%v, %s", err, log)
	}
	if _, err := os.Stat(filepath.Join(dir, addedName+".corrupt-20260102T030405Z")); err != nil {
		t.Error(err)
	}
}

func FuzzParseAdded(f *testing.F) {
	sum := strings.Repeat("ab", 32)
	for _, seed := range []string{``, `{}`, `{"adapters":[{"name":"own","path":"/opt/own","sha256":"` + sum + `"}]}`,
		`{"adapters":[{"name":"localsim","path":"/x","sha256":"` + sum + `"}]}`,
		`{"adapters":[{"name":"own","path":"x","sha256":"` + sum + `","deviceModels":["?"]}]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := parseAdded(data)
		if err != nil {
			if !errors.Is(err, errUnusable) || list != nil {
				t.Fatalf("%v, %v", list, err)
			}
			return
		}
		seen := map[string]bool{LocalSim: true, HTTP: true, Local: true}
		for _, a := range list {
			if seen[a.Name] || !filepath.IsAbs(a.Path) || len(a.SHA256) != 64 || !isLine(a.Title) || !isOwner(a.Owner) ||
				len(list) > maxAdded {
				t.Fatalf("accepted %+v", a)
			}
			seen[a.Name] = true
		}
	})
}

// Only a copy that this daemon could have made is run: an executable file, not a link, that other users cannot write
// to. Any other copy is made again.
func TestCopyOf_ReplacesWhatItDidNotMake(t *testing.T) {
	t.Parallel()
	h, _ := serve(t, t.TempDir())
	path := ownAdapter(t, map[string]any{"name": "own"})
	if _, err := add(t, h, path); err != nil {
		t.Fatal(err)
	}
	entry := *h.listAdded()[0].added
	copied, err := h.copyOf(entry)
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func() error{
		"a link":         func() error { return errors.Join(os.Remove(copied), os.Symlink(path, copied)) },
		"not executable": func() error { return os.Chmod(copied, 0o400) },
		"writable":       func() error { return os.Chmod(copied, 0o777) },
		"another file": func() error {
			return errors.Join(os.Remove(copied), os.WriteFile(copied, []byte("x"), 0o500))
		},
		"missing": func() error { return os.Remove(copied) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if got, err := h.copyOf(entry); err != nil || got != copied || !isOwnProgram(copied) {
			t.Errorf("%s: %s, %v; own program %t", name, got, err, isOwnProgram(copied))
		}
	}
}
