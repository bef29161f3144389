package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/clientio/local"
	"github.com/service-dev/service/internal/problem"
)

func FuzzArguments(f *testing.F) {
	f.Add([]byte(`{"project":"a.b","platform":"web","openBrowser":null,"fresh":false}`))
	f.Add([]byte(`{"deviceCode":"x","maxWaitSeconds":1e400,"pollIntervalSeconds":-0.0}`))
	f.Add([]byte(`{"sessionId":"s","since":9007199254740993,"limit":5.0}`))
	f.Add([]byte(`{"project":"a","PROJECT":"b","project":"c"}`))
	f.Add([]byte(`[]`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, into := range []any{
			&createSimulatorSessionArgs{}, &completeAuthLinkArgs{}, &getEventLogArgs{}, &closeSessionArgs{}, &struct{}{},
			&waitForEventArgs{}, &expectDisplayArgs{}, &injectSensorArgs{}, &injectFaultArgs{}, &recordSessionArgs{},
			&getPermissionsArgs{},
			&setAssistantConfigArgs{}, &setConnectionPageConfigArgs{},
			&getProjectAnalyticsArgs{}, &getGatewayUsageArgs{}, &setCredentialArgs{},
		} {
			err := decodeInto(data, into)
			var refused *problem.Error
			if err != nil && (!errors.As(err, &refused) || refused.Code != problem.CodeInvalidRequest || refused.FixHint == "") {
				t.Errorf("%q: %v", data, err)
			}
			if err == nil && len(bytes.TrimSpace(data)) > 0 && !json.Valid(data) {
				t.Errorf("%q was accepted", data)
			}
			if args, ok := into.(*completeAuthLinkArgs); ok && err == nil {
				if wait := clamp(args.MaxWaitSeconds, 600, 1, 600); wait < 1 || wait > 600 {
					t.Errorf("%q waits %d s", data, wait)
				}
			}
		}
	})
}

// FuzzCalls calls tools with arbitrary arguments. A tool must not panic or send the glasses a frame that the protocol
// does not define, and every answer must be an object.
func FuzzCalls(f *testing.F) {
	names := []string{"getCapabilityGuide", "getPermissions", "getVoiceCommandGuidance", "getProductionChecklist",
		"startLocalSimulation", "getSessionStatus",
		"getEventLog", "waitForEvent", "getDisplayState", "expectDisplay", "injectInput", "injectTranscript",
		"injectSensor", "injectFault", "setDevice",
		"advanceTime", "runSteps", "recordSession", "replaySession", "closeSession", "listProjects", "getAssistantConfig",
		"setAssistantConfig", "getCredentialStatus", "setCredential",
		"getProjectAnalytics", "getGatewayUsage", "getConnectionPageConfig", "setConnectionPageConfig"}
	for i, args := range []string{
		`{"capability":"display","deviceModel":"even_g1"}`, `{"platform":"ios","capabilities":["camera"]}`,
		`{"phrases":["hey siri","\u0000"]}`, `{"platform":"web"}`,
		`{"project":"a.b","clock":"virtual"}`, `{"sessionId":"loc_x"}`, `{"since":-1}`,
		`{"payload":{"a":[{"b":null}]},"timeoutSeconds":1e300}`, `{"picture":false}`,
		`{"text":[""],"focus":null,"withinMs":-5}`, `{"kind":"tap","x":1e300,"y":-1}`, `{"text":"x","confidence":1e9}`,
		`{"state":{"battery":{"level":101}}}`,
		`{"code":"busy","times":-9}`, `{"deviceModel":"x"}`, `{"ms":1e18}`, `{"steps":[{"advance":1}]}`, `{"dir":"a\u0000"}`, `{"file":".."}`,
		`{"sessionId":""}`,
		`{}`, `{"project":"a.b"}`, `{"version":1e300,"voice":"","sounds":null}`, `{"project":""}`, `{"provider":"../x"}`,
		`{"from":"9999-12-31","to":"0000-00-00T00:00:00Z"}`, `{"openBrowser":null}`,
		`{"version":0,"phrases":[null],"toggles":[{"on":1}]}`,
	} {
		f.Add(uint8(i), []byte(args))
	}
	f.Add(uint8(slices.Index(names, "recordSession")),
		[]byte("{\"dir\":\"a\x7f\"}")) // Go and JSON quote this character differently
	w := newWorld().linked()
	// Without a panel, the model has no picture that a call could write.
	w.latest, w.display.Model = testLocal, glasses.Models()[1]
	catalogue := w.catalogue()
	f.Fuzz(func(t *testing.T, which uint8, args []byte) {
		w.controls, w.events = nil, nil
		ctx, cancel := context.WithCancel(caller.With(t.Context(), caller.Caller{Cwd: "/no/such/folder", IO: local.New()}))
		cancel() // so that no call waits
		result := catalogue.Call(ctx, names[int(which)%len(names)], args, IO{})
		var fields map[string]any
		if err := json.Unmarshal(result.Structured, &fields); err != nil || result.Outcome == problem.CodeInternal {
			t.Fatalf("answered %s", result.Structured)
		}
		for _, c := range w.controls {
			if _, err := glasses.ParseControl(c.typ, []byte(c.payload)); err != nil {
				t.Errorf("sent %s with %s: %v", c.typ, c.payload, err)
			}
		}
	})
}
