package tools

import (
	"encoding/json"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
)

func TestSessionTools_LocalSessionsNeedNoAccount(t *testing.T) {
	for tool, args := range map[string]string{
		"startLocalSimulation": `{}`, "getSessionStatus": `{"sessionId":"` + testLocal + `"}`,
		"getEventLog": `{}`, "closeSession": `{"sessionId":"` + testLocal + `"}`,
		"getDisplayState": `{}`, "expectDisplay": `{"text":["Shopping"]}`, "injectInput": `{"kind":"tap"}`,
		"injectTranscript": `{"text":"hello"}`,
		"injectSensor":     `{"state":{"worn":false}}`, "injectFault": `{"code":"busy"}`,
		"setDevice": `{"deviceModel":"even_g1"}`, "advanceTime": `{"ms":5}`,
	} {
		w := newWorld().locally()
		if result, fields := w.call(t, tool, args, IO{}); result.IsError || fields["status"] == "auth_required" ||
			w.gated != nil {
			t.Errorf("%s: %v", tool, fields)
		}
	}
}

func TestStartLocalSimulation(t *testing.T) {
	w := newWorld().locally()
	w.opened.Clock = backend.ClockVirtual
	_, fields := w.call(t, "startLocalSimulation",
		`{"project":"a.b","deviceModel":"even_g1","clock":"virtual","fixturesDir":"media","transport":"mine",
		"fresh":true}`, IO{})
	if w.local.Project != "a.b" || w.local.DeviceModel != "even_g1" || w.local.Clock != "virtual" ||
		w.local.FixturesDir != "media" || w.local.Transport != "mine" || !w.local.Fresh {
		t.Errorf("requested %+v, want the arguments passed on", w.local)
	}
	env, _ := fields["environment"].(map[string]any)
	if fields["status"] != "active" || env["SERVICE_GLASSES_URL"] != w.opened.AppEndpoint ||
		env["SERVICE_GLASSES_SECRET_FILE"] != w.opened.AppTokenFile {
		t.Errorf("answered %v", fields)
	}
	w.opened.Created = false
	result, fields := w.call(t, "startLocalSimulation", `{}`, IO{})
	if fields["status"] != "resumed" {
		t.Errorf("the second call: %v, want resumed", fields)
	}
	checkNext(t, w.catalogue().List(), "startLocalSimulation", result)
}

func TestGetPlatformInfo_ListsTransports(t *testing.T) {
	w := newWorld()
	w.added = []backend.Transport{{Name: "own", Title: "Own glasses", DeviceModels: []string{"even_g1"}}}
	_, fields := w.call(t, "getPlatformInfo", `{}`, IO{})
	list, err := json.Marshal(fields["transports"])
	want := `[{"id":"localsim","name":"LocalSimTransport","needsAccount":false,"tool":"startLocalSimulation",` +
		`"virtualClock":true},` +
		`{"id":"browsersim","needsAccount":true,"tool":"createSimulatorSession"},` +
		`{"deviceModels":["even_g1"],"id":"own","needsAccount":false,"tool":"startLocalSimulation"}]`
	if err != nil || string(list) != want {
		t.Errorf("lists %s, %v; want %s", list, err, want)
	}
}

func TestSessionTools_WithoutASession(t *testing.T) {
	w := newWorld()
	w.open = nil
	for _, tool := range []string{"getEventLog", "getDisplayState", "waitForEvent"} {
		_, fields := w.call(t, tool, `{}`, IO{})
		if hint, _ := fields["fixHint"].(string); fields["code"] != problem.CodeNotFound ||
			!strings.Contains(hint, "startLocalSimulation") {
			t.Errorf("%s: %v", tool, fields)
		}
	}
	if w.gated != nil || len(w.browsed) > 0 {
		t.Error("a tool that needs no account asked for a link")
	}
	_, fields := w.call(t, "getSessionStatus", `{}`, IO{})
	if list, ok := fields["sessions"].([]any); !ok || len(list) != 0 || fields["status"] != "ok" {
		t.Errorf("status: %v", fields)
	}
}

func TestInject_SendsControls(t *testing.T) {
	dir := t.TempDir()
	picture := filepath.Join(dir, "a.png")
	f, err := os.Create(picture)
	if err != nil {
		t.Fatal(err)
	}
	if err := png.Encode(f, image.NewGray(image.Rect(0, 0, 2, 2))); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	for _, test := range []struct{ tool, args, typ, payload string }{
		{"injectInput", `{"kind":"tap","x":3,"y":4.0}`, "sim.input", `{"kind":"tap","x":3,"y":4}`},
		{"injectInput", `{"kind":"tap","x":null,"target":null,"direction":""}`, "sim.input", `{"kind":"tap","x":0,"y":0}`},
		{"injectInput", `{"target":"milk"}`, "sim.input", `{"x":0,"y":0,"target":"milk"}`},
		{"injectInput", `{"kind":"navigate","direction":"down"}`, "sim.input",
			`{"kind":"navigate","x":0,"y":0,"direction":"down"}`},
		{"injectTranscript", `{"text":"next page"}`, "sim.transcript", `{"text":"next page","final":true}`},
		{"injectTranscript", `{"text":"next","final":false,"language":"en","confidence":50}`, "sim.transcript",
			`{"text":"next","final":false,"language":"en","confidence":50}`},
		{"injectSensor", `{"state":{"battery":{"level":9},"worn":false}}`, "sim.state",
			`{"battery":{"level":9,"charging":false},"worn":false}`},
		{"injectSensor", `{"motion":{"ax":1,"az":1000}}`, "sim.motion",
			`{"ax":1,"ay":0,"az":1000,"gx":0,"gy":0,"gz":0}`},
		{"injectSensor", `{"cameraFile":` + quote(picture) + `}`, "sim.camera", `{}`},
		{"injectSensor", `{"resetMicrophone":true}`, "sim.microphone", `{}`},
		{"injectFault", `{"command":"camera.photo","code":"busy","times":2}`, "sim.fault",
			`{"command":"camera.photo","code":"busy","times":2}`},
		{"injectFault", `{"latencyMs":300}`, "sim.fault", `{"latencyMs":300,"times":1}`},
		{"setDevice", `{"deviceModel":"even_g2"}`, "sim.device", `{"deviceModel":"even_g2"}`},
	} {
		w := newWorld().locally()
		_, fields := w.call(t, test.tool, test.args, IO{})
		if fields["status"] != "ok" || len(w.controls) != 1 || fields["since"] != 3.0 {
			t.Errorf("%s %s: %v", test.tool, test.args, fields)
			continue
		}
		if got := w.controls[0]; got.id != testLocal || got.typ != test.typ || got.payload != test.payload ||
			(got.media != nil) != strings.Contains(test.args, "cameraFile") {
			t.Errorf("%s %s: %+v", test.tool, test.args, got)
		}
	}
}

func quote(s string) string {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func TestInject_RefusesInvalidArguments(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "a.txt")
	if err := os.WriteFile(text, []byte("\x89PN"), 0o600); err != nil {
		t.Fatal(err)
	}
	big := filepath.Join(dir, "big.wav")
	if err := os.WriteFile(big, make([]byte, 1<<20+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ tool, args, code, mention string }{
		{"injectInput", `{}`, problem.CodeInvalidRequest, "kind"},
		{"injectInput", `{"kind":"tap","target":"milk"}`, problem.CodeInvalidRequest, "target"},
		{"injectInput", `{"target":"milk","x":3}`, problem.CodeInvalidRequest, "target"},
		{"injectInput", `{"kind":"wink"}`, problem.CodeInvalidRequest, "kind"},
		{"injectInput", `{"kind":"swipe"}`, problem.CodeInvalidRequest, "direction"},
		{"injectTranscript", `{"text":""}`, problem.CodeInvalidRequest, "text"},
		{"injectTranscript", `{"text":"a","confidence":101}`, problem.CodeInvalidRequest, "confidence"},
		{"injectSensor", `{}`, problem.CodeInvalidRequest, "nothing"},
		{"injectSensor", `{"state":{"mood":"good"}}`, problem.CodeInvalidRequest, "mood"},
		{"injectSensor", `{"state":{"hinge":"ajar"}}`, problem.CodeInvalidRequest, "hinge"},
		{"injectSensor", `{"state":[]}`, problem.CodeInvalidRequest, "state"},
		{"injectSensor", `{"motion":{"up":1}}`, problem.CodeInvalidRequest, "up"},
		{"injectSensor", `{"cameraFile":"/no/such/file"}`, problem.CodeFileUnreadable, "does not exist"},
		{"injectSensor", `{"cameraFile":` + quote(dir) + `}`, problem.CodeFileUnreadable, "not a regular file"},
		{"injectSensor", `{"cameraFile":` + quote(text) + `}`, problem.CodeFileUnreadable, "PNG or JPEG"},
		{"injectSensor", `{"microphoneFile":` + quote(big) + `}`, problem.CodeFileUnreadable, "bytes"},
		{"injectSensor", `{"cameraFile":"a\u0000b"}`, problem.CodeInvalidRequest, "path"},
		{"injectFault", `{}`, problem.CodeInvalidRequest, "at least one of code, latencyMs, clear"},
		{"injectFault", `{"code":"tired"}`, problem.CodeInvalidRequest, "code"},
		{"injectFault", `{"code":"busy","times":0}`, "", ""},
		{"injectFault", `{"code":"busy","times":5000}`, problem.CodeInvalidRequest, "times"},
		{"injectFault", `{"command":"sing","code":"busy"}`, problem.CodeInvalidRequest, "command"},
		{"setDevice", `{"deviceModel":"monocle"}`, problem.CodeInvalidRequest, "deviceModel"},
		{"advanceTime", `{}`, problem.CodeInvalidRequest, "ms"},
		{"advanceTime", `{"ms":-1}`, problem.CodeInvalidRequest, "ms"},
		{"expectDisplay", `{}`, problem.CodeInvalidRequest, "at least one of text"},
		{"expectDisplay", `{"text":[]}`, problem.CodeInvalidRequest, "nothing"},
		{"expectDisplay", `{"text":[""],"contains":true}`, problem.CodeInvalidRequest, "an empty text"},
		{"expectDisplay", `{"text":["x"],"withinMs":60000}`, problem.CodeInvalidRequest, "withinMs"},
		{"runSteps", `{"steps":[]}`, problem.CodeInvalidRequest, "steps is empty"},
		{"runSteps", `{"steps":[{"expectDisplay":{"text":[""]}}]}`, problem.CodeInvalidRequest, "an empty text"},
		{"runSteps", `{}`, problem.CodeInvalidRequest, "steps or file"},
		{"runSteps", `{"steps":[],"file":"x"}`, problem.CodeInvalidRequest, "steps or file"},
		{"runSteps", `{"steps":[{"advance":1},{"input":{"kind":"lick"}}]}`, problem.CodeInvalidRequest,
			`steps[1].input.kind: it is "lick"; expected a string, one of tap`},
		{"expectDisplay", `{"text":"Hello"}`, problem.CodeInvalidRequest, "text"},
		{"waitForEvent", `{"chip":"salsa"}`, problem.CodeInvalidRequest, "chip"},
		{"waitForEvent", `{"type":"display.show","kind":"event"}`, problem.CodeInvalidRequest,
			"no entry of the event log can match: display.show has kind request"},
		{"runSteps", `{"steps":[{"expect":{"type":"input","sender":"app","absent":true}}]}`, problem.CodeInvalidRequest,
			"steps[0].expect: no entry of the event log can match: input has kind event and sender glasses"},
		{"waitForEvent", `{"payload":7}`, problem.CodeInvalidRequest, "payload"},
		{"getCapabilityGuide", `{"capability":"smell"}`, problem.CodeInvalidRequest, "capability"},
		{"getCapabilityGuide", `{"capability":"display","deviceModel":"monocle"}`, problem.CodeInvalidRequest, "deviceModel"},
		{"getPermissions", `{}`, problem.CodeInvalidRequest, "platform"},
		{"getPermissions", `{"platform":"web","capabilities":["smell"]}`, problem.CodeInvalidRequest, "capabilities"},
	} {
		w := newWorld().locally()
		_, fields := w.call(t, test.tool, test.args, IO{})
		if test.code == "" {
			continue
		}
		message, _ := fields["message"].(string)
		if fields["code"] != test.code || !strings.Contains(message, test.mention) || len(w.controls) > 0 {
			t.Errorf("%s %s: %v", test.tool, test.args, fields)
		}
	}
}

func TestInject_ReturnsRefusalsOfTheGlasses(t *testing.T) {
	for _, test := range []struct{ tool, args, code, hint string }{
		{"injectTranscript", `{"text":"hello"}`, glasses.CodePaused, "transcription.start"},
		{"injectTranscript", `{"text":"hello"}`, glasses.CodeHingeClosed, `{"hinge":"open"}`},
		{"injectTranscript", `{"text":"hello"}`, glasses.CodePermissionDenied, `{"permissions":{"speech":"granted"}}`},
		{"injectTranscript", `{"text":"hello"}`, glasses.CodeDisabledByUser, `{"disabled":[]}`},
		{"injectTranscript", `{"text":"hello"}`, glasses.CodeBusy, `{"call":false}`},
		{"injectTranscript", `{"text":"hello"}`, glasses.CodeNotConnected, "open the page"},
		{"injectInput", `{"kind":"hold"}`, glasses.CodeUnsupported, "setDevice"},
		{"injectInput", `{"kind":"tap"}`, glasses.CodeNotConnected, "injectSensor"},
		{"injectInput", `{"target":"milk"}`, glasses.CodeUnreachable, "fewer targets"},
	} {
		w := newWorld().locally()
		w.refusal = &glasses.Error{Code: test.code, Message: "no", Part: glasses.PartSpeech}
		result, fields := w.call(t, test.tool, test.args, IO{})
		if hint, _ := fields["fixHint"].(string); !result.IsError || fields["code"] != test.code ||
			!strings.Contains(hint, test.hint) {
			t.Errorf("%s %s: %v", test.tool, test.args, fields)
		}
	}
	w := newWorld().linked()
	w.sessionErr = &problem.Error{Code: glasses.CodeNotConnected, Message: "no page is open"}
	if _, fields := w.call(t, "injectInput", `{"kind":"tap","sessionId":"`+testID+`"}`,
		IO{}); fields["retryable"] != true || !strings.Contains(fields["fixHint"].(string), "sessionUrl") {
		t.Errorf("without a page: %v, want not_connected", fields)
	}
}

func rows(list ...string) backendapi.EventPage {
	page := backendapi.EventPage{}
	for _, row := range list {
		page.Events = append(page.Events, json.RawMessage(row))
		page.Next++
	}
	return page
}

func TestWaitForEvent(t *testing.T) {
	const input, shown = `{"seq":1,"kind":"event","chip":"display","type":"input","sender":"glasses",` +
		`"payload":{"kind":"tap","target":"done","at":[1,{"a":2}]}}`,
		`{"seq":2,"kind":"request","chip":"display","type":"display.show","sender":"app","payload":{}}`
	for _, test := range []struct{ args, want string }{
		{`{"type":"display.show"}`, "found"}, {`{"kind":"request"}`, "found"}, {`{"sender":"app"}`, "found"},
		{`{}`, "found"},
		{`{"payload":{"target":"done"}}`, "found"}, {`{"payload":{"at":[1,{"a":2}]}}`, "found"},
		{`{"payload":{"target":"other"}}`, "timeout"}, {`{"payload":{"at":[1]}}`, "timeout"},
		{`{"type":"motion"}`, "timeout"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld().locally()
			w.pages = []backendapi.EventPage{rows(input, shown)}
			result, fields := w.call(t, "waitForEvent", strings.Replace(test.args, "{", `{"timeoutSeconds":3,`, 1), IO{})
			if test.args == `{}` {
				result, fields = w.call(t, "waitForEvent", `{"timeoutSeconds":3}`, IO{})
			}
			if result.IsError || test.args != `{}` && fields["status"] != test.want {
				t.Errorf("%s: %v", test.args, fields)
			}
			if last, _ := fields["last"].([]any); fields["status"] == "timeout" && test.args != `{}` && len(last) != 2 {
				t.Errorf("%s: last %v", test.args, last)
			}
		})
	}
}

// Missing rows are reported, because an answer without them does not prove that nothing happened.
func TestEventTools_ReportTruncatedLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld().locally()
		w.page = backendapi.EventPage{Next: 7, Truncated: true}
		if _, fields := w.call(t, "getEventLog", `{"since":3}`, IO{}); fields["truncated"] != true ||
			!strings.Contains(fields["summary"].(string), "deleted") {
			t.Errorf("getEventLog: %v, want truncated and a summary that says so", fields)
		}
		left := rows(`{"seq":9,"kind":"event","type":"input","sender":"glasses","payload":{}}`)
		left.Truncated = true
		w.pages = []backendapi.EventPage{left}
		if _, fields := w.call(t, "waitForEvent", `{"type":"input"}`, IO{}); fields["status"] != "found" ||
			fields["truncated"] != true {
			t.Errorf("waitForEvent: %v, want found with truncated", fields)
		}
		w.pages, w.waited = []backendapi.EventPage{{Next: 9, Truncated: true}}, nil
		begun := time.Now()
		_, fields := w.call(t, "waitForEvent", `{"type":"input"}`, IO{})
		if fields["status"] != "timeout" || fields["truncated"] != true || fields["next"] != 9.0 ||
			time.Since(begun) > 10*time.Second {
			t.Errorf("waitForEvent on a deleted part of the log: %v after %v; want a timeout with truncated",
				fields, time.Since(begun))
		}
	})
}

func TestWaitForEvent_StartsAtTheLastInjection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld().locally()
		c := w.catalogue()
		c.Call(t.Context(), "injectInput", json.RawMessage(`{"kind":"tap"}`), IO{})
		c.Call(t.Context(), "waitForEvent", json.RawMessage(`{"timeoutSeconds":1}`), IO{})
		c.Call(t.Context(), "waitForEvent", json.RawMessage(`{"timeoutSeconds":1,"since":0}`), IO{})
		if w.waited[0] != 3 || w.waited[len(w.waited)-1] != 0 {
			t.Errorf("waited from %v, want 3 first and 0 last", w.waited)
		}
		beats := 0
		c.Call(t.Context(), "waitForEvent", json.RawMessage(`{"timeoutSeconds":100}`),
			IO{Progress: func(float64, float64, string) { beats++ }})
		if beats < 4 {
			t.Errorf("%d progress reports in 100 s, want at least 4", beats)
		}
	})
}

func TestAdvanceTime(t *testing.T) {
	w := newWorld().locally()
	w.settled = false
	_, fields := w.call(t, "advanceTime", `{"ms":60000}`, IO{})
	if summary, _ := fields["summary"].(string); fields["nowMs"] != 60000.0 || fields["settled"] != false ||
		!strings.Contains(summary, "barrier") {
		t.Errorf("advanced: %v", fields)
	}
}
