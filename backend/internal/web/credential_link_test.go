package web

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/service-dev/service/backend/internal/audit"
)

const savedPath = "/account/credentials/" + hello + "/openai"

// pasteSite serves a dashboard. It returns the path of a link for pasting a credential, which an agent requested.
func pasteSite(t *testing.T, h *dashboardWorld, log *slog.Logger) (site *httptest.Server, page string) {
	t.Helper()
	h.exec("UPDATE links SET host = '<b>maple' WHERE id = 'link1'")
	l, err := h.credentials.NewLink(t.Context(), adaID, hello, "openai", agentActor)
	if err != nil {
		t.Fatal(err)
	}
	return dashboardSite(t, h, func(o *Options) { o.Log = log }), "/account/credentials/" + l.ID
}

func TestCredentialLink_Paste(t *testing.T) {
	var log bytes.Buffer
	h := newDashboardWorld(t)
	site, pastePage := pasteSite(t, h, slog.New(slog.NewTextHandler(&log, nil)))
	// A visitor who is not signed in signs in first, and then returns to the page.
	v := visit(t, site).get(pastePage).want(http.StatusSeeOther)
	signIn := v.header.Get("Location")
	v.get(signIn).want(http.StatusOK)
	v.post(signIn, v.form("email", ada, "password", password)).onward().want(http.StatusOK, hello, "OpenAI",
		"the agent on &lt;b&gt;maple", `type="password"`, `autocomplete="off"`, "09:45 UTC")

	form := func(value string) url.Values {
		tokens := v.tokens()
		tokens.Set("value", value)
		return tokens
	}
	v.post(pastePage, form("canary-of-another-form")).want(http.StatusUnprocessableEntity, "looks different",
		`aria-invalid="true"`)
	if strings.Contains(v.page, "canary") {
		t.Error("the page contains the value")
	}
	noToken := form(openAIKey)
	noToken.Del("csrf")
	v.post(pastePage, noToken)
	if v.status != http.StatusForbidden || h.openAIKey() != "" {
		t.Errorf("without the page's token: got status %d, want 403", v.status)
	}
	v.get(pastePage).post(pastePage, form(openAIKey)).want(http.StatusSeeOther)
	if where := v.header.Get("Location"); where != savedPath || h.openAIKey() != openAIKey {
		t.Errorf("redirected to %s, want the page of the stored key", where)
	}
	if e := h.entries(); e[len(e)-1].Action != "credential.set" || e[len(e)-1].Actor != audit.Person() {
		t.Errorf("got entries %+v, want the key set by a person", e)
	}
	v.get(savedPath).want(http.StatusOK, "...wxyz", "you, asked by the agent on &lt;b&gt;maple", "Test the key")
	h.with(func() { h.refuses = true })
	v.post(savedPath+"/test", v.tokens()).want(http.StatusSeeOther)
	v.get(v.header.Get("Location")).want(http.StatusOK, "refuses it")
	v.get(pastePage).want(http.StatusGone, "Ask your agent")
	h.encryptWith(anotherKey)
	v.get(savedPath).post(savedPath+"/test", v.tokens()).want(http.StatusConflict, "your key cannot be read")
	if strings.Contains(log.String(), "canary") {
		t.Error("the log contains the value")
	}
}

func TestCredentialLink_OnlyForItsAccount(t *testing.T) {
	h := newDashboardWorld(t)
	site, pastePage := pasteSite(t, h, nil)
	eve := signedIn(t, site, "eve@example.org")
	eve.get(pastePage).want(http.StatusGone, "This link has expired", "eve@example.org")
	owner := signedIn(t, site, ada).get(pastePage).want(http.StatusOK)
	// Eve requests another account's link with her own tokens.
	tokens := eve.get("/").tokens()
	tokens.Set("value", openAIKey)
	eve.post(pastePage, tokens).want(http.StatusGone)
	eve.get(savedPath).want(http.StatusNotFound)
	eve.get("/").post(savedPath+"/test", eve.tokens()).want(http.StatusNotFound)
	if h.openAIKey() != "" {
		t.Error("another account used the link")
	}
	tokens = owner.tokens()
	tokens.Set("value", openAIKey)
	h.encryptWith("")
	owner.post(pastePage, tokens).want(http.StatusConflict, "set a key to encrypt credentials with")
	h.encryptWith(usualKey)
	h.exec("DROP TABLE credentials")
	owner.get(pastePage).post(pastePage, tokens).want(http.StatusInternalServerError)
	if strings.Contains(owner.page, "canary") || strings.Contains(owner.page, "no such table") {
		t.Error("the error page reveals details of the failure")
	}
}
