package web

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/glasses"
)

func TestSessions_AreListedOpenedAndClosed(t *testing.T) {
	h := newDashboardWorld(t)
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada).get(sessionsPath).want(http.StatusOK, "Ray-Ban Display", "App attached", "hello-glasses",
		"No app attached", `href="/s/ses_one"`, `src="/account/sessions/ses_one/panel"`, "These glasses have no display").lacks("ses_far", "even_g1")
	v.post(sessionsPath+"/ses_one/close", v.form("page", sessionsPath)).onward().want(http.StatusOK,
		"The session is closed", "ses_two").lacks("ses_one")
	v.get(helloPath).want(http.StatusOK, "ses_two")
	v.post(sessionsPath+"/ses_two/close", v.form("page", helloPath))
	if got := v.header.Get("Location"); got != helloPath+"?done=session-closed" {
		t.Errorf("closing on the project's page leads to %s", got)
	}
	v.get(helloPath+"/sessions").want(http.StatusOK, "No open session")
	v.get(sessionsPath + "/ses_two/close").want(http.StatusNotFound)
}

// Closing asks first, because it deletes the event log, and then returns to the position in the list.
func TestSessions_CloseAsksAndReturns(t *testing.T) {
	h := newDashboardWorld(t)
	site := dashboardSite(t, h)
	first := sessions.Position{HasApp: true, LastActive: then, ID: "ses_one"}.String()
	v := signedIn(t, site, ada).get(sessionsPath+"?after="+first).want(http.StatusOK,
		`href="/account/sessions/ses_two/close?page=%2Faccount%2Fsessions%3Fafter%3D`+first+`"`, "Close …").lacks("<form method=\"post\" action=\"/account/sessions")
	v.get(sessionsPath+"/ses_two/close?page=%2Faccount%2Fsessions%3Fafter%3D"+first).want(http.StatusOK,
		"Close the session of Hello on Ray-Ban Meta?", "event log is deleted",
		`name="page" value="/account/sessions?after=`+first+`"`, `href="/account/sessions?after=`+first+`">Keep it open`)
	v.get(sessionsPath+"/ses_one/close").want(http.StatusOK, "An app is attached now: hello-glasses")
	if !h.isOpen("ses_two") {
		t.Error("the question closed the session")
	}
	v.post(sessionsPath+"/ses_two/close", v.form("page", "/account/sessions?after="+first)).want(http.StatusSeeOther)
	if got := v.header.Get("Location"); got != "/account/sessions?after="+first+"&done=session-closed" {
		t.Errorf("closing leads to %s, want the position in the list", got)
	}
	v.onward().want(http.StatusOK, "No further session", "First page")
	v.get(sessionsPath + "/ses_far/close").want(http.StatusNotFound)
	for _, foreign := range []string{"https://evil.example.org/", "//evil.example.org/account", "/account/settings",
		"/account/projects/" + foreign, "/account?next=https://evil.example.org", `/account\evil`, ""} {
		if got := sessionsPageOf(hello, foreign); got != sessionsPath && got != "/account" {
			t.Errorf("%q leads to %q", foreign, got)
		}
	}
}

// The picture equals the renderer's output for the last tree, and is black while the glasses are not worn.
func TestSessions_PanelIsDrawn(t *testing.T) {
	h := newDashboardWorld(t)
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada)
	bright := func(size int) (n int) {
		t.Helper()
		v.get(sessionsPath + "/ses_one/panel").want(http.StatusOK)
		if v.header.Get("Content-Type") != "image/png" || v.header.Get("Cache-Control") != "no-store" {
			t.Errorf("got headers %v, want a picture that no cache stores", v.header)
		}
		picture, err := png.Decode(bytes.NewReader([]byte(v.page)))
		if err != nil {
			t.Fatal(err)
		}
		if b := picture.Bounds(); b.Dx() != size || b.Dy() != size {
			t.Errorf("the picture has the size %v, want %d", b, size)
		}
		for y := range size {
			for x := range size {
				if r, g, b, _ := picture.At(x, y).RGBA(); r+g+b > 0 {
					n++
				}
			}
		}
		return n
	}
	if n := bright(300); n < 3000 { // many colours, so it is reduced
		t.Errorf("%d pixels are lit, want the texts of the tree", n)
	}
	state := sessions.FreshState()
	state.Glasses.Hinge = glasses.HingeFolded
	h.append(sessions.Row{SessionID: "ses_one", Event: glasses.Event{Type: glasses.TypeResult, ID: "b"}, State: &state})
	if n := bright(600); n != 0 {
		t.Errorf("%d pixels are lit on folded glasses, want none", n)
	}
	h.exec("DELETE FROM events")
	h.exec("DELETE FROM session_states")
	if n := bright(600); n != 0 {
		t.Errorf("%d pixels are lit before anything was shown, want none", n)
	}
	v.get(sessionsPath + "/ses_two/panel").want(http.StatusNotFound) // these glasses have no display
}

// Another account's session gets the same response as a missing one, including its picture.
func TestSessions_OfAnotherAccountLookMissing(t *testing.T) {
	h := newDashboardWorld(t)
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada).get(sessionsPath)
	missing := v.get(sessionsPath + "/ses_none/panel").want(http.StatusNotFound).page
	if theirs := v.get(sessionsPath + "/ses_far/panel").want(http.StatusNotFound).page; theirs != missing {
		t.Error("the picture of another account's session differs from that of a missing one")
	}
	form := v.get(sessionsPath).tokens()
	missing = v.post(sessionsPath+"/ses_none/close", form).want(http.StatusNotFound).page
	if theirs := v.post(sessionsPath+"/ses_far/close", form).want(http.StatusNotFound).page; theirs != missing {
		t.Error("closing another account's session differs from closing a missing one")
	}
	if calls := h.called(); len(calls) > 0 || !h.isOpen("ses_far") {
		t.Errorf("a refused request had an effect: %v", calls)
	}
}

func TestSessions_ArePaged(t *testing.T) {
	h := newDashboardWorld(t)
	h.exec("DELETE FROM sessions")
	h.live = nil
	for i := range listedSessions + 3 {
		h.addSession(fmt.Sprintf("ses_%02d", i), "even_g1", "", time.Duration(i)*time.Minute)
	}
	site := dashboardSite(t, h)
	last := sessions.Position{LastActive: then.Add(-(listedSessions - 1) * time.Minute),
		ID: fmt.Sprintf("ses_%02d", listedSessions-1)}
	v := signedIn(t, site, ada).get(sessionsPath).want(http.StatusOK, "/s/"+last.ID, "?after="+last.String(),
		"Nothing shown yet").lacks("ses_12", "First page", "/panel")
	v.get(sessionsPath+"?after="+last.String()).want(http.StatusOK, "/s/ses_12", "/s/ses_14", "First page").lacks("/s/ses_11", "Next page")
	v.get(helloPath).want(http.StatusOK, "/s/ses_02", "All sessions").lacks("ses_03")
}

// A page full of pictures stays small, even if they are photos.
func TestSessions_PageIsSmall(t *testing.T) {
	photo := image.NewNRGBA(image.Rect(0, 0, 120, 120))
	for i := range photo.Pix { // soft colours with some grain
		x, y := i/4%120, i/480
		photo.Pix[i] = []byte{byte(x*2 + i*i%9), byte(y*2 + i*i%7), byte(x*y/60 + i*i%5), 255}[i%4]
	}
	var file bytes.Buffer
	if err := png.Encode(&file, photo); err != nil {
		t.Fatal(err)
	}
	for name, tree := range map[string]string{"texts": homeTree, "photo": `{"tree":{"type":"image","width":600,"height":600,
		"data":"` + base64.StdEncoding.EncodeToString(file.Bytes()) + `"}}`} {
		h := newDashboardWorld(t)
		h.exec("DELETE FROM sessions")
		for i := range listedSessions {
			h.addSession(fmt.Sprintf("ses_%02d", i), "rayban_display", tree, 0)
		}
		site := dashboardSite(t, h)
		v := signedIn(t, site, ada).get(sessionsPath)
		size := v.weight()
		picture := len(v.get(sessionsPath + "/ses_00/panel").want(http.StatusOK).page)
		t.Logf("%s: %d bytes and %d for each picture", name, size, picture)
		if size += listedSessions * picture; size > 100_000 {
			t.Errorf("%s: the page and its pictures have %d bytes, want a small page", name, size)
		}
	}
}

// The steps of the overview tick themselves, and disappear when all are done.
func TestOverview_StepsTickThemselves(t *testing.T) {
	h := newDashboardWorld(t)
	h.exec("DELETE FROM sessions")
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada)
	v.get("/account").want(http.StatusOK, "2 of 4 done", `Done: </span><strong>Link your coding agent`,
		`Done: </span><strong>Create your first project`, `To do: </span><strong>Open a simulator session`)
	h.addSession("ses_one", "even_g1", "", 0)
	v.get("/account").want(http.StatusOK, "3 of 4 done", `Done: </span><strong>Open a simulator session`)
	h.exec("UPDATE links SET revoked_at = 1 WHERE id = 'link1'")
	v.get("/account").want(http.StatusOK, `To do: </span><strong>Link your coding agent`)
	h.exec("UPDATE links SET revoked_at = NULL WHERE id = 'link1'")
	h.append(sessions.Row{SessionID: "ses_one", Event: glasses.Event{Type: glasses.RowAppAttached, ID: "a", At: 1}})
	v.get("/account").want(http.StatusOK).lacks("First steps")
}

// On an embedded backend, no step may name the backend's address: the tools would treat it as another backend, to which
// the computer would not be linked.
func TestOverview_StepsFitTheBackend(t *testing.T) {
	const address = "export SERVICE_BACKEND_URL=http://service.example.org"
	for _, embedded := range []bool{true, false} {
		site := dashboardSite(t, newDashboardWorld(t), func(o *Options) { o.Embedded = embedded })
		eve := signedIn(t, site, "eve@example.org")
		for _, page := range []string{"/account", "/account/projects", "/"} {
			eve.get(page).want(http.StatusOK, "servicectl login")
			shown := strings.ReplaceAll(eve.page, "<wbr>", "")
			if got := strings.Contains(shown, address); got == embedded {
				t.Errorf("embedded %v: %s sets the address: %v", embedded, page, got)
			}
		}
	}
}

// The page of a project begins with its state.
func TestProject_BeginsWithItsState(t *testing.T) {
	h := newDashboardWorld(t)
	agentChange(t, h, "harbor")
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada).get(helloPath).want(http.StatusOK, `href="/s/ses_one"`, "Latest change by an agent",
		"maple · claude-code", "<bdi>harbor</bdi></ins>", `Done: </span><a href="#keys">Project key`).lacks(
		`credentials">Credentials</a></div>`) // credit pays, so no key is needed
	var at []int
	for _, text := range []string{"Open sessions", "Last 7 days", "Latest change by an agent", "Set up", `id="keys"`} {
		at = append(at, strings.Index(v.page, text))
	}
	if !slices.IsSorted(at) || at[0] < 0 {
		t.Errorf("the parts are at %v, want them in order", at)
	}
	h.spendOnModels()
	h.paysWith(gateway.KeySourceOwn)
	v.get(helloPath).want(http.StatusOK, `To do: </span><a href="`+helloPath+`/credentials">Credentials`)
	h.setOpenAIKey()
	v.get(helloPath).want(http.StatusOK, `Done: </span><a href="`+helloPath+`/credentials">Credentials`).lacks("canary")
}
