package tools

import (
	"context"
	"fmt"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses"
)

type startLocalSimulation struct {
	sessions Sessions
}

type startLocalSimulationArgs struct {
	Project     string `json:"project" jsonschema:"An app id such as com.example.app."`
	DeviceModel string `json:"deviceModel"`
	Clock       string `json:"clock"`
	FixturesDir string `json:"fixturesDir"`
	Transport   string `json:"transport" jsonschema:"A transport id from getPlatformInfo."`
	Pace        string `json:"pace"`
	TwinOf      string `json:"twinOf" jsonschema:"A session to imitate."`
	scriptArg
	freshArgs
}

type localSession struct {
	Status       string            `json:"status" jsonschema:"active: a new session; resumed: it was open before."`
	SessionID    string            `json:"sessionId"`
	Project      string            `json:"project"`
	DeviceModel  string            `json:"deviceModel"`
	Transport    string            `json:"transport,omitempty" jsonschema:"Set unless it is localsim."`
	Clock        string            `json:"clock"`
	NowMs        int64             `json:"nowMs" jsonschema:"The session's clock."`
	AppEndpoint  string            `json:"appEndpoint" jsonschema:"The WebSocket address the app attaches to."`
	AppTokenFile string            `json:"appTokenFile"`
	Environment  map[string]string `json:"environment" jsonschema:"Start the app with these variables."`
	replacedSession
	Next    []nextCall `json:"nextCalls"`
	Summary string     `json:"summary"`
}

func (t startLocalSimulation) definition() definition {
	return define(Tool{
		Name: "startLocalSimulation", Title: "Start simulated glasses here",
		OutputSchema: answersOf[localSession](required("status", "sessionId", "deviceModel", "clock", "appEndpoint",
			"appTokenFile", "environment", "summary"),
			on("status", oneOf("active", "resumed")),
			on("clock", oneOf("real", "virtual")),
			on("appTokenFile", says("The file with the secret that the app sends in its first frame.")),
		),
	}, t.run,
		on("deviceModel", oneOf(glasses.ModelIDs()...), says("setDevice changes it later.")),
		on("clock", oneOf("real", "virtual"), says("Default: the open session's clock, or real.")),
		on("pace", oneOf(session.PaceNone, session.PaceReal), says("real: pictures as slow as on real glasses.")),
		on("fixturesDir", says("A folder with pictures (.jpg, .png) for the camera and a sound (.wav) for the "+
			"microphone.")),
		scriptSays(),
	)
}

func (t startLocalSimulation) run(ctx context.Context, c call, args startLocalSimulationArgs) (any, error) {
	if err := args.check(); err != nil {
		return nil, err
	}
	s, err := t.sessions.StartLocal(ctx, c.who, session.LocalRequest{
		Project: args.Project, DeviceModel: args.DeviceModel, Clock: args.Clock, FixturesDir: args.FixturesDir,
		Transport: args.Transport, Pace: args.Pace, TwinOf: args.TwinOf,
		AssistantScript: args.AssistantScript, Fresh: args.Fresh,
	})
	if err != nil {
		return nil, err
	}
	answer := localSession{
		Status: "resumed", SessionID: s.SessionID, Project: s.Project, DeviceModel: s.DeviceModel, Clock: s.Clock,
		NowMs:       s.NowMs,
		AppEndpoint: s.AppEndpoint, AppTokenFile: s.AppTokenFile,
		Environment: appEnvironment(s),
	}
	if s.Created {
		answer.Status = "active"
	}
	if s.Transport != backend.TransportLocal {
		answer.Transport = s.Transport
	}
	var note string
	answer.replacedSession, note = args.replace(ctx, t.sessions, backend.Target{}, c.who, s)
	answer.Next = localNext(s)
	answer.Summary = fmt.Sprintf("Local session %s for %s is %s with %s glasses in %s time. Start the app with %s=%s "+
		"and %s=%s, then wait for app.attached with waitForEvent.",
		s.SessionID, s.Project, answer.Status, s.DeviceModel, s.Clock,
		envGlassesURL, s.AppEndpoint, envGlassesSecret, s.AppTokenFile) + note
	return answer, nil
}

func localNext(s session.Opened) []nextCall {
	id := fmt.Sprintf(`{"sessionId":%q`, s.SessionID)
	next := []nextCall{
		suggest("waitForEvent", id+`,"type":"app.attached"}`, "wait until the app has attached"),
		suggest("getDisplayState", id+`}`, "see the wearer's view"),
		suggest("injectInput", id+`,"kind":"tap"}`, "act as the wearer"),
	}
	if s.Clock == backend.ClockVirtual {
		next = append(next, suggest("advanceTime", id+`,"ms":1000}`, "let time pass"))
	}
	return next
}
