package api

import (
	"testing"

	"github.com/service-dev/service/backend/internal/analytics"
	"github.com/service-dev/service/backend/internal/projects"
	"github.com/service-dev/service/backend/internal/telemetry"
	"github.com/service-dev/service/proto/backendapi"
)

// TestRoutes_AreTheDocumentedOnes compares the served routes with the documented ones.
func TestRoutes_AreTheDocumentedOnes(t *testing.T) {
	all := &API{Options: Options{
		Keys: (*projects.Service)(nil), Ingest: (*analytics.Service)(nil), Telemetry: (*telemetry.Service)(nil),
	}}
	documented := map[string]backendapi.Route{}
	for _, r := range backendapi.Routes() {
		if !r.WebSocket {
			documented[r.Method+" "+r.Path] = r
		}
	}
	callers := map[backendapi.Caller]authLevel{backendapi.Anyone: anyone, backendapi.Install: anyone,
		backendapi.Linked: linked,
		backendapi.Owner:  ownProject, backendapi.App: appKey}
	for _, rt := range all.table() {
		r, ok := documented[rt.method+" "+rt.path]
		if !ok {
			t.Errorf("%s %s: route is missing from backendapi.Routes", rt.method, rt.path)
			continue
		}
		delete(documented, rt.method+" "+rt.path)
		level, known := callers[r.Caller]
		if !known || level != rt.level || r.Capability != string(rt.capability) || r.Level != string(rt.grant) {
			t.Errorf("%s %s: documentation gives caller %s and grant %s %s, the route table differs", rt.method, rt.path,
				r.Caller, r.Capability, r.Level)
		}
	}
	for name := range documented {
		t.Errorf("%s is documented but not served", name)
	}
}

// TestCodesAreComplete checks that every code this package uses has a status.
func TestCodesAreComplete(t *testing.T) {
	for _, code := range []string{
		backendapi.CodeInvalidRequest, backendapi.CodeInvalidKey, backendapi.CodeAuthRequired,
		backendapi.CodeDeviceCodeDenied, backendapi.CodePermissionDenied, backendapi.CodeUnknownDeviceCode,
		backendapi.CodeNotFound, backendapi.CodeMethodNotAllowed, backendapi.CodeConflict,
		backendapi.CodeVersionConflict, backendapi.CodeNotConfigured, backendapi.CodeNotConnected,
		backendapi.CodeTooManyKeys, backendapi.CodeDeviceCodeExpired, backendapi.CodeTooLarge,
		backendapi.CodeUnsupportedMedia, backendapi.CodeRateLimited, backendapi.CodeInternal,
		backendapi.CodeUnavailable, backendapi.CodeTimeout,
	} {
		if _, ok := codeInfos[code]; !ok {
			t.Errorf("%s has no status", code)
		}
	}
	if len(codeInfos) != len(backendapi.Codes()) {
		t.Error("a code occurs twice")
	}
}
