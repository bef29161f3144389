package tools

import (
	"context"
	"fmt"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/session"
)

const startLocalSimulationText = `Starts simulated glasses on this machine, to which the app under development attaches: no account, network, window or camera is needed. ` +
	`Get-or-create: the same project and directory give the same open session, so call it again whenever you need appEndpoint or appTokenFile. ` +
	`Use it for writing and testing an app, also in CI; clock "virtual" stands still until advanceTime moves it, so that a minute takes milliseconds. ` +
	`To show an app to a person, use createSimulatorSession (a page in the browser; needs a free account). ` +
	`Then start the app with the variables in environment, and go on with the calls in nextCalls. The app reads its secret from the file appTokenFile; do not print or copy it.`

type startLocalSimulation struct{ sessions localStarter }

type localStarter interface {
	StartLocal(ctx context.Context, who caller.Caller, req session.LocalRequest) (session.Opened, error)
}

type startLocalSimulationArgs struct {
	Project     string `json:"project"`
	DeviceModel string `json:"deviceModel"`
	Clock       string `json:"clock"`
	FixturesDir string `json:"fixturesDir"`
	Fresh       bool   `json:"fresh"`
}

type localSession struct {
	Status       string            `json:"status"`
	SessionID    string            `json:"sessionId"`
	Project      string            `json:"project"`
	DeviceModel  string            `json:"deviceModel"`
	Clock        string            `json:"clock"`
	NowMs        int64             `json:"nowMs"`
	AppEndpoint  string            `json:"appEndpoint"`
	AppTokenFile string            `json:"appTokenFile"`
	Environment  map[string]string `json:"environment"`
	Next         []nextCall        `json:"nextCalls"`
	Summary      string            `json:"summary"`
}

func (t startLocalSimulation) definition() definition {
	return definition{run: t.run, Tool: Tool{
		Name: "startLocalSimulation", Title: "Start simulated glasses here", Description: startLocalSimulationText,
		InputSchema: inputSchema(`
			"project":{"type":"string","description":"App id in reverse-DNS form, e.g. com.example.app. Left out: the \"project\" of `+manifestName+` in or above the working directory, else an id kept for that directory."},
			"deviceModel":{"type":"string","enum":[`+quoted(modelIDs())+`],"description":"Glasses to simulate. Left out: the session's own, or the default; setDevice changes it later."},
			"clock":{"type":"string","enum":["real","virtual"],"description":"real: time passes by itself. virtual: it stands until advanceTime moves it. Left out: the session's own, or real."},
			"fixturesDir":{"type":"string","description":"A folder with what camera and microphone get: pictures (.jpg, .png, or frames of a clip), sounds (.wav). Absolute or below the working directory. Left out: a built-in picture and silence."},
			"fresh":{"type":"boolean","default":false,"description":"Start another session although one is open."}`, ""),
		OutputSchema: outputSchema(`
			"status":{"type":"string","enum":["active","resumed"],"description":"active: a new session; resumed: it was open before."},
			"sessionId":{"type":"string"},
			"project":{"type":"string"},
			"deviceModel":{"type":"string"},
			"clock":{"type":"string","enum":["real","virtual"]},
			"nowMs":{"type":"integer","description":"The session's clock."},
			"appEndpoint":{"type":"string","description":"The WebSocket address the app attaches to."},
			"appTokenFile":{"type":"string","description":"The file that holds the secret the app shows in its first frame."},
			"environment":{"type":"object","additionalProperties":{"type":"string"},"description":"Start the app with these variables."},`+
			nextProperty+`,`+summaryProperty, `"status","sessionId","deviceModel","clock","appEndpoint","appTokenFile","environment","summary"`, false),
	}}
}

func (t startLocalSimulation) run(ctx context.Context, c call) (any, error) {
	var args startLocalSimulationArgs
	if err := decode(c.args, &args); err != nil {
		return nil, err
	}
	s, err := t.sessions.StartLocal(ctx, c.who, session.LocalRequest{
		Project: args.Project, DeviceModel: args.DeviceModel, Clock: args.Clock, FixturesDir: args.FixturesDir, Fresh: args.Fresh,
	})
	if err != nil {
		return nil, err
	}
	answer := localSession{
		Status: "resumed", SessionID: s.SessionID, Project: s.Project, DeviceModel: s.DeviceModel, Clock: s.Clock, NowMs: s.NowMs,
		AppEndpoint: s.AppEndpoint, AppTokenFile: s.AppTokenFile,
		Environment: appEnvironment(s),
	}
	if s.Created {
		answer.Status = "active"
	}
	answer.Next = localNext(s)
	answer.Summary = fmt.Sprintf("Local session %s for %s is %s with %s glasses in %s time. Start the app with %s=%s and %s=%s, then wait for app.attached with waitForEvent.",
		s.SessionID, s.Project, answer.Status, s.DeviceModel, s.Clock, envGlassesURL, s.AppEndpoint, envGlassesSecret, s.AppTokenFile)
	return answer, nil
}

func localNext(s session.Opened) []nextCall {
	id := fmt.Sprintf(`{"sessionId":%q`, s.SessionID)
	next := []nextCall{
		call1("waitForEvent", id+`,"type":"app.attached"}`, "wait until the app has attached"),
		call1("getDisplayState", id+`}`, "see what the wearer sees"),
		call1("injectInput", id+`,"kind":"tap"}`, "do what the wearer does"),
	}
	if s.Clock == backend.ClockVirtual {
		next = append(next, call1("advanceTime", id+`,"ms":1000}`, "let time pass"))
	}
	return next
}
