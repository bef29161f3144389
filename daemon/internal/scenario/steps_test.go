package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/scenario"
	wire "github.com/service-dev/service/internal/clientio"
	"github.com/service-dev/service/internal/clientio/local"
	"github.com/service-dev/service/internal/problem"
)

func listOf(t *testing.T, steps string) []scenario.Step {
	t.Helper()
	list, err := scenario.ParseSteps([]byte("[" + steps + "]"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestRunSteps_StopsAtTheFirstFailure(t *testing.T) {
	s := attended{show(glasses.FreshState(), glasses.Node{Type: glasses.NodeText, Text: "Milk"})}
	report, err := New(s).RunSteps(t.Context(), StepsRequest{Files: ours, SessionID: "ses_abcdefgh", Steps: listOf(t,
		`{"expectDisplay":{"text":["Milk"]}},{"picture":"list"},{"expect":{"type":"nothing","withinMs":0}},{"advance":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	var verdicts, pictures []string
	for _, step := range report.Steps {
		verdicts = append(verdicts, step.Verdict)
	}
	for _, p := range report.Pictures {
		pictures = append(pictures, p.Name)
		if len(p.PNG) == 0 || sum(p.PNG) != p.SHA256 {
			t.Errorf("picture %s has %d bytes, want PNG bytes that match its SHA-256", p.Name, len(p.PNG))
		}
	}
	if got := strings.Join(verdicts, " "); report.Verdict != Fail || got != "pass pass fail skipped" {
		t.Errorf("%s: %s", report.Verdict, got)
	}
	if got := strings.Join(pictures, " "); got != "list" {
		t.Errorf("pictures: %s", got)
	}
	if text := report.End.Text(); len(text) != 1 || text[0] != "Milk" {
		t.Errorf("the panel shows %v at the end, want Milk", text)
	}
}

// If a long list of steps takes pictures, only the pictures that the answer shows stay in memory.
func TestRunSteps_KeepsTheLastPNGs(t *testing.T) {
	s := attended{show(glasses.FreshState(), glasses.Node{Type: glasses.NodeText, Text: "Milk"})}
	const most = 30
	var list []string
	for i := range most {
		list = append(list, fmt.Sprintf(`{"picture":"p%d"}`, i))
	}
	report, err := New(s).RunSteps(t.Context(), StepsRequest{Files: ours, SessionID: "ses_abcdefgh",
		Steps: listOf(t, strings.Join(list, ","))})
	if err != nil || len(report.Pictures) != most {
		t.Fatalf("%d pictures, error %v; want one per step", len(report.Pictures), err)
	}
	for i, p := range report.Pictures {
		if kept := len(p.PNG) > 0; kept != (i >= most-KeptPNGs) || p.SHA256 == "" {
			t.Errorf("picture %d: PNG kept %v, SHA-256 %q; want only the last PNGs kept", i, kept, p.SHA256)
		}
	}
}

// client is a client whose files are reached as long as the context has not ended.
type client struct{ caller.IO }

func (c client) Do(ctx context.Context, r wire.Request) (wire.Response, error) {
	if err := ctx.Err(); err != nil {
		return wire.Response{}, err
	}
	return c.IO.Do(ctx, r)
}

// Every picture of a step is stored, even if the steps end before it is drawn. One that cannot be stored says why.
func TestRunSteps_StoresEachPicture(t *testing.T) {
	s := attended{show(glasses.FreshState(), glasses.Node{Type: glasses.NodeText, Text: "Milk"})}
	files := clientio.FilesOf(caller.Caller{IO: client{local.New()}})
	req := StepsRequest{Files: files, SessionID: "ses_abcdefgh", Limit: time.Minute,
		Steps: listOf(t, `{"picture":"a"},{"picture":"b"}`)}
	for range 20 {
		req.Artifacts = filepath.Join(t.TempDir(), "pictures")
		report, err := New(s).RunSteps(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range report.Pictures {
			if data, err := os.ReadFile(filepath.Join(req.Artifacts, p.Name+".png")); err != nil || sum(data) != p.SHA256 ||
				p.File == "" || p.Error != "" {
				t.Fatalf("picture %+v: %v", p, err)
			}
		}
	}
	req.Steps = listOf(t, `{"picture":"a"},{"picture":"A"},{"picture":"a"}`)
	report, err := New(s).RunSteps(t.Context(), req)
	if err != nil || report.Pictures[1].Name != "A-2" || report.Pictures[2].Name != "a-3" {
		t.Errorf("three pictures of one name: %+v, %v", report.Pictures, err)
	}
	if err := os.Mkdir(filepath.Join(req.Artifacts, "c.png"), 0o700); err != nil {
		t.Fatal(err)
	}
	req.Steps = listOf(t, `{"picture":"c"}`)
	report, err = New(s).RunSteps(t.Context(), req)
	if err != nil || report.Pictures[0].File != "" || !strings.HasPrefix(report.Pictures[0].Error, "not stored: ") {
		t.Errorf("in place of a folder: %+v, %v; want the reason", report.Pictures, err)
	}
}

// The report has the findings of the tree that is on the panel when the first step is judged, although the app showed it
// before the call. It has none of earlier trees.
func TestRunSteps_FindingsAreOfWhatIsJudged(t *testing.T) {
	tall := glasses.Node{Type: glasses.NodeIcon, ID: "now", Icon: "check", Width: 300}
	s := attended{show(glasses.FreshState(), glasses.Node{Type: glasses.NodeColumn,
		Children: []glasses.Node{{Type: glasses.NodeText, Text: "Milk"}, tall}})}
	s.rows = []glasses.Event{{Seq: 1, Kind: glasses.KindResult, Type: glasses.TypeResult, Payload: json.RawMessage(
		`{"ok":true,"findings":[{"kind":"clipped","path":"tree","id":"before"}]}`)}}
	for _, steps := range []string{`{"expectNothingClipped":{"withinMs":0}}`, `{"expectDisplay":{"text":["Milk"]}}`} {
		report, err := New(s).RunSteps(t.Context(), StepsRequest{Files: ours, SessionID: "ses_abcdefgh",
			Steps: listOf(t, steps)})
		if err != nil || len(report.Findings) != 1 || report.Findings[0].ID != "now" {
			t.Errorf("%s: findings %+v (error %v), want the one of the panel", steps, report.Findings, err)
		}
	}
}

// attended is a session with an app.
type attended struct{ *showing }

func (attended) Get(context.Context, backend.Target, string) (backend.Session, error) {
	return backend.Session{Transport: backend.TransportBrowser, Pages: 1, Apps: 1}, nil
}

// unattended is a session without an app, or without a page.
type unattended struct {
	*showing
	pages int
}

func (u unattended) Get(context.Context, backend.Target, string) (backend.Session, error) {
	return backend.Session{Transport: backend.TransportBrowser, Pages: u.pages}, nil
}

func TestRunSteps_NeedsAnApp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for pages, message := range []string{"no simulator page is open", "no app attached to the session in time"} {
			s := unattended{show(glasses.FreshState(), glasses.Node{Type: glasses.NodeText, Text: "Milk"}), pages}
			r := New(s)
			r.attachWait = 0
			_, err := r.RunSteps(t.Context(), StepsRequest{Files: ours, SessionID: "ses_abcdefgh"})
			var refused *problem.Error
			if !errors.As(err, &refused) || refused.Code != problem.CodeNotConnected || refused.Message != message {
				t.Errorf("with %d pages: %v, want not_connected", pages, err)
			}
		}
	})
}

// unpaired is a session with real glasses that are not connected.
type unpaired struct {
	*showing
	refused *problem.Error
	page    string // the page that the user has to open
}

func (u unpaired) Get(context.Context, backend.Target, string) (backend.Session, error) {
	return backend.Session{Transport: session.RealDevice, Clock: backend.ClockReal, Apps: 1, Hardware: &backend.Hardware{
		Links: []backend.HardwareLink{{Key: "left", State: "down"}}, Problem: u.refused,
		ConnectURL: u.page}}, nil
}

// The page of a session that ends with its run cannot be opened in time, so the run does not wait for it.
func TestRuns_DoNotWaitForAPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := unpaired{showing: show(glasses.FreshState(), glasses.Node{Type: glasses.NodeText, Text: "Milk"}),
			page: "http://127.0.0.1:1/#secret"}
		began := time.Now()
		_, err := New(s).RunSteps(t.Context(), StepsRequest{Files: ours, SessionID: "loc_abcdefgh"})
		var p *problem.Error
		if !errors.As(err, &p) || !strings.Contains(p.FixHint, "servicectl glasses connect") ||
			strings.Contains(p.Message+p.FixHint, "secret") || time.Since(began) > 0 {
			t.Errorf("after %v: %+v, want to be sent to the page at once", time.Since(began), err)
		}
	})
}

func TestRuns_SayWhyRealGlassesAreNotConnected(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.json")
	text := `{"scenario":1,"name":"milk","clock":"real","steps":[{"picture":"end"}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for message, refused := range map[string]*problem.Error{
		"the glasses are not connected: switched off":  {Code: "radio_off", Message: "switched off", FixHint: "a"},
		"the glasses are not connected: none in range": {Code: "not_in_range", Message: "none in range", FixHint: "b"},
		"the glasses did not connect in time":          nil,
	} {
		s := unpaired{showing: show(glasses.FreshState(), glasses.Node{Type: glasses.NodeText, Text: "Milk"}),
			refused: refused}
		r := New(s)
		r.attachWait = 0
		_, steps := r.RunSteps(t.Context(), StepsRequest{Files: ours, SessionID: "loc_abcdefgh"})
		_, whole := r.Run(t.Context(), Request{Files: ours, SessionID: "loc_abcdefgh", Path: path})
		for _, err := range []error{steps, whole} {
			var p *problem.Error
			if !errors.As(err, &p) || p.Code != problem.CodeNotConnected || p.Message != message ||
				refused != nil && p.FixHint != refused.FixHint {
				t.Errorf("%+v, want %q", err, message)
			}
		}
	}
}

// slow is a session in real time whose clock advances.
type slow struct {
	attended
	begun time.Time
}

func (s slow) Get(ctx context.Context, target backend.Target, id string) (backend.Session, error) {
	got, err := s.attended.Get(ctx, target, id)
	got.NowMs = time.Since(s.begun).Milliseconds()
	return got, err
}

func TestRunSteps_SaysWhereTheLimitStoppedThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := slow{attended{show(glasses.FreshState(), glasses.Node{Type: glasses.NodeText, Text: "Milk"})}, time.Now()}
		report, err := New(s).RunSteps(t.Context(), StepsRequest{Files: ours, SessionID: "ses_abcdefgh",
			Limit: 50 * time.Second, Steps: listOf(t, `{"advance":10000},{"advance":60000},{"advance":1}`)})
		if err != nil {
			t.Fatal(err)
		}
		var verdicts []string
		for _, step := range report.Steps {
			verdicts = append(verdicts, step.Verdict)
		}
		if got := strings.Join(verdicts, " "); report.Verdict != Unfinished || got != "pass unfinished skipped" {
			t.Errorf("%s: %s", report.Verdict, got)
		}
		if report.NowMs != 50_000 || len(report.End.Text()) != 1 || !strings.Contains(report.Steps[1].Message, "50s") {
			t.Errorf("stopped at %d ms with %v on the panel and message %q; want 50,000 ms and the limit",
				report.NowMs, report.End.Text(), report.Steps[1].Message)
		}
	})
}
