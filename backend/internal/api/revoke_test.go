package api

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
)

func TestRevokeOwnLink(t *testing.T) {
	w := newWorld(t)
	first, second := "Bearer "+w.link(), "Bearer "+w.link()
	got := w.call("DELETE", backendapi.PathAccountLink, "", "Authorization", first).is(http.StatusNoContent)
	if len(got.body) != 0 || got.header.Get("Content-Type") != "" {
		t.Errorf("got status 204 with body %q, want no body", got.body)
	}
	for _, method := range []string{"GET " + backendapi.PathAccount, "DELETE " + backendapi.PathAccountLink} {
		verb, path, _ := strings.Cut(method, " ")
		again := w.call(verb, path, "", "Authorization", first)
		again.authRequired()
		if again.header.Get("WWW-Authenticate") != `Bearer error="invalid_token"` {
			t.Errorf("%s after revoking: got headers %v, want an invalid_token challenge", method, again.header)
		}
	}
	w.call("GET", backendapi.PathAccount, "", "Authorization", second).is(http.StatusOK)

	entries, err := w.audit.List(t.Context(), w.ada.ID, audit.Filter{Actor: audit.KindAgent})
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Action != "link.revoked" || entries[0].Actor.Kind != audit.KindAgent ||
		!strings.Contains(entries[0].Summary, "its own link") {
		t.Errorf("activity: got %+v, want link.revoked by an agent for its own link", entries)
	}
}

func TestRevokeOwnLink_OnceForManyCallers(t *testing.T) {
	w := newWorld(t)
	bearer := "Bearer " + w.link()
	statuses := make([]int, 20)
	var wg sync.WaitGroup
	for i := range statuses {
		wg.Go(func() {
			statuses[i] = w.call("DELETE", backendapi.PathAccountLink, "", "Authorization", bearer).status
		})
	}
	wg.Wait()
	count := map[int]int{}
	for _, s := range statuses {
		count[s]++
	}
	if count[http.StatusNoContent] != 1 || count[http.StatusUnauthorized] != len(statuses)-1 {
		t.Errorf("got statuses %v, want one 204 and 401 for the others", count)
	}
}

func TestRevokeOwnLink_TakesNoParameters(t *testing.T) {
	w := newWorld(t)
	bearer := "Bearer " + w.link()
	w.call("DELETE", backendapi.PathAccountLink+"?id=another", "", "Authorization", bearer).problem(http.StatusBadRequest,
		problem.CodeInvalidRequest)
	w.call("GET", backendapi.PathAccount, "", "Authorization", bearer).is(http.StatusOK)
}
