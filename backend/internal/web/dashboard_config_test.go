package web

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/gateway"
)

var agentActor = audit.Agent("link1")

// shown lists the hidden fields of the assistant's form. They hold the values that the form originally showed.
var shown = []string{"was-realtimeModel", "standard", "was-voice", "ember", "was-memoryModel", "compact",
	"was-sessionMemory", "on", "was-sounds", "off"}

func assistantForm(v *visitor, version, model, voice string) map[string][]string {
	return v.form(append([]string{"version", version, "realtimeModel", model, "voice", voice, "memoryModel", "compact",
		"sessionMemory", "on"}, shown...)...)
}

func TestAssistantForm_ChangesOnlyEditedFields(t *testing.T) {
	h := newDashboardWorld(t)
	site := dashboardSite(t, h)
	path := helloPath + "/assistant"
	v := signedIn(t, site, ada).get(path).want(http.StatusOK, "Balanced.", "$0.05", "Costs $0.1205 for a minute of conversation.",
		"agent on maple", "Speaks with Ember and Harbor.", "Goes with Standard only.", `data-with="standard"`,
		`value="ember" required checked`)
	v.post(path, assistantForm(v, "3", "swift", "ember")).onward().want(http.StatusOK, "Saved.",
		"<strong>$0.1205</strong>")
	v.post(path, assistantForm(v, "4", "standard", "ember")).onward().want(http.StatusOK, "nothing was changed")
	if h.config().RealtimeModel != "swift" || h.config().Version != 4 {
		t.Errorf("got config %+v, want version 4 with the model swift", h.config())
	}
	form := v.form("version", "4", "realtimeModel", "standard", "was-realtimeModel", "swift", "voice", "ember",
		"was-voice", "ember", "act", "cost")
	v.post(path, form).want(http.StatusOK, "<strong>$0.1205</strong>", "<strong>$0.05</strong>",
		`value="standard" required checked`)
	if h.config().Version != 4 {
		t.Error("a request to show the cost saved a change")
	}
}

func TestAssistantForm_TextModel(t *testing.T) {
	h := newDashboardWorld(t)
	site := dashboardSite(t, h)
	path := helloPath + "/assistant"
	v := signedIn(t, site, ada).get(path).want(http.StatusOK, "The operator&#39;s choice; currently Plain.",
		"Short. Costs $0.25 for a million tokens that it reads and $2.00 for a million that it writes.",
		"Not offered now: no price for text_out.", `value="unpriced" required disabled`,
		"With the saved settings, a minute of conversation costs <strong>$0.05</strong>. Price of the saved text model: <strong>$0.25 for",
		`name="textModel" value="" required checked`)
	form := assistantForm(v, "3", "standard", "ember")
	form["textModel"], form["was-sounds"], form["act"] = []string{"local"}, []string{"off"}, []string{"cost"}
	v.post(path, form).want(http.StatusOK, "$2.00 for a million that it writes</strong>. Price of the text model chosen above: <strong>free</strong>.",
		`name="textModel" value="local" required checked`)
	delete(form, "act")
	v.post(path, form).onward().want(http.StatusOK, "Saved.", "Price of the saved text model: <strong>free</strong>.")
	h.exec("UPDATE assistant_configs SET text_model = 'gone', version = 9")
	v.post(path, form).want(http.StatusUnprocessableEntity, "changed since you opened", "Text model: the default → gone")
}

func TestAssistantForm_ConflictKeepsInput(t *testing.T) {
	h := newDashboardWorld(t)
	site := dashboardSite(t, h)
	path := helloPath + "/assistant"
	v := signedIn(t, site, ada).get(path)
	h.exec("UPDATE assistant_configs SET sounds = 1, version = 7")
	v.post(path, assistantForm(v, "3", "standard", "harbor")).want(http.StatusUnprocessableEntity,
		"changed since you opened", "Sounds: off → on",
		`name="version" value="7"`, `value="harbor" required checked`, `name="sounds" value="on" checked`,
		`name="was-voice" value="ember"`)
	if h.config().Voice != "ember" {
		t.Error("a stale change was saved")
	}
	v.post(path, assistantForm(v, "7", "swift", "harbor")).want(http.StatusUnprocessableEntity,
		"The model Swift does not speak with the voice Harbor. Choose Ember, or another model.", `id="voice-error"`)
	v.post(path, assistantForm(v, "nonsense", "swift", "ember")).want(http.StatusUnprocessableEntity,
		`name="version" value="7"`)
}

func TestCredentials_ValueIsNeverShown(t *testing.T) {
	h := newDashboardWorld(t)
	site := dashboardSite(t, h)
	path := helloPath + "/credentials"
	v := signedIn(t, site, ada).get(path).want(http.StatusOK, "OpenAI", "not needed", `type="password"`)
	v.post(path+"/openai", v.form("value", "pk-canary")).want(http.StatusUnprocessableEntity, "looks different",
		`id="value-openai-error"`).lacks("canary")
	v.post(path+"/openai", v.form("value", openAIKey)).onward().want(http.StatusOK, "The key is stored",
		"...wxyz").lacks("canary")
	v.post(path+"/openai/test", v.tokens()).onward().want(http.StatusOK, "The provider accepts the key")
	h.spendOnModels()
	h.paysWith(gateway.KeySourceCredit)
	v.get(path).want(http.StatusOK, "20 Nov 2026", "Nothing yet: your credit pays.", "/gateway#source")
	h.paysWith(gateway.KeySourceOwn)
	v.get(path).want(http.StatusOK, "It pays for your app&#39;s calls to Standard.", "OpenAI bills you")
	h.encryptWith(anotherKey)
	v.post(path+"/openai/test", v.tokens()).onward().want(http.StatusOK, "your key cannot be read")
	h.encryptWith(usualKey)
	h.with(func() { h.refuses = true })
	h.pass(time.Minute)
	v.post(path+"/openai/test", v.tokens()).onward().want(http.StatusOK, "refuses the key", `class="note warn"`)
	v.get(path + "/mistral/remove").want(http.StatusNotFound)
	v.get(path+"/openai/remove").want(http.StatusOK, "Remove the OpenAI key")
	v.post(path+"/openai/remove", v.tokens()).onward().want(http.StatusOK, "The key is removed").lacks("...wxyz")
	v.post(path+"/openai/test", v.tokens()).want(http.StatusNotFound)
	v.post(path+"/nobody", v.form("value", "sk-x")).want(http.StatusNotFound)
	h.encryptWith("")
	v.get(path).want(http.StatusOK, "set the key that encrypts").lacks(`type="password"`)
	v.post(path+"/openai", v.form("value", "sk-canary")).want(http.StatusUnprocessableEntity,
		"Nothing was stored").lacks("canary")
}

func pageForm(v *visitor, more ...string) map[string][]string {
	return v.form(append([]string{"version", "2", "title", "Hi", "theme", "dark", "accent", "#112233", "capability",
		"display", "capability", "camera",
		"phrase-1", "next", "does-1", "on", "phrase-3", "stop", "does-3", "", "toggle-label-2", "Louder"}, more...)...)
}

func TestConnectionPageForm_WithoutScript(t *testing.T) {
	h := newDashboardWorld(t)
	site := dashboardSite(t, h)
	path := helloPath + "/connection-page"
	v := signedIn(t, site, ada).get(path).want(http.StatusOK, `value="shows the next card"`, "sandbox",
		`href="/connect/`+hostedID+`"`)
	if policy := v.header.Get("Content-Security-Policy"); !strings.Contains(policy, "frame-src 'self'") ||
		!strings.Contains(policy, "frame-ancestors 'none'") {
		t.Errorf("got policy %s", policy)
	}
	v.post(path, pageForm(v, "toggle-id-2", "not so")).want(http.StatusUnprocessableEntity,
		`value="not so" maxlength="32" aria-describedby="toggle-id-1-error" aria-invalid="true"`, `value="Hi"`,
		`value="stop"`, `href="#toggle-id-1"`, "Correct 1 field:", `tabindex="-1" autofocus`)
	v.post(path, pageForm(v, "toggle-id-2", "not so", "supportUrl", "x", "privacyUrl", "y")).want(
		http.StatusUnprocessableEntity, "Correct 3 fields:", `href="#supportUrl"`, `href="#privacyUrl"`,
		`id="privacyUrl-error"`, `name="version" value="2"`)
	v.post(path, pageForm(v, "toggle-id-2", "loud", "act", "add-phrase")).want(http.StatusOK, `value="Hi"`,
		`id="phrase-4"`, "autofocus").lacks("Saved.", `id="phrase-5"`)
	v.post(path+"/preview", v.form("accent", "#11")).want(http.StatusOK, "--accent-light:#0b6b68") // as stored
	v.get(path)
	v.post(path+"/preview?state=connected", pageForm(v, "description", "<Preview>")).want(http.StatusOK, "Sample glasses",
		"&lt;Preview&gt;", "stop").lacks("<script")
	if policy := v.header.Get("Content-Security-Policy"); !strings.HasSuffix(policy, "frame-ancestors 'self'") {
		t.Errorf("the preview has the policy %s", policy)
	}
	v.post(path+"/preview", map[string][]string{"title": {"x"}}).want(http.StatusForbidden) // without the token
	if h.page().Version != 2 {
		t.Fatal("the page was saved by a refused form, a preview or an added row")
	}
	v.post(path, pageForm(v, "toggle-id-2", "loud", "toggle-on-2", "on")).onward().want(http.StatusOK, "Saved.")
	if p := h.page(); p.Title != "Hi" || len(p.Phrases) != 2 || p.Phrases[1].Phrase != "stop" || len(p.Toggles) != 1 ||
		!p.Toggles[0].On || len(p.Capabilities) != 2 {
		t.Errorf("got page %+v", p)
	}
	version := fmt.Sprintf(`name="version" value="%d"`, h.setTitle("By an agent"))
	v.post(path, pageForm(v, "toggle-id-2", "loud")).want(http.StatusUnprocessableEntity, "changed since you opened",
		"Title now: By an agent", `value="Hi"`, version)
	v.get(path+"/file").want(http.StatusOK, "By an agent")
	if got := v.header.Get("Content-Disposition"); got != "attachment; filename=connect.html" {
		t.Errorf("Content-Disposition is %q, want the file name connect.html", got)
	}
}

func TestActivity_PagesFiltersAndUndoes(t *testing.T) {
	h := newDashboardWorld(t)
	agentChange(t, h, "harbor")
	for i := range activityEntries + 5 {
		h.note(audit.Person(), "project.changed", "com.example.other", fmt.Sprintf("number %d.", i))
	}
	h.note(audit.Operator(), "account.link_reset", "", "<script>")
	h.note(agentActor, "analytics.read", "com.example.gone", "read the analytics")
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada)
	h.exec("DELETE FROM audit WHERE action = 'account.signed_in'")
	v.get("/account/audit").want(http.StatusOK, fmt.Sprintf("number %d.", activityEntries+4),
		"Older", "Account link reset", "The operator", "&lt;script&gt;", "Analytics read",
		"maple · claude-code").lacks("number 5.", "Newest")
	older := "/account/audit?before=" + h.entries()[len(h.entries())-activityEntries].ID
	v.get(older).want(http.StatusOK, "number 5.", "Assistant changed", `<bdi>ember</bdi></del>`,
		"Newest").lacks(fmt.Sprintf("number %d.", activityEntries+4), "Older")
	undo := "/account/audit/" + h.entries()[0].ID + "/undo"
	v.get("/account/audit?project="+hello).want(http.StatusOK, undo, "Assistant changed").lacks("number")
	v.post(undo, v.tokens()).onward().want(http.StatusOK, "Undone.")
	v.get("/account/audit?project="+hello).want(http.StatusOK, `<span class="badge">undone</span>`,
		"Assistant change undone").lacks(undo)
	v.post(undo, v.tokens()).onward().want(http.StatusOK, "There is nothing to undo")
	// This entry contains no change that can be undone.
	v.post("/account/audit/"+h.entries()[1].ID+"/undo", v.tokens()).onward().
		want(http.StatusOK, "There is nothing to undo")
	v.post("/account/audit/none/undo", v.tokens()).want(http.StatusNotFound)
}

func TestUndo_ReportsLaterChange(t *testing.T) {
	h := newDashboardWorld(t)
	agentChange(t, h, "harbor")
	agentChange(t, h, "ember")
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada).get("/account/audit")
	v.post("/account/audit/"+h.entries()[0].ID+"/undo", v.tokens()).onward().want(http.StatusOK, "changed again since",
		`class="note warn"`)
}

func TestSummary_OfGrants(t *testing.T) {
	e := audit.Entry{Action: "grants.changed",
		Summary: "assistant_config.voice: read_write -> off; assistant_config.sounds: off -> read; credentials: read -> read_write; analytics: read -> off"}
	if got, want := summaryOf(e),
		"Voice: Read + Write → Off; Sounds: Off → Read; Credentials: Read → Read + Write; Analytics: Read → Off"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A key that no model uses has a neutral statement, without a primary button; a key that could pay has a button.
func TestCredentials_NotNeeded(t *testing.T) {
	h := newDashboardWorld(t)
	h.spendOnModels()
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada).get(helloPath+"/credentials").want(http.StatusOK, "not needed",
		"No model of this server takes your own key of Mistral, so you need none.")
	openAI, mistral, _ := strings.Cut(v.page, `id="provider-mistral"`)
	if !strings.Contains(openAI, `<button type="submit">Set<`) || strings.Contains(openAI, "Set one anyway") {
		t.Error("the form for a key that could pay is not open")
	}
	if strings.Contains(mistral, `<button type="submit">`) || !strings.Contains(mistral, "<summary>Set one anyway") ||
		!strings.Contains(mistral, `<button type="submit" class="quiet">Set<`) {
		t.Errorf("the form for a key that is not needed is prominent:\n%s", mistral)
	}
}
