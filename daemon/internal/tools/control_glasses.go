package tools

import (
	"context"
	"fmt"
	"strings"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/proto/glasses"
)

// glassesControl makes the simulated glasses of a session do something.
type glassesControl interface {
	Control(ctx context.Context, target backend.Target, id, typ string, payload any, media []byte) (glasses.Result, error)
}

// injector is what the tools that inject have in common.
type injector struct {
	reach
	glasses glassesControl
}

// injection is one control frame and what it is called in the answer.
type injection struct {
	typ     string
	payload any
	media   []byte
	done    string
}

type injectAnswer struct {
	Status      string         `json:"status"`
	SessionID   string         `json:"sessionId"`
	Done        []string       `json:"done"`
	Since       int64          `json:"since"`
	DeviceModel string         `json:"deviceModel,omitempty"`
	State       *glasses.State `json:"state,omitempty"`
	Next        []nextCall     `json:"nextCalls"`
	Summary     string         `json:"summary"`
}

// injectSchema is the answer of every tool that injects.
func injectSchema(extra string) []byte {
	if extra != "" {
		extra += ","
	}
	return outputSchema(`
		"status":{"type":"string","enum":["auth_required","ok"]},
		"sessionId":{"type":"string"},
		"done":{"type":"array","items":{"type":"string"},"description":"What was done, in order."},
		"since":{"type":"integer","description":"The event log's last row before it: waitForEvent looks from here on by itself."},
		"state":{"type":"object","description":"What the glasses are in now, as getDisplayState tells it."},`+extra+nextProperty+`,`+summaryProperty, `"status","summary"`, true)
}

// inject sends the frames one after another; the first that the glasses refuse ends it.
func (t injector) inject(ctx context.Context, c call, id string, list []injection, next ...nextCall) (any, error) {
	return t.run(ctx, c, id, func(ctx context.Context, target backend.Target, id string) (any, error) {
		answer := injectAnswer{Status: "ok", SessionID: id, Done: []string{}, Since: t.mark(ctx, target, id), Next: next}
		for _, in := range list {
			result, err := t.glasses.Control(ctx, target, id, in.typ, in.payload, in.media)
			if err != nil {
				return nil, controlProblem(err)
			}
			if result.Error != nil {
				return nil, refusedBy(result.Error, in.typ, answer.Done)
			}
			answer.Done, answer.State = append(answer.Done, in.done), result.State
		}
		answer.Summary = fmt.Sprintf("Done in session %s: %s. What the app does about it comes after row %d of the event log.", id, strings.Join(answer.Done, "; "), answer.Since)
		return answer, nil
	})
}

// refusedBy is an error of the glasses themselves.
func refusedBy(e *glasses.Error, typ string, done []string) error {
	message := e.Message
	if len(done) > 0 {
		message += " (done before: " + strings.Join(done, "; ") + ")"
	}
	return &Error{Code: e.Code, Message: message, FixHint: controlHint(e.Code, typ), Retryable: e.Code == glasses.CodeTimeout}
}

// controlHint is the next step after glasses refused a control frame.
func controlHint(code, typ string) string {
	switch {
	case typ == glasses.SimTranscript && code == glasses.CodePaused:
		return "the app has to send " + glasses.TypeTranscriptionStart + " first: wait for that with waitForEvent, then repeat the call"
	case code == glasses.CodeUnsupported:
		return "this device model has no such part; getPlatformInfo lists what each has, setDevice changes the model"
	case code == glasses.CodeBadPayload:
		return "change the argument that the message names"
	case code == glasses.CodeNotConnected:
		return `undo a lost link with injectSensor {"state":{"link":"connected"}}, or open the page of a browser session (createSimulatorSession with openBrowser true)`
	}
	return "look at the glasses' state with getDisplayState, change it with injectSensor, then repeat the call"
}

// controlProblem adds the next step to a session's refusal that has none.
func controlProblem(err error) error {
	p := problemOf(err)
	if p == nil || p.FixHint != "" {
		return err
	}
	with := *p
	switch p.Code {
	case glasses.CodeNotConnected:
		with.FixHint, with.Retryable = "no simulator page is open: have the person open sessionUrl (createSimulatorSession with openBrowser true), then repeat the call", true
	case glasses.CodeTimeout:
		with.FixHint, with.Retryable = "the page did not answer; have the person look at it or reload it, then repeat the call", true
	default:
		return err
	}
	return &with
}
