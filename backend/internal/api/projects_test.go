package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
)

const keysPath = backendapi.PathProjects + "/com.example.app/keys"

func TestProjectKeys(t *testing.T) {
	w := newWorld(t)
	if p := w.call("POST", keysPath, `{"name":"laptop"}`, backendapi.HeaderInstallID,
		installID).authRequired(); p.UserCode == "" {
		t.Error("response has no user code to link with")
	}
	bearer := "Bearer " + w.link()
	var k backendapi.ProjectKey
	w.call("POST", keysPath, `{"name":"laptop"}`, "Authorization", bearer).is(http.StatusCreated).into(&k)
	if !strings.HasPrefix(k.ProjectKey, "spk_") || !strings.HasSuffix(k.ProjectKey, k.Hint) ||
		k.CreatedAt != "2026-01-02T03:04:05.000Z" {
		t.Errorf("got a key with hint %q, created %q, want its last characters and the current time", k.Hint, k.CreatedAt)
	}
	if strings.Contains(w.log.String(), k.ProjectKey) {
		t.Error("the log contains the key")
	}
	for body, path := range map[string]string{`{"name":""}`: keysPath, `{"name":"x"}`: backendapi.PathProjects +
		"/nodots/keys", `{"nam":"x"}`: keysPath} {
		w.call("POST", path, body, "Authorization", bearer).problem(http.StatusBadRequest, problem.CodeInvalidRequest)
	}
	for range projects.MaxKeys - 1 {
		w.pass(time.Minute / keysPerMinute)
		w.call("POST", keysPath, `{"name":"x"}`, "Authorization", bearer).is(http.StatusCreated)
	}
	w.pass(time.Minute / keysPerMinute)
	w.call("POST", keysPath, `{"name":"x"}`, "Authorization", bearer).problem(http.StatusConflict,
		problem.CodeTooManyKeys)
}

// An agent that creates keys in a loop must neither fill the account's audit log nor keep the server busy.
func TestMintKey_IsLimitedPerLink(t *testing.T) {
	w, bearer := newAgent(t)
	mint := func(i int) answer {
		return w.call("POST", fmt.Sprintf("/api/projects/com.example.app%d/keys", i), `{"name":"k"}`, bearer...)
	}
	for i := range keysPerMinute {
		mint(i).is(http.StatusCreated)
	}
	if p := mint(keysPerMinute).problem(http.StatusTooManyRequests, problem.CodeRateLimited); !p.Retryable {
		t.Errorf("got %+v, want a retryable problem", p)
	}
	w.pass(time.Minute / keysPerMinute)
	mint(keysPerMinute).is(http.StatusCreated)
}
