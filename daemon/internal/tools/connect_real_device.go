package tools

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/uncleared"
)

type connectRealDevice struct {
	sessions Sessions
	browser  Browser
}

type connectRealDeviceArgs struct {
	Project        string   `json:"project"`
	DeviceModel    string   `json:"deviceModel"`
	Name           string   `json:"name" jsonschema:"E.g. Even G1_27."`
	Via            string   `json:"via"`
	TimeoutSeconds *integer `json:"timeoutSeconds"`
}

// Limits of timeoutSeconds.
const (
	realWait    = 20
	maxRealWait = 60
)

// realGlasses is the state of real glasses.
type realGlasses struct {
	Name    string         `json:"name,omitempty"`
	Carrier string         `json:"carrier,omitempty" jsonschema:"What connects them: bluez or browser."`
	Links   []realLink     `json:"links" jsonschema:"One for each radio of the pair."`
	Problem *realProblem   `json:"problem,omitempty" jsonschema:"Why they are not connected."`
	Page    string         `json:"url,omitempty" jsonschema:"The page that the user opens."`
	Steps   []string       `json:"steps,omitempty" jsonschema:"What the user does to prepare them."`
	Notice  string         `json:"notice,omitempty" jsonschema:"What an earlier session may still show."`
	Proof   *glasses.Proof `json:"proof" jsonschema:"How far this service is proven on these glasses."`
}

type realLink struct {
	Key            string `json:"key"`
	State          string `json:"state" jsonschema:"up, opening or down."`
	RSSI           int    `json:"rssi,omitempty" jsonschema:"The signal in dBm."`
	MTU            int    `json:"mtu,omitempty"`
	BatteryPercent int    `json:"batteryPercent,omitempty"`
	Firmware       string `json:"firmware,omitempty"`
}

type realProblem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	FixHint string `json:"fixHint"`
}

type realDevice struct {
	Status       string            `json:"status"`
	SessionID    string            `json:"sessionId"`
	Project      string            `json:"project"`
	DeviceModel  string            `json:"deviceModel"`
	Glasses      realGlasses       `json:"glasses"`
	AppEndpoint  string            `json:"appEndpoint"`
	AppTokenFile string            `json:"appTokenFile"`
	Environment  map[string]string `json:"environment"`
	Next         []nextCall        `json:"nextCalls"`
	Summary      string            `json:"summary"`
}

func (t connectRealDevice) definition() definition {
	return define(Tool{
		Name: "connectRealDevice", Title: "Connect real glasses",
		OutputSchema: answersOf[realDevice](required("status", "sessionId", "deviceModel", "glasses", "appEndpoint",
			"appTokenFile", "environment", "summary"),
			on("status", oneOf("connected", "waiting", "waiting_for_person")),
			on("glasses", opaque),
		),
	}, t.run,
		on("via", oneOf(session.ViaAuto, session.ViaBlueZ, session.ViaBrowser)),
		on("timeoutSeconds", says("1 to 60.")),
	)
}

func (t connectRealDevice) run(ctx context.Context, c call, args connectRealDeviceArgs) (any, error) {
	wait := clamp(args.TimeoutSeconds, realWait, 1, maxRealWait)
	s, err := t.sessions.ConnectReal(ctx, c.who, session.RealRequest{
		Project: args.Project, DeviceModel: args.DeviceModel, Name: args.Name, Via: args.Via,
		Wait: time.Duration(wait) * time.Second,
	})
	if err != nil {
		return nil, err
	}
	if s.NewPage != "" {
		_, _ = t.browser.Open(ctx, c.who, s.NewPage) // the summary also contains the address
	}
	h := s.Hardware
	answer := realDevice{
		Status: "waiting", SessionID: s.SessionID, Project: s.Project, DeviceModel: s.DeviceModel,
		Glasses: realGlassesOf(s.DeviceModel, h), AppEndpoint: s.AppEndpoint, AppTokenFile: s.AppTokenFile,
		Environment: appEnvironment(s.Opened), Next: localNext(s.Opened),
	}
	start := fmt.Sprintf("Start the app with %s=%s and %s=%s.", envGlassesURL, s.AppEndpoint, envGlassesSecret,
		s.AppTokenFile)
	switch {
	case session.IsConnected(&h):
		answer.Status = "connected"
		answer.Summary = fmt.Sprintf("%s is connected to session %s. %s", h.Pair.Name, s.SessionID, start)
	case h.ConnectURL != "":
		answer.Status = "waiting_for_person"
		answer.Summary = fmt.Sprintf("Tell the user: open %s in Chrome or Edge on this computer, if it did not open, and "+
			"press its buttons to choose the glasses. %s Then call connectRealDevice again, which waits. %s",
			h.ConnectURL, strings.Join(h.Steps, " "), start)
	case h.Problem != nil && h.Carrier == session.ViaBrowser:
		answer.Status = "waiting_for_person"
		answer.Summary = fmt.Sprintf("The glasses are not connected: %s. Tell the user, on the page that is open in their "+
			"browser: %s Then call connectRealDevice again, which waits.", h.Problem.Message, h.Problem.FixHint)
	case h.Problem != nil:
		answer.Summary = fmt.Sprintf("The glasses are not connected: %s. Tell the user: %s Session %s then connects "+
			"to the glasses automatically.", h.Problem.Message, h.Problem.FixHint, s.SessionID)
	default:
		answer.Summary = fmt.Sprintf("Session %s is still looking for the glasses and connects to them automatically. %s",
			s.SessionID, start)
	}
	if notice := answer.Glasses.Notice; notice != "" {
		answer.Summary += " Tell the user: " + notice + "."
	}
	return answer, nil
}

// realGlassesOf returns the state of real glasses in the form for agents, without addresses and serial numbers.
func realGlassesOf(deviceModel string, h backend.Hardware) realGlasses {
	proof := glasses.ProofOf(deviceModel)
	g := realGlasses{Name: h.Pair.Name, Carrier: h.Carrier, Links: []realLink{}, Page: h.ConnectURL, Proof: &proof}
	for _, l := range h.Links {
		g.Links = append(g.Links, realLink{l.Key, l.State, l.RSSI, l.MTU, l.BatteryPercent, l.Firmware})
	}
	if p := h.Problem; p != nil {
		g.Problem, g.Steps = &realProblem{p.Code, p.Message, p.FixHint}, h.Steps
	}
	if h.Uncleared {
		g.Notice = uncleared.Notice(h.Pair.Name) + "; " + uncleared.Next
	}
	return g
}
