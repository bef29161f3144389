package api

import (
	"testing"

	"github.com/service-dev/service/proto/backendapi"
)

// TestRoutes_AreTheDocumentedOnes compares the served routes with the documented ones.
func TestRoutes_AreTheDocumentedOnes(t *testing.T) {
	all := &API{}
	documented := map[string]backendapi.Route{}
	for _, r := range backendapi.Routes() {
		if !r.WebSocket {
			documented[r.Name] = r
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
