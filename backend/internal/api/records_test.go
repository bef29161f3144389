package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/assistant"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/backend/internal/memory"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
)

const (
	app        = "com.example.app"
	appPath    = backendapi.PathProjects + "/" + app
	assistPath = appPath + backendapi.PathAssistant
	pagePath   = appPath + backendapi.PathConnectionPage
)

// newAgent links an install to Ada's account and creates the project.
func newAgent(t *testing.T) (*world, []string) {
	t.Helper()
	w := newWorld(t)
	bearer := []string{"Authorization", "Bearer " + w.link()}
	w.make(w.ada.ID, app)
	return w, bearer
}

// make creates a project by creating its first key.
func (w *world) make(accountID, project string) {
	w.Helper()
	if _, err := w.projects.MintKey(w.Context(), accountID, project, "first", audit.Person()); err != nil {
		w.Fatal(err)
	}
}

// grant lets change set levels of Ada's project, and resets all other levels to their defaults.
func (w *world) grant(change func(g *grants.Grants)) {
	w.Helper()
	g := grants.Default()
	change(&g)
	if err := w.grants.Set(w.Context(), w.ada.ID, app, g, true, audit.Person()); err != nil {
		w.Fatal(err)
	}
}

func TestListProjects(t *testing.T) {
	w, bearer := newAgent(t)
	var created backendapi.CreatedSession
	w.call("POST", backendapi.PathSessions, `{"project":"com.example.other"}`,
		bearer...).is(http.StatusCreated).into(&created)
	w.grant(func(g *grants.Grants) { g.Assistant[grants.Voice], g.Analytics = grants.Off, grants.ReadWrite })
	var got backendapi.ProjectList
	w.call("GET", backendapi.PathProjects, "", bearer...).is(http.StatusOK).into(&got)
	if len(got.Projects) != 2 {
		t.Fatalf("got %+v, want two projects", got)
	}
	p, other := got.Projects[0], got.Projects[1]
	if p.Project != app || p.Keys != 1 || p.OpenSessions != 0 || p.Platforms == nil || p.DisplayName == "" ||
		p.DashboardURL != site+"/account/projects/com.example.app" || p.CreatedAt != "2026-01-02T03:04:05.000Z" ||
		p.Access.AssistantConfig["voice"] != "off" || p.Access.AssistantConfig["sounds"] != "read_write" ||
		p.Access.Analytics != "read_write" ||
		p.Access.Credentials != "read_write" {
		t.Errorf("got %+v, want the project with its grants", p)
	}
	if other.Project != "com.example.other" || other.OpenSessions != 1 || other.LastActiveAt == nil ||
		other.Access.Analytics != "read" {
		t.Errorf("got %+v, want the project with an open session", other)
	}
}

func TestAssistantConfig(t *testing.T) {
	w, bearer := newAgent(t)
	var got backendapi.AssistantConfig
	w.call("GET", assistPath, "", bearer...).is(http.StatusOK).into(&got)
	if got.Version != 0 || *got.Voice != "ember" || got.UpdatedAt != nil || got.UpdatedBy != nil ||
		len(got.Choices.Voices) == 0 ||
		*got.Cost.MicroUSDPerMinute != 120_000 || got.Cost.BeforeMicroUSDPerMinute != nil ||
		got.Access["sounds"] != "read_write" {
		t.Errorf("got %+v, want the default config with its choices and cost", got)
	}
	w.call("PATCH", assistPath, `{"version":0,"memoryModel":"memory-none","sounds":false}`,
		bearer...).is(http.StatusOK).into(&got)
	if got.Version != 1 || *got.Sounds || *got.UpdatedBy != "agent on laptop" ||
		*got.UpdatedAt != "2026-01-02T03:04:05.000Z" ||
		*got.Cost.MicroUSDPerMinute != 61_000 || *got.Cost.BeforeMicroUSDPerMinute != 120_000 {
		t.Errorf("got %+v, want version 1 with the change and both costs", got)
	}
	var conflict backendapi.VersionConflict
	refused := w.call("PATCH", assistPath, `{"version":0,"sounds":true}`,
		bearer...).is(http.StatusConflict).into(&conflict)
	refused.whole(conflict.Problem, http.StatusConflict, problem.CodeVersionConflict)
	if conflict.CurrentVersion != 1 || !conflict.Retryable {
		t.Errorf("got %+v, want a retryable conflict with version 1", conflict)
	}
	for _, body := range []string{`{"version":1}`, `{"version":1,"voice":"nobody"}`, `{"version":1,"voice":null}`,
		`{"version":1,"voices":"x"}`,
		`{"version":1,"realtimeModel":"realtime-thoughtful","voice":"harbor"}`, `[]`, `{"version":1,"sounds":"on"}`} {
		w.call("PATCH", assistPath, body, bearer...).problem(http.StatusBadRequest, problem.CodeInvalidRequest)
	}
	w.call("PATCH", assistPath, `{"version":1,"voice":"harbor"}`, bearer...).is(http.StatusOK)
	p := w.call("PATCH", assistPath, `{"version":2,"realtimeModel":"realtime-thoughtful"}`, bearer...)
	if d := p.problem(http.StatusBadRequest, problem.CodeInvalidRequest); !strings.Contains(d.Detail,
		"ember, willow, slate") {
		t.Errorf("got detail %s, want the valid voices listed", d.Detail)
	}
}

// The response has the settings that have an effect, and the price of a minute of the realtime model's sound.
func TestAssistantConfig_RealtimeModel(t *testing.T) {
	w, bearer := newAgent(t)
	var got backendapi.AssistantConfig
	w.call("GET", assistPath, "", bearer...).is(http.StatusOK).into(&got)
	if got.Effective == nil || len(got.Effective) != 0 || got.Cost.RealtimeModel != nil {
		t.Errorf("without a gateway: got %v and %+v, want no effect", got.Effective, got.Cost)
	}
	w.api.Assistant.RealtimeModels = func(context.Context, string, string) ([]assistant.Offer, error) {
		return []assistant.Offer{{ID: "realtime-standard", Voices: []string{"ember"},
			Price: assistant.SoundPrice{In: 19_200, Out: 76_800, InRate: 10, OutRate: 20}}}, nil
	}
	w.call("GET", assistPath, "", bearer...).is(http.StatusOK).into(&got)
	price := backendapi.SoundPrice{In: 19_200, Out: 76_800}
	if !slices.Equal(got.Effective, []string{"realtimeModel", "voice"}) || *got.Cost.RealtimeModel != price ||
		*got.Choices.RealtimeModels[0].Sound != price || len(got.Choices.RealtimeModels) != 1 ||
		!strings.Contains(got.Cost.Note, "10 tokens for a second") {
		t.Errorf("got %+v", got)
	}
	w.grant(func(g *grants.Grants) { g.Assistant[grants.RealtimeModel] = grants.Off })
	hidden := backendapi.AssistantConfig{}
	w.call("GET", assistPath, "", bearer...).is(http.StatusOK).into(&hidden)
	if hidden.Cost.RealtimeModel != nil {
		t.Errorf("got the price %+v of a hidden model", hidden.Cost.RealtimeModel)
	}
}

// Fields hidden by the grants are null. If the grants do not allow part of a change, the refusal names that part and
// the whole request changes nothing.
func TestAssistantGrants(t *testing.T) {
	w, bearer := newAgent(t)
	w.grant(func(g *grants.Grants) {
		g.Assistant[grants.Voice], g.Assistant[grants.RealtimeModel] = grants.Read, grants.Off
	})
	var got backendapi.AssistantConfig
	w.call("GET", assistPath, "", bearer...).is(http.StatusOK).into(&got)
	if got.RealtimeModel != nil || *got.Voice != "ember" || got.Access["realtimeModel"] != "off" ||
		got.Cost.MicroUSDPerMinute != nil ||
		!strings.Contains(got.Cost.Note, "hides") || len(got.Choices.RealtimeModels) == 0 {
		t.Errorf("got %+v, want the model and the cost hidden", got)
	}
	for body, want := range map[string][2]string{
		`{"version":0,"sounds":false,"voice":"harbor"}`:                              {"voice", "read"},
		`{"version":0,"voice":"harbor","realtimeModel":"realtime-swift"}`:            {"realtimeModel", "off"},
		`{"version":99,"sounds":true,"realtimeModel":"nothing that could be named"}`: {"realtimeModel", "off"},
	} {
		var denied backendapi.PermissionDenied
		refused := w.call("PATCH", assistPath, body, bearer...).is(http.StatusForbidden).into(&denied)
		refused.whole(denied.Problem, http.StatusForbidden, problem.CodePermissionDenied)
		if denied.Project != app || denied.Capability != "assistant_config" || denied.Field != want[0] ||
			denied.Needed != "read_write" ||
			denied.Granted != want[1] || denied.Retryable {
			t.Errorf("%s: got %+v, want the missing grant of the hidden field", body, denied)
		}
		if !strings.Contains(denied.FixHint, "Assistant config > ") ||
			!strings.Contains(denied.FixHint, "Read + Write at "+site+"/account/mcp-access") {
			t.Errorf("%s: got hint %s, want the grant to set and its page", body, denied.FixHint)
		}
	}
	w.call("PATCH", assistPath, `{"version":0,"sounds":false}`, bearer...).is(http.StatusOK).into(&got)
	if got.Version != 1 || got.RealtimeModel != nil || *got.Voice != "ember" {
		t.Errorf("got %+v, want an unchanged config with the model hidden", got)
	}
	w.grant(func(g *grants.Grants) {
		for _, f := range grants.Fields() {
			g.Assistant[f] = grants.Off
		}
	})
	for _, request := range [][2]string{{"GET", ""}, {"PATCH", `{"version":1}`}, {"PATCH", `{"version":1,"voices":"x"}`},
		{"PATCH", ""}} {
		var denied backendapi.PermissionDenied
		w.call(request[0], assistPath, request[1], bearer...).is(http.StatusForbidden).into(&denied)
		if denied.Field != "" || denied.Granted != "off" ||
			!strings.Contains(denied.FixHint, "set Assistant config to Read") {
			t.Errorf("got %+v, want a denial of the whole config", denied)
		}
	}
}

// If the conversation model does not support a voice, the refusal is the same for every hidden model.
func TestAssistant_RefusalDoesNotRevealHiddenModel(t *testing.T) {
	w, bearer := newAgent(t)
	w.call("PATCH", assistPath, `{"version":0,"realtimeModel":"realtime-swift"}`, bearer...).is(http.StatusOK)
	refused := func() string {
		var p backendapi.Problem
		w.call("PATCH", assistPath, `{"version":1,"voice":"slate"}`, bearer...).is(http.StatusBadRequest).into(&p)
		return p.Detail
	}
	if m := refused(); !strings.Contains(m, "speaks with ember, harbor") {
		t.Errorf("with a grant to read the model: got %q, want the model's voices listed", m)
	}
	w.grant(func(g *grants.Grants) { g.Assistant[grants.RealtimeModel] = grants.Off })
	const want = "the conversation model does not support this voice; the account does not let agents read that model"
	if m := refused(); m != want {
		t.Errorf("unsupported voice: got %q, want the text without the model", m)
	}
	w.operate("UPDATE assistant_configs SET realtime_model = 'retired-model'")
	if m := refused(); m != want {
		t.Errorf("removed model: got %q, want the text without the model", m)
	}
}

// The note reveals neither a hidden price nor a hidden ID.
func TestAssistant_RemovedIDsAreShownOnlyIfVisible(t *testing.T) {
	w, bearer := newAgent(t)
	w.call("PATCH", assistPath, `{"version":0,"sounds":false}`, bearer...).is(http.StatusOK)
	w.operate("UPDATE assistant_configs SET voice = 'retired-voice'")
	note := func() string {
		var got backendapi.AssistantConfig
		w.call("GET", assistPath, "", bearer...).is(http.StatusOK).into(&got)
		return got.Cost.Note
	}
	if n := note(); !strings.Contains(n, "retired-voice") {
		t.Errorf("got note %q, want the removed voice named", n)
	}
	w.grant(func(g *grants.Grants) { g.Assistant[grants.Voice] = grants.Off })
	if n := note(); strings.Contains(n, "retired-voice") {
		t.Errorf("note %q names the hidden voice", n)
	}
}

func TestCredentialRoutes(t *testing.T) {
	w, bearer := newAgent(t)
	var got backendapi.CredentialList
	w.call("GET", appPath+"/credentials", "", bearer...).is(http.StatusOK).into(&got)
	if got.Project != app || len(got.Credentials) == 0 || got.Credentials[0].Set || got.Credentials[0].Hint != nil {
		t.Fatalf("got %+v, want the providers with nothing set", got)
	}
	path := appPath + "/credentials/" + got.Credentials[0].Provider + "/link"
	var l backendapi.CredentialLink
	w.call("POST", path, `{}`, bearer...).is(http.StatusCreated).into(&l)
	if l.Provider != got.Credentials[0].Provider || !strings.HasPrefix(l.URL, site+"/account/credentials/") ||
		l.ExpiresAt != "2026-01-02T03:19:05.000Z" {
		t.Errorf("got %+v, want a link for the provider that ends in 15 minutes", l)
	}
	if strings.Contains(w.log.String(), strings.TrimPrefix(l.URL, site+"/account/credentials/")) {
		t.Error("the log contains the link's ID")
	}
	w.call("POST", path, `{"value":"sk-1234"}`, bearer...).problem(http.StatusBadRequest, problem.CodeInvalidRequest)
	w.call("POST", appPath+"/credentials/nobody/link", `{}`, bearer...).problem(http.StatusNotFound,
		problem.CodeNotFound)
	w.grant(func(g *grants.Grants) { g.Credentials = grants.Read })
	var denied backendapi.PermissionDenied
	w.call("POST", path, `{}`, bearer...).is(http.StatusForbidden).into(&denied)
	if denied.Capability != "credentials" || denied.Needed != "read_write" || denied.Granted != "read" ||
		!strings.Contains(denied.FixHint, "set Credentials to Read + Write at "+site+"/account/mcp-access") {
		t.Errorf("got %+v, want the missing grant of credentials", denied)
	}
}

// Agents see how many users are remembered, if they may read the memory model.
func TestAssistantConfig_Memory(t *testing.T) {
	w, bearer := newAgent(t)
	w.api.Memory = &memory.Service{Store: memory.NewStore(w.db), Hasher: secret.NewHasher(make([]byte, 32)),
		Sealer: w.api.Credentials, Now: w.now}
	u := memory.User{Account: w.ada.ID, Project: app, Secret: strings.Repeat("a", 32)}
	if _, err := w.api.Memory.Put(t.Context(), u, "Drinks tea."); err != nil {
		t.Fatal(err)
	}
	var got, hidden backendapi.AssistantConfig
	w.call("GET", assistPath, "", bearer...).is(http.StatusOK).into(&got)
	if got.Memory == nil || got.Memory.Profiles != 1 || got.Memory.Days != 30 || got.Memory.Oldest == nil {
		t.Errorf("memory: got %+v, want one user for 30 days", got.Memory)
	}
	w.grant(func(g *grants.Grants) { g.Assistant[grants.MemoryModel] = grants.Off })
	w.call("GET", assistPath, "", bearer...).is(http.StatusOK).into(&hidden)
	if hidden.Memory != nil {
		t.Errorf("memory of a hidden memory model: got %+v, want none", hidden.Memory)
	}
}

func TestConnectionPageRoutes(t *testing.T) {
	w, bearer := newAgent(t)
	w.grant(func(g *grants.Grants) {
		*g = grants.Grants{Assistant: g.Assistant, Credentials: grants.Off, Analytics: grants.Off}
		for _, f := range grants.Fields() {
			g.Assistant[f] = grants.Off
		}
	})
	var first, page backendapi.ConnectionPage
	w.call("GET", pagePath, "", bearer...).is(http.StatusOK).into(&first)
	if first.Version != 0 || first.UpdatedAt != nil || !strings.HasPrefix(first.PageURL, site+"/connect/cp_") ||
		first.Phrases == nil {
		t.Errorf("got %+v, want the default page with its URL", first)
	}
	w.call("PATCH", pagePath, `{"version":0,"title":"Hello","phrases":[{"phrase":"take a photo","does":"takes one"}]}`,
		bearer...).is(http.StatusOK).into(&page)
	if page.Version != 1 || page.Title != "Hello" || len(page.Phrases) != 1 || page.PageURL != first.PageURL ||
		*page.UpdatedBy != "agent on laptop" {
		t.Errorf("got %+v, want version 1 with the change at the same URL", page)
	}
	w.call("PATCH", pagePath, `{"version":0,"title":"Again"}`, bearer...).problemLike(http.StatusConflict,
		problem.CodeVersionConflict)
	w.call("PATCH", pagePath, `{"version":1,"phrases":[{"phrase":"x","dose":"y"}]}`,
		bearer...).problem(http.StatusBadRequest, problem.CodeInvalidRequest)
	w.call("PATCH", pagePath, `{"version":1,"accent":"red"}`, bearer...).problem(http.StatusBadRequest,
		problem.CodeInvalidRequest)
	var file backendapi.ConnectionPageFile
	w.call("GET", pagePath+"/file", "", bearer...).is(http.StatusOK).into(&file)
	sum := sha256.Sum256([]byte(file.HTML))
	if file.SHA256 != hex.EncodeToString(sum[:]) || file.Version != 1 || !strings.Contains(file.HTML, "take a photo") ||
		file.Name == "" {
		t.Errorf("got file %s, version %d, %d bytes of HTML; want version 1 with its hash and the phrase", file.Name,
			file.Version, len(file.HTML))
	}
}

// problemLike is like problem, for responses with additional fields.
func (a answer) problemLike(status int, code string) {
	a.t.Helper()
	if a.is(status); !strings.Contains(string(a.body), fmt.Sprintf("%q:%q", "code", code)) {
		a.t.Errorf("%s: got %s, want code %s", a.what, a.body, code)
	}
}

func TestAnalyticsQueries(t *testing.T) {
	w, bearer := newAgent(t)
	for query, status := range map[string]int{
		"": 200, "?range=24h": 200, "?range=7d&interval=day": 200, "?range=30d": 200, "?range=90d&interval=day": 200,
		"?interval=hour": 200,
		"?from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z":                      200,
		"?from=2026-01-01T00:00:00%2B02:00&to=2026-01-02T00:00:00Z&interval=hour": 200,
		"?range=1d": 400, "?range=": 400, "?range=24h&from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z": 400,
		"?from=2026-01-01T00:00:00Z": 400,
		"?to=2026-01-01T00:00:00Z":   400, "?from=yesterday&to=2026-01-02T00:00:00Z": 400,
		"?from=2026-01-01T00:00:00Z&to=now": 400,
		"?interval=week":                    400, "?interval=": 400, "?range=24h&range=7d": 400, "?Range=24h": 400, "?since=1": 400,
		"?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z": 400, "?from=2016-01-02T00:00:00Z&to=2026-01-01T00:00:00Z": 400,
	} {
		got := w.call("GET", appPath+"/analytics"+query, "", bearer...)
		if status == http.StatusOK {
			var r backendapi.AnalyticsReport
			got.is(status).into(&r)
			if r.Project != app || r.Series == nil || r.Events == nil || r.Approximate == nil || r.Reading == "" {
				t.Errorf("%s: got %+v, want an empty report without null lists", query, r)
			}
			continue
		}
		got.problem(status, problem.CodeInvalidRequest)
	}
	for query, points := range map[string]int{"?range=24h": 24, "?range=7d": 7, "?range=7d&interval=hour": 168,
		"?range=90d": 90, "": 7} {
		var r backendapi.AnalyticsReport
		if w.call("GET", appPath+"/analytics"+query, "", bearer...).is(http.StatusOK).into(&r); len(r.Series) != points {
			t.Errorf("%s: got a series of %d points, want the number in the table", query, len(r.Series))
		}
	}
	for _, path := range []string{assistPath, pagePath, backendapi.PathProjects, backendapi.PathSessions, appPath +
		"/credentials"} {
		w.call("GET", path+"?x=1", "", bearer...).problem(http.StatusBadRequest, problem.CodeInvalidRequest)
	}
}

// An agent's read is recorded once in ten minutes per project and kind of read. Refused reads and changes by the user
// are not recorded as reads.
func TestReads_AreAudited(t *testing.T) {
	w, bearer := newAgent(t)
	read := func() (actions []string) {
		t.Helper()
		entries, err := w.audit.List(t.Context(), w.ada.ID, audit.Filter{Project: app, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Action, ".read") {
				actions = append(actions, e.Action)
			}
		}
		return actions
	}
	for range 3 {
		w.call("GET", assistPath, "", bearer...).is(http.StatusOK)
	}
	w.call("GET", appPath+"/analytics?range=x", "", bearer...).is(http.StatusBadRequest)
	w.call("GET", pagePath, "", bearer...).is(http.StatusOK)
	if got := read(); len(got) != 1 || got[0] != "assistant.read" {
		t.Errorf("audited reads: got %v, want assistant.read once", got)
	}
	w.pass(11 * time.Minute)
	for _, path := range []string{assistPath, appPath + "/analytics", appPath + "/credentials"} {
		w.call("GET", path, "", bearer...).is(http.StatusOK)
	}
	if got := read(); len(got) != 4 {
		t.Errorf("audited reads: got %v, want 4", got)
	}
	w.grant(func(g *grants.Grants) { g.Analytics = grants.Off })
	w.pass(11 * time.Minute)
	w.call("GET", appPath+"/analytics", "", bearer...).is(http.StatusForbidden)
	if got := read(); len(got) != 4 {
		t.Errorf("audited reads: got %v, want 4", got)
	}
}
