package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/guide"
	"github.com/service-dev/service/internal/programpath"
)

// Transports returns the descriptions of the transport adapters.
type Transports interface{ Transports() []backend.Transport }

type getPlatformInfo struct {
	transports Transports
	// servicectl is the path of the command-line tool. If it is empty, the tool of this installation is used.
	servicectl string
}

// transportNames maps the IDs of shipped transports to their names in the documentation. The title of an added adapter
// is not used, because its author wrote it.
var transportNames = map[string]string{
	"localsim": "LocalSimTransport", "realdevice": "RealDeviceTransport",
}

type platformTransport struct {
	ID           string   `json:"id"`
	Name         string   `json:"name,omitempty"`
	Tool         string   `json:"tool"`
	NeedsAccount bool     `json:"needsAccount"`
	VirtualClock bool     `json:"virtualClock,omitempty"`
	DeviceModels []string `json:"deviceModels,omitempty" jsonschema:"Default: all."`
}

// attachment describes how an app attaches to a session.
type attachment struct {
	URLVariable    string          `json:"urlVariable"`
	SecretVariable string          `json:"secretVariable"`
	Steps          []string        `json:"steps"`
	Hello          json.RawMessage `json:"hello"`
	Welcome        string          `json:"welcome"`
	Rules          []string        `json:"rules"`
}

// platformGuide is the content of guides/platform.json.
type platformGuide struct {
	Steps  []string   `json:"steps"`
	Attach attachment `json:"attach"`
}

type platformInfoAnswer struct {
	About        string              `json:"about"`
	Steps        []string            `json:"steps"`
	DeviceModels map[string]string   `json:"deviceModels" jsonschema:"The features of each, by id."`
	Capabilities map[string]string   `json:"capabilities" jsonschema:"A description of each, by id."`
	Transports   []platformTransport `json:"transports"`
	Attach       attachment          `json:"attach" jsonschema:"How an app attaches to a session."`
	Limits       map[string]int64    `json:"limits"`
	Servicectl   string              `json:"servicectl,omitempty" jsonschema:"The path of the command line."`
	Next         []nextCall          `json:"nextCalls"`
	Summary      string              `json:"summary"`
}

func (t getPlatformInfo) definition() definition {
	return define(readOnly("getPlatformInfo", "Learn what the service is",
		answersOf[platformInfoAnswer](required("about", "steps", "deviceModels", "capabilities", "transports",
			"attach", "limits", "summary"),
			on("attach", opaque),
		),
	), t.run)
}

func (t getPlatformInfo) run(_ context.Context, _ call, _ struct{}) (any, error) {
	known := readGuide[platformGuide]("platform")
	answer := platformInfoAnswer{
		About: "An app opens a WebSocket to a session and sends JSON commands; its glasses answer each " +
			"with a result and send events. Only the address differs by transport.",
		Steps: known.Steps, DeviceModels: map[string]string{},
		Capabilities: map[string]string{}, Transports: t.listTransports(), Attach: known.Attach,
		Limits: platformLimits(), Servicectl: t.commandLine(),
		Next: []nextCall{
			suggest("getCapabilityGuide", `{"capability":"display"}`, "learn a capability"),
			suggest("startLocalSimulation", `{}`, "get glasses to attach to"),
		},
	}
	for _, c := range guide.Capabilities() {
		answer.Capabilities[c.ID] = c.About
	}
	for _, m := range glasses.Models() {
		answer.DeviceModels[m.ID] = modelFactsOf(m)
	}
	answer.Summary = fmt.Sprintf("%d device models (%s unless another is named), %d capabilities. %s",
		len(answer.DeviceModels), glasses.DefaultDeviceModel, len(answer.Capabilities), guide.NotInThisVersion)
	return answer, nil
}

// listTransports returns the transports, each with the tool that opens a session on it.
func (t getPlatformInfo) listTransports() []platformTransport {
	var list []platformTransport
	for _, d := range t.transports.Transports() {
		tool := "startLocalSimulation"
		if d.HostsSessions {
			tool = "createSimulatorSession"
		}
		list = append(list, platformTransport{ID: d.Name, Name: transportNames[d.Name], Tool: tool,
			NeedsAccount: d.NeedsAccount, VirtualClock: d.VirtualClock, DeviceModels: d.DeviceModels})
	}
	return list
}

// commandLine returns the path of the command-line tool, or "" if the tool is not installed. The path stays valid after
// an upgrade.
func (t getPlatformInfo) commandLine() string {
	path := t.servicectl
	if path == "" {
		var err error
		if path, err = programpath.Stable("servicectl"); err != nil {
			return ""
		}
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return path
}

// modelFactsOf describes the parts of a model: panel, inputs, camera (by its largest picture) and others. It marks
// facts that are not from the vendor's documents, and describes how the real glasses can be used (glasses.Proof).
func modelFactsOf(m glasses.DeviceModel) string {
	var facts, unsure []string
	if m.Panel != nil {
		facts = append(facts, "panel "+panelWords(*m.Panel))
	}
	if len(m.Inputs) > 0 {
		facts = append(facts, "inputs "+strings.Join(m.Inputs, ", "))
	}
	if m.Camera != nil {
		facts = append(facts, fmt.Sprintf("camera %dx%d", m.Camera.Width, m.Camera.Height))
	}
	for _, part := range []struct {
		name string
		has  bool
	}{{"microphone", m.Microphone}, {"speaker", m.Speaker}, {"motion", m.Motion}} {
		if part.has {
			facts = append(facts, part.name)
		}
	}
	for _, fact := range slices.Sorted(maps.Keys(m.Fidelity)) {
		if m.Fidelity[fact] == glasses.Guessed {
			unsure = append(unsure, fact)
		}
	}
	if len(unsure) > 0 {
		facts = append(facts, "guessed: "+strings.Join(unsure, ", "))
	}
	if m.Proof.State != glasses.ProofNone {
		facts = append(facts, "real: "+m.Proof.State)
	}
	return strings.Join(facts, "; ")
}

// platformLimits returns the limits of frames. The limits of a command are in its guide.
func platformLimits() map[string]int64 {
	return map[string]int64{
		"textFrameBytes": glasses.MaxFrame, "binaryFrameBytes": glasses.MaxBinary, "helloBytes": glasses.MaxHello,
	}
}
