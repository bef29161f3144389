package tools

import (
	"context"
	"fmt"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/guide"
)

type createSimulatorSession struct {
	gate     *gate
	sessions Sessions
	browser  Browser
}

type createSimulatorSessionArgs struct {
	Project     string `json:"project" jsonschema:"An app id such as com.example.app."`
	Platform    string `json:"platform"`
	DeviceModel string `json:"deviceModel"`
	OpenBrowser *bool  `json:"openBrowser"`
	scriptArg
	freshArgs
}

// freshArgs are the arguments that open a new session instead of returning the open one.
type freshArgs struct {
	Fresh         bool `json:"fresh" jsonschema:"Open another session."`
	ClosePrevious bool `json:"closePrevious" jsonschema:"With fresh: close the previous session."`
}

func (a freshArgs) check() error {
	if a.ClosePrevious && !a.Fresh {
		return invalid("closePrevious needs fresh true", "Pass both, or call closeSession.")
	}
	return nil
}

// scriptArg is the argument for a script that answers the app's assistant.
type scriptArg struct {
	AssistantScript string `json:"assistantScript"`
}

func scriptSays() option {
	return on("assistantScript", says("A file that answers the app's assistant: searchDocs assistant-scripts."))
}

// replacedSession is the part of an answer that reports the outcome of closePrevious.
type replacedSession struct {
	Closed    string `json:"closedSessionId,omitempty" jsonschema:"The session that was closed."`
	NotClosed string `json:"notClosed,omitempty" jsonschema:"Why no session was closed."`
}

// replace closes the previous session if the arguments request it. If the session cannot be closed, the call still
// succeeds, because the session expires by itself. note is a sentence for the summary.
func (a freshArgs) replace(ctx context.Context, sessions Sessions, target backend.Target, who caller.Caller,
	by session.Opened) (r replacedSession, note string) {
	if !a.ClosePrevious {
		return r, ""
	}
	done := sessions.ClosePrevious(ctx, target, who, by)
	if done.Closed != "" {
		return replacedSession{Closed: done.Closed}, " Closed the previous session " + done.Closed + "."
	}
	return replacedSession{NotClosed: done.WhyNot}, " No session was closed: " + done.WhyNot + "."
}

// sessionAddress identifies a session and contains its addresses for users and apps.
type sessionAddress struct {
	SessionID   string  `json:"sessionId"`
	Project     string  `json:"project" jsonschema:"The app id of the session."`
	Platform    string  `json:"platform,omitempty"`
	DeviceModel string  `json:"deviceModel" jsonschema:"The simulated glasses."`
	SessionURL  string  `json:"sessionUrl,omitempty" jsonschema:"The page for the user to sign in." format:"uri"`
	AppEndpoint string  `json:"appEndpoint" jsonschema:"The WebSocket address the app attaches to." format:"uri"`
	ExpiresAt   *string `json:"expiresAt" jsonschema:"When the session ends unless it is used." format:"date-time"`
}

type simulatorSession struct {
	Status string `json:"status" jsonschema:"active: a new session; resumed: it was open before."`
	sessionAddress
	AppTokenFile  string            `json:"appTokenFile" jsonschema:"File with the secret of the app's first frame."`
	BrowserOpened bool              `json:"browserOpened" jsonschema:"Whether a page was opened."`
	Environment   map[string]string `json:"environment" jsonschema:"Start the app with these variables."`
	replacedSession
	Next    []nextCall `json:"nextCalls"`
	Summary string     `json:"summary"`
}

func (t createSimulatorSession) definition() definition {
	return define(Tool{
		Name: "createSimulatorSession", Title: "Open a glasses simulator",
		NeedsAccount: true,
		OutputSchema: gatedAnswersOf[simulatorSession]([]string{"active", "resumed"}),
	}, t.run,
		on("platform", oneOf(guide.Platforms()...), byDefault("web")),
		on("deviceModel", says("An id from getPlatformInfo.")),
		on("openBrowser", says("Default: if the session is new.")), scriptSays(),
	)
}

func (t createSimulatorSession) run(ctx context.Context, c call, args createSimulatorSessionArgs) (any, error) {
	if err := args.check(); err != nil {
		return nil, err
	}
	return t.gate.run(ctx, c, args.OpenBrowser, func(ctx context.Context, target backend.Target) (any, error) {
		opened, err := t.sessions.Open(ctx, target, c.who, session.Request{
			Project: args.Project, Platform: args.Platform, DeviceModel: args.DeviceModel,
			AssistantScript: args.AssistantScript, Fresh: args.Fresh,
		})
		if err != nil {
			return nil, err
		}
		answer := t.answer(ctx, c, args, opened)
		var note string
		answer.replacedSession, note = args.replace(ctx, t.sessions, target, c.who, opened)
		answer.Summary += note
		return answer, nil
	})
}

func (t createSimulatorSession) answer(ctx context.Context, c call, args createSimulatorSessionArgs,
	s session.Opened) simulatorSession {
	status := "resumed"
	if s.Created {
		status = "active"
	}
	show := s.Created
	if args.OpenBrowser != nil {
		show = *args.OpenBrowser
	}
	opened := false
	if show {
		opened, _ = t.browser.Open(ctx, c.who, s.SessionURL)
	}
	return simulatorSession{
		Status: status, AppTokenFile: s.AppTokenFile, BrowserOpened: opened, Environment: appEnvironment(s),
		sessionAddress: sessionAddress{
			SessionID: s.SessionID, Project: s.Project, Platform: s.Platform, DeviceModel: s.DeviceModel,
			SessionURL: s.SessionURL, AppEndpoint: s.AppEndpoint, ExpiresAt: stampOrNull(s.ExpiresAt),
		},
		Next: []nextCall{
			suggest("waitForEvent", fmt.Sprintf(`{"sessionId":%q,"type":%q}`, s.SessionID, glasses.RowGlassesAttached),
				"wait until the user has opened the page"),
			suggest("waitForEvent", fmt.Sprintf(`{"sessionId":%q,"type":%q}`, s.SessionID, glasses.RowAppAttached),
				"wait until the app has attached"),
			suggest("getDisplayState", fmt.Sprintf(`{"sessionId":%q}`, s.SessionID), "see the wearer's view"),
		},
		Summary: fmt.Sprintf("Simulator session %s for %s is %s. Give the user %s (they sign in there), and start the "+
			"app with the variables in environment. The app waits until the page is open: before that its commands are "+
			"answered %s. Next: waitForEvent with type %s.",
			s.SessionID, s.Project, status, s.SessionURL, glasses.CodeNotConnected, glasses.RowGlassesAttached),
	}
}
