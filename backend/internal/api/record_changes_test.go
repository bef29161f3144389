package api

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
)

// An agent that repeats a change must not push other entries out of the account's audit log.
func TestChanges_AreLimitedPerLink(t *testing.T) {
	w, bearer := newAgent(t)
	change := func(version int) answer {
		return w.call("PATCH", assistPath, fmt.Sprintf(`{"version":%d,"sounds":%t}`, version, version%2 == 1), bearer...)
	}
	for version := range changesPerMinute {
		change(version).is(http.StatusOK)
	}
	if p := change(changesPerMinute).problem(http.StatusTooManyRequests, problem.CodeRateLimited); !p.Retryable {
		t.Errorf("got %+v, want a retryable problem", p)
	}
	w.call("GET", assistPath, "", bearer...).is(http.StatusOK)
	w.pass(time.Second)
	change(changesPerMinute).is(http.StatusOK)
}

// The ID of a merged project resolves to the project that it was merged into, with the grants of that project.
func TestMergedProjects(t *testing.T) {
	w, bearer := newAgent(t)
	w.make(w.ada.ID, "com.example.old")
	if err := w.projects.Merge(t.Context(), w.ada.ID, "com.example.old", app, audit.Person()); err != nil {
		t.Fatal(err)
	}
	w.grant(func(g *grants.Grants) { g.Analytics = grants.Off })
	var got backendapi.AssistantConfig
	w.call("GET", backendapi.PathProjects+"/com.example.old/assistant", "", bearer...).is(http.StatusOK).into(&got)
	if got.Project != app {
		t.Errorf("got project %s, want the project it was merged into", got.Project)
	}
	var denied backendapi.PermissionDenied
	w.call("GET", backendapi.PathProjects+"/com.example.old/analytics", "",
		bearer...).is(http.StatusForbidden).into(&denied)
	if denied.Project != app {
		t.Errorf("got %+v, want the missing grant of the merged project", denied)
	}
}

// Pages call the account's owner "you". Agents read "the account's owner" instead.
func TestActorOrNull(t *testing.T) {
	for was, want := range map[string]string{
		"you":                               "the account's owner",
		"you, asked by the agent on laptop": "the account's owner, asked by the agent on laptop",
		"agent on laptop":                   "agent on laptop", "youth": "youth",
	} {
		if got := actorOrNull(was); *got != want {
			t.Errorf("%s: got %s, want the name for agents", was, *got)
		}
	}
	if actorOrNull("") != nil {
		t.Error("got an actor for an empty name, want nil")
	}
}

// TestChanges_NameWhatDiffers sets one field to its current value and another field to a new one.
func TestChanges_NameWhatDiffers(t *testing.T) {
	w, bearer := newAgent(t)
	w.grant(func(g *grants.Grants) {
		for _, field := range []string{grants.Sounds, grants.SessionMemory} {
			g.Assistant[field] = grants.ReadWrite
		}
	})
	var was, is backendapi.AssistantConfig
	w.call("GET", assistPath, "", bearer...).is(http.StatusOK).into(&was)
	if was.Changed != nil || was.Sounds == nil || was.SessionMemory == nil {
		t.Fatalf("got %+v, want every value and no changed fields", was)
	}
	w.call("PATCH", assistPath, fmt.Sprintf(`{"version":%d,"sounds":%t,"sessionMemory":%t}`, was.Version, *was.Sounds,
		!*was.SessionMemory), bearer...).is(http.StatusOK).into(&is)
	if !slices.Equal(is.Changed, []string{"sessionMemory"}) {
		t.Errorf("assistant: got changed fields %v, want sessionMemory only", is.Changed)
	}
	var page, after backendapi.ConnectionPage
	w.call("GET", pagePath, "", bearer...).is(http.StatusOK).into(&page)
	w.call("PATCH", pagePath, fmt.Sprintf(`{"version":%d,"theme":%q,"title":"Another","phrases":[{"phrase":"next page"}]}`,
		page.Version, page.Theme), bearer...).is(http.StatusOK).into(&after)
	if !slices.Equal(after.Changed, []string{"title", "phrases"}) {
		t.Errorf("connection page: got changed fields %v, want title and phrases", after.Changed)
	}
}
