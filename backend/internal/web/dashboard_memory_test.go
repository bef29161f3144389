package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/service-dev/service/backend/internal/assistant"
	"github.com/service-dev/service/backend/internal/memory"
)

// TestMemory_Page proves that the owner sees how much is remembered, not what, and can erase it.
func TestMemory_Page(t *testing.T) {
	h := newDashboardWorld(t)
	v := signedIn(t, dashboardSite(t, h), ada)
	path, post := helloPath+"/assistant", helloPath+"/assistant/memory"
	v.get(path).want(http.StatusOK, "Nothing is remembered about anyone", `name="memory-days" value="30"`)
	var ids []string
	for _, digit := range []string{"a", "b", "c"} {
		u := memory.User{Account: adaID, Project: hello, Secret: strings.Repeat(digit, 32)}
		if _, err := h.memory.Put(t.Context(), u, "Drinks tea."); err != nil {
			t.Fatal(err)
		}
	}
	list, err := h.memory.List(t.Context(), adaID, hello)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		ids = append(ids, e.ID)
	}
	v.get(path).want(http.StatusOK, append(ids, "Something is remembered about 3 users")...).lacks("tea")
	send := func(form url.Values) {
		t.Helper()
		form.Set("csrf", v.get(path).tokens().Get("csrf"))
		v.post(post, form)
	}
	send(url.Values{"act": {"erase"}, "user": {ids[0]}})
	v.get(path).want(http.StatusOK, "about 2 users").lacks(ids[0])
	send(url.Values{"act": {"erase"}, "user": {ids[0]}})
	if at := v.header.Get("Location"); !strings.Contains(at, "memory-none") {
		t.Errorf("erased twice: got %s, want the notice that nobody is there", at)
	}
	for _, days := range []string{"0", "366", "x", ""} {
		send(url.Values{"act": {"days"}, "memory-days": {days}})
		v.want(http.StatusUnprocessableEntity, "Enter a number from 1 to 365.")
	}
	send(url.Values{"act": {"days"}, "memory-days": {"7"}})
	v.get(path).want(http.StatusOK, `name="memory-days" value="7"`)
	v.get(post+"/erase").want(http.StatusOK, "Erase what is remembered about all users?")
	send(url.Values{"act": {"erase-all"}})
	v.get(path).want(http.StatusOK, "Nothing is remembered about anyone")
	v.get("/account/audit").want(http.StatusOK, "Memory erased", "memory of user "+ids[0]+" erased",
		"memory of all users erased", "Days of memory changed")
}

// TestMemory_PageShowsTheCost proves that the setting says what a conversation costs at most that is remembered.
func TestMemory_PageShowsTheCost(t *testing.T) {
	h := newDashboardWorld(t)
	v := signedIn(t, dashboardSite(t, h), ada)
	v.get(helloPath+"/assistant").want(http.StatusOK, "Each conversation of a user who has agreed costs your project one "+
		"more call of a text model, up to four if the notes change meanwhile, each of at most 50,000 tokens that it "+
		"reads and 1,024 that it writes")
	all := assistant.Catalogue{DefaultText: "plain", TextModels: []assistant.TextModel{
		{ID: "plain", Price: assistant.TokenPrice{In: 2_000_000, Out: 10_000_000}}, {ID: "free"}}}
	for _, c := range []struct{ memory, upstream, text, want string }{
		{"compact", "", "", ": at most $0.11024 a call."}, {"compact", "", "free", ": nothing, because the model is free."},
		{"compact", "free", "", ": nothing, because the model is free."}, {"compact", "", "gone", "that it writes."},
		{assistant.NoMemory, "", "", ""},
	} {
		got := mergeSentence(all, assistant.Model{ID: c.memory, Upstream: c.upstream}, c.text)
		if !strings.HasSuffix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%+v: got %q", c, got)
		}
	}
}
