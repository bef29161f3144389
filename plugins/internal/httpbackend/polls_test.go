package httpbackend

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/proto/backendapi"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// Agents that wait for events must not block other calls to the backend.
func TestManyThatWaitHoldNobodyUp(t *testing.T) {
	const waiters = 60
	var waiting sync.WaitGroup
	waiting.Add(waiters)
	release := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("waitMs") != "" {
			waiting.Done()
			<-release
		}
		_, _ = io.WriteString(w, `{"events":[],"next":3,"more":false}`)
	}))
	t.Cleanup(srv.Close)
	s := New("x")
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	list := func(wait uint32) error {
		call := &pluginv1.CallRequest{Route: backendapi.RouteEvents, Path: map[string]string{"id": "ses_1"}, WaitMs: wait,
			Target: &pluginv1.Target{BaseUrl: srv.URL, Credential: &pluginv1.Target_Bearer{Bearer: "svc_1"}}}
		if wait > 0 {
			call.Query = map[string]string{"waitMs": "25000"}
		}
		_, err := s.Call(t.Context(), call)
		return err
	}
	var all sync.WaitGroup
	for range waiters {
		all.Go(func() {
			if err := list(25_000); err != nil {
				t.Error(err)
			}
		})
	}
	came := make(chan struct{})
	go func() { waiting.Wait(); close(came) }()
	select {
	case <-came:
	case <-time.After(20 * time.Second):
		t.Error("some waiting calls did not reach the backend")
	}
	start := time.Now()
	if err := list(0); err != nil || time.Since(start) > 15*time.Second {
		t.Errorf("a concurrent call took %v (error %v), want at most 15 s", time.Since(start), err)
	}
	close(release)
	all.Wait()
}
