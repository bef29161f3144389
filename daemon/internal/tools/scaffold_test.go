package tools

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/scaffold"
	"github.com/service-dev/service/glasses/guide"
	"github.com/service-dev/service/internal/clientio/local"
	"github.com/service-dev/service/internal/problem"
)

const mintedKey = "spk_abcdefghijklmnopqrstuvwxyz0123456789"

// keys creates project keys for linked callers, as the backend does.
type keys struct {
	mu     sync.Mutex
	minted int
	slow   time.Duration
	err    error // if set, the backend's refusal
}

func (k *keys) MintProjectKey(_ context.Context, target backend.Target, project,
	name string) (backend.ProjectKey, error) {
	if target.Bearer == "" {
		return backend.ProjectKey{}, &problem.Error{Code: problem.CodeAuthRequired, Message: "link first"}
	}
	time.Sleep(k.slow) // a slow backend
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err != nil {
		return backend.ProjectKey{}, k.err
	}
	k.minted++
	return backend.ProjectKey{Key: mintedKey, Hint: "6789"}, nil
}

// in calls a tool from a directory.
func (w *world) in(dir string, t *testing.T, name string, args map[string]any) (Result, map[string]any) {
	t.Helper()
	data, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return w.callIn(caller.With(context.Background(), caller.Caller{Cwd: dir, Client: "agent", IO: local.New()}), t,
		name, string(data), IO{})
}

// A failure that may pass is reported as such.
func TestGenerate_KeepsWhetherToRetry(t *testing.T) {
	w := newWorld().linked()
	w.keys = &keys{err: problem.New(problem.CodeBackendUnreachable, "no answer", "")}
	result, fields := w.in(t.TempDir(), t, "generateConnectionModule", map[string]any{"language": "python",
		"project": "com.example.app"})
	if !result.IsError || fields["code"] != problem.CodeBackendUnreachable || fields["retryable"] != true {
		t.Errorf("%s", result.Text)
	}
}

func TestGenerate_WritesNothingWithoutALink(t *testing.T) {
	w, dir := newWorld(), t.TempDir()
	w.keys = &keys{}
	result, fields := w.in(dir, t, "generateConnectionModule", map[string]any{"language": "python"})
	if result.IsError || fields["status"] != "auth_required" {
		t.Errorf("%s", result.Text)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 || w.keys.minted != 0 {
		t.Errorf("files %v, error %v, %d keys; want none", left, err, w.keys.minted)
	}
}

// An agent started in the home directory or above does not write a module, key or service.json there.
func TestGenerate_WritesNothingIntoASharedDirectory(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	w := newWorld().linked()
	w.keys = &keys{}
	module := filepath.Join(home, "my-app", "service")
	for dir, wrong := range map[string][]string{home: {"", "service", "my-app/service"}, "/": {"", "service", "/service"}} {
		for _, module := range wrong {
			_, fields := w.in(dir, t, "generateConnectionModule", map[string]any{"language": "python", "dir": module})
			if hint, _ := fields["fixHint"].(string); fields["code"] != problem.CodeInvalidRequest || !strings.Contains(hint,
				"Pass dir") {
				t.Errorf("in %s with dir %q: %v, want it refused with a hint", dir, module, fields)
			}
		}
		if _, fields := w.in(dir, t, "validateIntegration", nil); fields["code"] != problem.CodeInvalidRequest {
			t.Errorf("validateIntegration in %s: %v, want it refused", dir, fields)
		}
	}
	left, err := os.ReadDir(home)
	if err != nil || len(left) != 0 || w.keys.minted != 0 {
		t.Errorf("files %v, error %v, %d keys; want none", left, err, w.keys.minted)
	}
	if err := os.Mkdir(filepath.Dir(module), 0o700); err != nil {
		t.Fatal(err)
	}
	result, _ := w.in("/", t, "generateConnectionModule", map[string]any{"language": "python", "dir": module})
	if _, err := os.Stat(filepath.Join(home, "my-app", "service.json")); result.IsError || err != nil {
		t.Errorf("with an absolute dir: %s, error %v; want the module in that app", result.Text, err)
	}
}

// An agent whose client timed out repeats the call while the first call is still running.
func TestGenerate_ConcurrentCallsCreateOneKey(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld().linked()
		w.keys = &keys{slow: time.Second}
		c := w.catalogue()
		ctx := caller.With(t.Context(), caller.Caller{Cwd: dir, Client: "agent", IO: local.New()})
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if result := c.Call(ctx, "generateConnectionModule", json.RawMessage(`{"language":"python"}`),
					IO{}); result.IsError {
					t.Errorf("%s", result.Text)
				}
			})
		}
		all.Wait()
		if w.keys.minted != 1 {
			t.Errorf("%d keys were created, want 1", w.keys.minted)
		}
	})
}

func TestGenerate_ThenUseAndValidate(t *testing.T) {
	w, dir := newWorld().linked(), t.TempDir()
	w.keys = &keys{}
	args := map[string]any{"language": "python", "capabilities": []string{"display", "input"},
		"project": "com.example.app"}
	result, fields := w.in(dir, t, "generateConnectionModule", args)
	if result.IsError || fields["status"] != "generated" || strings.Contains(result.Text, mintedKey) {
		t.Fatalf("%s", result.Text)
	}
	if data, err := os.ReadFile(fields["keyFile"].(string)); err != nil || strings.TrimSpace(string(data)) != mintedKey {
		t.Errorf("the key file does not contain the key: %v", err)
	}
	if _, again := w.in(dir, t, "generateConnectionModule", args); again["status"] != "unchanged" || w.keys.minted != 1 {
		t.Errorf("second call: %v, %d keys; want unchanged and 1", again["status"], w.keys.minted)
	}
	if _, fields := w.in(dir, t, "validateIntegration", nil); fields["verdict"] != "needs_work" {
		t.Errorf("%v", fields["findings"])
	}
	if err := os.WriteFile(filepath.Join(dir, "hello.py"), []byte(fields["example"].(string)), 0o600); err != nil {
		t.Fatal(err)
	}
	result, fields = w.in(dir, t, "validateIntegration", nil)
	if fields["verdict"] != "ready" || fields["errors"] != 0.0 || fields["warnings"] != 0.0 {
		t.Errorf("%s", result.Text)
	}
	// The verdict ready covers only the parts that were checked.
	if left, _ := fields["notChecked"].([]any); len(left) == 0 ||
		fields["cannotPublishYet"] != guide.NotInThisVersion ||
		!strings.Contains(fields["summary"].(string), "Cannot be published yet: "+guide.NotInThisVersion) {
		t.Errorf("%s", result.Text)
	}
	if _, checklist := w.call(t, "getProductionChecklist", `{}`, IO{}); checklist["cannotPublishYet"] !=
		guide.NotInThisVersion {
		t.Errorf("%v", checklist["summary"])
	}
	dynamic := filepath.Join(dir, "voice.py")
	if err := os.WriteFile(dynamic, []byte("glasses.announce(phrases_of(user))\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, incomplete := w.in(dir, t, "validateIntegration", nil)
	if left, _ := incomplete["notChecked"].([]any); incomplete["verdict"] == "ready" || len(left) == 0 ||
		!strings.Contains(left[0].(string), "voice.py:1") {
		t.Errorf("phrases that could not be read: %v, want them in notChecked", incomplete)
	}
	if err := os.Remove(dynamic); err != nil {
		t.Fatal(err)
	}
	w.locally()
	w.opened.DeviceModel, w.opened.Project = "even_g1", "com.example.other"
	w.page = rows(`{"seq":1,"kind":"result","type":"result","id":"a-1","sender":"glasses","payload":{"ok":true,` +
		`"findings":[{"kind":"cut","path":"tree.children[4]","text":"Next"}]}}`)
	if result, _ = w.in(dir, t, "validateIntegration", nil); strings.Contains(result.Text, "display_misfit") {
		t.Errorf("a session of another project: %s, want no display_misfit", result.Text)
	}
	w.opened.Project = "com.example.app"
	result, fields = w.in(dir, t, "validateIntegration", nil)
	if fields["verdict"] != "ready" || fields["warnings"] != 1.0 || !strings.Contains(result.Text, "display_misfit") {
		t.Errorf("a session with content that does not fit: %s, want display_misfit", result.Text)
	}
	if _, fields := w.in(filepath.Dir(dir), t, "inspectIntegration",
		map[string]any{"dir": dir}); fields["project"] != "com.example.app" {
		t.Errorf("%v", fields)
	}

	module := filepath.Join(dir, "service", "glasses.py")
	if err := os.WriteFile(module, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if result, _ := w.in(dir, t, "generateConnectionModule", args); result.Outcome != problem.CodeGeneratedFileChanged {
		t.Errorf("%s", result.Text)
	}
	if result, _ := w.in("", t, "generateConnectionModule", args); result.Outcome != problem.CodeFolderUnusable {
		t.Errorf("%s", result.Text)
	}
	if result, _ := w.in(dir, t, "generateConnectionModule",
		map[string]any{"language": "cobol"}); result.Outcome != problem.CodeInvalidRequest {
		t.Errorf("%s", result.Text)
	}
}

// The connection page is written next to the module. A failure to fetch it does not make the call fail.
func TestGenerate_WritesTheConnectionPage(t *testing.T) {
	w, dir := newWorld().linked(), t.TempDir()
	w.keys = &keys{}
	args := map[string]any{"language": "python", "project": "com.example.app"}
	generate := func(more string, value any) map[string]any {
		t.Helper()
		args := map[string]any{"language": args["language"], "project": args["project"]}
		if more != "" {
			args[more] = value
		}
		result, fields := w.in(dir, t, "generateConnectionModule", args)
		if result.IsError {
			t.Fatalf("%s", result.Text)
		}
		return fields
	}
	page := filepath.Join(dir, "service", "connect.html")
	w.account.err = &problem.Error{Code: problem.CodeBackendUnreachable, Message: "no answer in time"}
	if fields := generate("", nil); fields["connectionPage"] != "unavailable" || fields["status"] != "generated" ||
		!strings.Contains(fields["summary"].(string), "no answer in time") {
		t.Errorf("without an answer: %v, want unavailable", fields["summary"])
	}
	w.account.err = nil
	if fields := generate("connectionPage", false); fields["connectionPage"] != "left_out" ||
		fields["status"] != "unchanged" {
		t.Errorf("without the page: %v, want left_out", fields)
	}
	if _, err := os.Stat(page); !os.IsNotExist(err) {
		t.Errorf("the page exists although it was not requested: %v", err)
	}
	if fields := generate("", nil); fields["connectionPage"] != "placed" || fields["status"] != "generated" {
		t.Errorf("placed: %v", fields)
	}
	if data, err := os.ReadFile(page); err != nil || string(data) != w.account.html {
		t.Errorf("%q, %v", data, err)
	}
	if fields := generate("", nil); fields["status"] != "unchanged" {
		t.Errorf("again: %v", fields)
	}
	if err := os.WriteFile(page, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if fields := generate("", nil); fields["connectionPage"] != "kept" || fields["status"] != "unchanged" ||
		!strings.Contains(fields["summary"].(string), "force: true") {
		t.Errorf("after a manual change: %v, want kept", fields)
	}
	if _, fields := w.in(dir, t, "inspectIntegration", nil); len(fields["connectionPages"].([]any)) != 1 {
		t.Errorf("inspected %v, want one page", fields["connectionPages"])
	}
	if fields := generate("force", true); fields["connectionPage"] != "placed" {
		t.Errorf("forced: %v", fields)
	}
}

func TestCodeExamples(t *testing.T) {
	w := newWorld()
	for _, language := range scaffold.Languages() {
		for _, topic := range scaffold.ExampleTopicIDs() {
			result, fields := w.in("/", t, "getCodeExample", map[string]any{"language": language, "topic": topic,
				"includeModule": true})
			if result.IsError || len(fields["files"].([]any)) < 2 {
				t.Errorf("%s %s: %s", language, topic, result.Text)
			}
		}
	}
	if result, fields := w.in("/", t, "getCodeExample", map[string]any{"language": "swift"}); result.IsError ||
		fields["topic"] != "hello" {
		t.Errorf("%s", result.Text)
	}
	if result, _ := w.in("/", t, "getCodeExample", map[string]any{"language": "python",
		"topic": "cooking"}); result.Outcome != problem.CodeUnknownExample {
		t.Errorf("%s", result.Text)
	}
}

// Without an account: get an example, use a capability that its module lacks, and follow the hints until it is ready.
func TestCodeExamples_AddACapabilityWithoutAnAccount(t *testing.T) {
	w, dir := newWorld(), t.TempDir()
	args := map[string]any{"language": "python", "topic": "hello", "dir": dir}
	result, fields := w.in("/", t, "getCodeExample", args)
	if result.IsError || len(fields["files"].([]any)) != 2 || strings.Contains(result.Text, "def connect") {
		t.Fatalf("%s", result.Text)
	}
	app := filepath.Join(dir, "hello.py")
	data, err := os.ReadFile(app)
	if err != nil {
		t.Fatal(err)
	}
	mine := string(data) + "\nglasses.photo()\n"
	if err := os.WriteFile(app, []byte(mine), 0o600); err != nil {
		t.Fatal(err)
	}
	result, fields = w.in(dir, t, "validateIntegration", nil)
	if fields["verdict"] != "needs_work" || !strings.Contains(result.Text, scaffold.FindCapability) ||
		!strings.Contains(result.Text, "Call getCodeExample") {
		t.Errorf("%s", result.Text)
	}
	args["dir"], args["capabilities"] = ".", []string{"camera"}
	if result, _ = w.in(dir, t, "getCodeExample", args); result.IsError ||
		!strings.Contains(result.Text, `"capabilities":["display","camera","input","time"]`) ||
		!strings.Contains(result.Text, "kept") {
		t.Errorf("%s", result.Text)
	}
	if data, err := os.ReadFile(app); err != nil || string(data) != mine {
		t.Errorf("the changed app was overwritten (error %v)", err)
	}
	if result, fields = w.in(dir, t, "validateIntegration", nil); fields["verdict"] != "ready" {
		t.Errorf("%s", result.Text)
	}
	// Adding another example to the folder removes nothing from the module.
	if result, _ = w.in(dir, t, "getCodeExample", map[string]any{"language": "python", "topic": "voice",
		"dir": dir}); !strings.Contains(result.Text, `"display","camera","transcription"`) {
		t.Errorf("%s", result.Text)
	}
	module := filepath.Join(dir, "service", "glasses.py")
	if err := os.WriteFile(module, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if result, _ = w.in(dir, t, "getCodeExample", args); result.Outcome != problem.CodeGeneratedFileChanged {
		t.Errorf("%s", result.Text)
	}
	if data, err := os.ReadFile(module); err != nil || string(data) != "mine" {
		t.Errorf("a module changed by hand was overwritten (error %v)", err)
	}
}

func TestCodeExamples_NameTheMissingFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nope")
	result, _ := newWorld().in(t.TempDir(), t, "getCodeExample", map[string]any{"language": "python", "dir": dir})
	if result.Outcome != problem.CodeFolderUnusable || !strings.Contains(result.Text, dir+" does not exist") {
		t.Errorf("%s", result.Text)
	}
}

// An example comes with its test, which belongs to the app once it is written.
func TestCodeExamples_WriteTheTest(t *testing.T) {
	w, dir := newWorld(), t.TempDir()
	args := map[string]any{"language": "python", "topic": "conversation", "dir": dir}
	result, _ := w.in(dir, t, "getCodeExample", args)
	if result.IsError || !strings.Contains(result.Text, "servicectl session run tests/conversation.json -- COMMAND") {
		t.Fatalf("%s", result.Text)
	}
	scenario := filepath.Join(dir, "tests", "conversation.json")
	if err := os.WriteFile(scenario, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	result, _ = w.in(dir, t, "getCodeExample", args)
	if data, err := os.ReadFile(scenario); err != nil || string(data) != "mine" ||
		!strings.Contains(result.Text, `"tests/conversation.json","state":"kept"`) {
		t.Errorf("the changed test is %q (error %v): %s", data, err, result.Text)
	}
}

// Only generateConnectionModule writes the module of a project, because another module would not match its manifest.
func TestCodeExamples_LeaveAProjectsModule(t *testing.T) {
	w, dir := newWorld().linked(), t.TempDir()
	w.keys = &keys{}
	if result, _ := w.in(dir, t, "generateConnectionModule", map[string]any{"language": "python"}); result.IsError {
		t.Fatalf("%s", result.Text)
	}
	if result, _ := w.in(dir, t, "getCodeExample", map[string]any{"language": "python", "dir": dir,
		"capabilities": []string{"camera"}}); result.Outcome != problem.CodeInvalidRequest {
		t.Errorf("%s", result.Text)
	}
	if _, err := os.Stat(filepath.Join(dir, "hello.py")); !os.IsNotExist(err) {
		t.Errorf("the example was written: %v", err)
	}
}

func TestCodeExamples_AnswerTextToAClientWithoutFiles(t *testing.T) {
	ctx := caller.With(t.Context(), caller.Caller{Cwd: t.TempDir(), Client: "agent"})
	result, fields := newWorld().callIn(ctx, t, "getCodeExample",
		`{"language":"python","dir":"app","capabilities":["camera"]}`, IO{})
	if result.IsError || !strings.Contains(result.Text, "This client cannot write files") ||
		len(fields["files"].([]any)) != 2 || !strings.Contains(result.Text, "camera.photo") {
		t.Errorf("%s", result.Text)
	}
}
