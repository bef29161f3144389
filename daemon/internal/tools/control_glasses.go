package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/scenario"
	"github.com/service-dev/service/internal/problem"
)

// injector has the dependencies and methods shared by the inject tools. Each of them embeds it.
type injector struct {
	sessionGate
	notes Scenarios
}

// injection is a control frame and its description for the answer.
type injection struct {
	typ     string
	payload any
	media   []byte
	file    []byte // as the caller passed it; media may be made from it
	done    string
}

type injectAnswer struct {
	Status    string         `json:"status"`
	SessionID string         `json:"sessionId"`
	Done      []string       `json:"done" jsonschema:"What was done, in order."`
	Since     int64          `json:"since"`
	State     *glasses.State `json:"state,omitempty"`
	Next      []nextCall     `json:"nextCalls"`
	Summary   string         `json:"summary"`
}

// injectAnswers is the schema of answers that embed injectAnswer.
func injectAnswers[T any]() json.RawMessage {
	return gatedAnswersOf[T]([]string{"ok"},
		on("since", says("The event log's latest row before the change; waitForEvent starts there by default.")),
		on("state", opaque, says("The state of the glasses now, as in getDisplayState.")),
	)
}

func injectTool(name, title string) Tool {
	return Tool{Name: name, Title: title, OutputSchema: injectAnswers[injectAnswer]()}
}

// inject sends the frames one after another and stops at the first that the glasses refuse.
func (t injector) inject(ctx context.Context, c call, id string, list []injection, next ...nextCall) (any, error) {
	return t.onSession(ctx, c, id, func(ctx context.Context, target backend.Target, id string) (any, error) {
		answer := injectAnswer{Status: "ok", SessionID: id, Done: []string{}, Since: t.mark(ctx, target, id), Next: next}
		for _, in := range list {
			result, err := t.sessions.Control(ctx, target, id, in.typ, in.payload, in.media)
			if err != nil {
				return nil, controlProblem(err)
			}
			if result.Error != nil {
				return nil, refusedBy(result.Error, in.typ, answer.Done)
			}
			t.note(ctx, target, id, in)
			answer.Done, answer.State = append(answer.Done, in.done), result.State
		}
		answer.Summary = fmt.Sprintf("Done in session %s: %s. The app's reaction follows row %d of the "+
			"event log.", id, strings.Join(answer.Done, "; "), answer.Since)
		return answer, nil
	})
}

// note records head movements and what the microphone hears for recordSession, because they are not in the event log.
func (t injector) note(ctx context.Context, target backend.Target, id string, in injection) {
	if motion, ok := in.payload.(*glasses.Motion); ok {
		t.notes.Note(ctx, target, id, scenario.Step{Motion: motion}, 0, 0)
	}
	if in.typ == glasses.SimMicrophone {
		t.notes.NoteSound(ctx, target, id, in.file)
	}
}

// refusedBy returns the error for a refusal by the glasses.
func refusedBy(e *glasses.Error, typ string, done []string) error {
	message := e.Message
	if len(done) > 0 {
		message += " (done before: " + strings.Join(done, "; ") + ")"
	}
	return &problem.Error{Code: e.Code, Message: message, FixHint: controlHint(e, typ),
		Retryable: e.Code == glasses.CodeTimeout}
}

// controlHint returns the next step after the glasses refused a control frame.
func controlHint(e *glasses.Error, typ string) string {
	if hint := transcriptHint(e); typ == glasses.SimTranscript && hint != "" {
		return hint
	}
	switch e.Code {
	case glasses.CodeUnsupported:
		return "Change the device model, which lacks it, with setDevice; getPlatformInfo lists the parts of each model."
	case glasses.CodeUnreachable:
		return "Change the app so that this wearer can select it too: fewer targets on a screen, another order, " +
			"overflow scroll, or focus at the root of the tree; setDevice changes the model."
	case glasses.CodeBadPayload:
		return "Change the argument named in the message."
	case glasses.CodeNotConnected:
		return `Undo a lost link with injectSensor {"state":{"link":"connected"}}, or open the page of a browser ` +
			`session (createSimulatorSession with openBrowser true).`
	}
	return "Read the glasses' state with getDisplayState, change it with injectSensor, then repeat the call."
}

// transcriptHint returns the next step after a transcript that reached no app, or "" if the reason is not specific to
// transcripts.
func transcriptHint(e *glasses.Error) string {
	change := func(state string) string {
		return `Undo that with injectSensor {"state":` + state + `}, then repeat the call: transcription that the app ` +
			`started resumes by itself.`
	}
	switch e.Code {
	case glasses.CodePaused:
		return "Wait with waitForEvent until the app sends " + glasses.TypeTranscriptionStart + ", then repeat the call " +
			"(getSessionStatus reports whether an app is attached)."
	case glasses.CodeHingeClosed:
		return change(`{"hinge":"open"}`)
	case glasses.CodePermissionDenied:
		return change(`{"permissions":{"` + e.Part + `":"granted"}}`)
	case glasses.CodeDisabledByUser:
		return change(`{"disabled":[]}`)
	case glasses.CodeBusy:
		return change(`{"call":false}`)
	}
	return ""
}

// controlProblem adds the next step to a session's refusal without one.
func controlProblem(err error) error {
	p := problem.From(err)
	if p == nil || p.FixHint != "" {
		return err
	}
	with := *p
	switch p.Code {
	case glasses.CodeNotConnected:
		with.FixHint, with.Retryable = "Ask the user to open sessionUrl (createSimulatorSession with "+
			"openBrowser true), because no simulator page is open; then repeat the call.", true
	case glasses.CodeTimeout:
		with.FixHint, with.Retryable = "Ask the user to check or reload the page, which did not answer; then "+
			"repeat the call.", true
	default:
		return err
	}
	return &with
}
