package tools

import (
	"context"
	"fmt"
	"strings"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/session"
)

const createSimulatorSessionText = `Opens a live simulator of smart glasses in the browser, to which the app under development attaches. ` +
	`Get-or-create: the same project and platform give the same open session, so call it again whenever you need its URL or endpoint. ` +
	`Use it to show an app to a person. To write and test one, startLocalSimulation needs no account and no browser. To look at an open session use getSessionStatus and getEventLog. ` +
	`Needs a linked account: without one it answers status "auth_required", which is a normal step. Show the person userCode and ` +
	`verificationUrl, have them compare the code, then call completeAuthLink with deviceCode; it repeats this call for you. ` +
	`The app reads its secret from the file appTokenFile; do not print or copy it.`

type createSimulatorSession struct {
	gate     *gate
	sessions sessionOpener
	browser  Browser
}

type sessionOpener interface {
	Open(ctx context.Context, target backend.Target, who caller.Caller, req session.Request) (session.Opened, error)
}

type createSimulatorSessionArgs struct {
	Project     string `json:"project"`
	Platform    string `json:"platform"`
	DeviceModel string `json:"deviceModel"`
	OpenBrowser *bool  `json:"openBrowser"`
	Fresh       bool   `json:"fresh"`
}

type simulatorSession struct {
	Status        string  `json:"status"`
	SessionID     string  `json:"sessionId"`
	Project       string  `json:"project"`
	Platform      string  `json:"platform"`
	DeviceModel   string  `json:"deviceModel"`
	SessionURL    string  `json:"sessionUrl"`
	AppEndpoint   string  `json:"appEndpoint"`
	AppTokenFile  string  `json:"appTokenFile"`
	ExpiresAt     *string `json:"expiresAt"`
	BrowserOpened bool    `json:"browserOpened"`
	// Environment is what the app is started with.
	Environment map[string]string `json:"environment"`
	Summary     string            `json:"summary"`
}

func (t createSimulatorSession) definition() definition {
	return definition{run: t.run, Tool: Tool{
		Name: "createSimulatorSession", Title: "Open a glasses simulator", Description: createSimulatorSessionText, NeedsAccount: true,
		InputSchema: inputSchema(`
			"project":{"type":"string","description":"App id in reverse-DNS form, e.g. com.example.app. Left out: the \"project\" of service.json in or above the working directory, else an id kept for that directory."},
			"platform":{"type":"string","enum":["ios","android","web","desktop"],"default":"web","description":"What the app is built for."},
			"deviceModel":{"type":"string","description":"Glasses to simulate, e.g. `+strings.Join(modelIDs(), ", ")+`. Left out: the session's own, or the default."},
			"openBrowser":{"type":"boolean","description":"true always opens the page in the person's browser, false never. Left out: when there is something new to see."},
			"fresh":{"type":"boolean","default":false,"description":"Open another session although one is open."}`, ""),
		OutputSchema: outputSchema(`
			"status":{"type":"string","enum":["auth_required","active","resumed"],"description":"active: a new session; resumed: it was open before."},`+
			sessionProperties+`,
			"appTokenFile":{"type":"string","description":"The file that holds the secret the app shows in its first frame."},
			"environment":{"type":"object","additionalProperties":{"type":"string"},"description":"Start the app with these variables."},`+
			summaryProperty, `"status","summary"`, true),
	}}
}

func (t createSimulatorSession) run(ctx context.Context, c call) (any, error) {
	var args createSimulatorSessionArgs
	if err := decode(c.args, &args); err != nil {
		return nil, err
	}
	return t.gate.run(ctx, c, args.OpenBrowser, func(ctx context.Context, target backend.Target) (any, error) {
		opened, err := t.sessions.Open(ctx, target, c.who, session.Request{
			Project: args.Project, Platform: args.Platform, DeviceModel: args.DeviceModel, Fresh: args.Fresh,
		})
		if err != nil {
			return nil, err
		}
		return t.answer(ctx, c, args, opened), nil
	})
}

func (t createSimulatorSession) answer(ctx context.Context, c call, args createSimulatorSessionArgs, s session.Opened) simulatorSession {
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
		Status: status, SessionID: s.SessionID, Project: s.Project, Platform: s.Platform, DeviceModel: s.DeviceModel,
		SessionURL: s.SessionURL, AppEndpoint: s.AppEndpoint, AppTokenFile: s.AppTokenFile,
		ExpiresAt: stampOrNull(s.ExpiresAt), BrowserOpened: opened,
		Environment: appEnvironment(s),
		Summary: fmt.Sprintf("Simulator session %s for %s is %s. Give the person %s (they sign in there); the app attaches to %s with the secret in %s.",
			s.SessionID, s.Project, status, s.SessionURL, s.AppEndpoint, s.AppTokenFile),
	}
}
