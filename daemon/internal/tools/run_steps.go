package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/daemon/internal/scenario"
	steps "github.com/service-dev/service/glasses/scenario"
)

type runSteps struct {
	sessionGate
	scenarios Scenarios
}

type runStepsArgs struct {
	sessionArg
	Steps        json.RawMessage `json:"steps"`
	File         string          `json:"file" jsonschema:"Or a scenario file."`
	ArtifactsDir string          `json:"artifactsDir" jsonschema:"A new folder for pictures."`
}

type runStepsAnswer struct {
	Status    string                `json:"status"`
	SessionID string                `json:"sessionId"`
	Verdict   string                `json:"verdict"`
	AppLeft   string                `json:"appLeft,omitempty"`
	Steps     []scenario.StepReport `json:"steps"`
	NowMs     int64                 `json:"nowMs" jsonschema:"The session's clock now."`
	Since     int64                 `json:"since" jsonschema:"The event log's latest row before the last action."`
	Text      []string              `json:"text" jsonschema:"The readable text at the end."`
	Focus     string                `json:"focus"`
	Pictures  []scenario.Picture    `json:"pictures" jsonschema:"Each is returned once, in this order, at most the latest 4."`
	Findings  []scenario.Finding    `json:"findings"`
	Summary   string                `json:"summary"`

	shown []Image
}

func (a runStepsAnswer) images() []Image { return a.shown }

// maxAgentSteps is the maximum number of steps that an agent passes. A file may contain more.
const maxAgentSteps = 200

func (t runSteps) definition() definition {
	return define(Tool{
		Name: "runSteps", Title: "Act, wait and assert in one call",
		Waits:    true,
		Pictures: true,
		OutputSchema: gatedAnswersOf[runStepsAnswer]([]string{"done"},
			on("verdict", oneOf("pass", "fail", "unfinished")),
			on("steps.verdict", oneOf("pass", "fail", "unfinished", "skipped")),
		),
	}, t.run,
		on("steps", listOfObjects,
			says(`E.g. [{"input":{"target":"next"}},{"advance":1000},{"expectDisplay":{"text":["2 of 5"]}}].`)),
	)
}

func (t runSteps) run(ctx context.Context, c call, args runStepsArgs) (any, error) {
	req, err := t.requestOf(ctx, c, args)
	if err != nil {
		return nil, err
	}
	if req.Artifacts, err = artifactsDir(ctx, c.who, args.ArtifactsDir); err != nil {
		return nil, err
	}
	return t.onSession(ctx, c, args.SessionID, func(ctx context.Context, target backend.Target, id string) (any, error) {
		req.Target, req.SessionID, req.Since = target, id, t.cursors.get(id)
		return t.runAll(ctx, c.io, req)
	})
}

// requestOf returns the request for the steps of a call.
func (t runSteps) requestOf(ctx context.Context, c call, args runStepsArgs) (scenario.StepsRequest, error) {
	req := scenario.StepsRequest{Files: clientio.FilesOf(c.who), Dir: c.who.Cwd}
	inline := len(args.Steps) > 0 && string(args.Steps) != "null"
	switch {
	case inline == (args.File != ""):
		return req, invalid("pass either steps or file",
			`Pass, for example, {"steps":[{"input":{"kind":"tap"}},{"advance":1000}]}.`)
	case inline:
		list, err := steps.ParseSteps(args.Steps)
		if err == nil && len(list) == 0 {
			return req, invalid("steps is empty", `Pass, for example, {"steps":[{"expectDisplay":{"text":["Hello"]}}]}.`)
		}
		if err == nil && len(list) > maxAgentSteps {
			return req, invalid(fmt.Sprintf("there are %d steps, which is more than %d", len(list), maxAgentSteps),
				"Pass fewer, or a scenario file.")
		}
		req.Steps = list
		return req, stepsError(err)
	}
	file, err := scenarioFile(ctx, c.who, args.File)
	if err != nil {
		return req, err
	}
	s, err := scenario.Load(ctx, req.Files, file)
	req.Steps, req.DeviceModel, req.Assistant, req.Dir = s.Steps, s.DeviceModel, s.Assistant, filepath.Dir(file)
	req.Memory = &s.Memory
	return req, err
}

// stepsError returns the agent's error for steps that cannot be run.
func stepsError(err error) error {
	var refused *steps.Error
	if !errors.As(err, &refused) {
		return err
	}
	hint := "Correct the named place"
	if refused.Example != "" {
		hint += ", e.g. " + refused.Example
	}
	message := refused.Path + ": " + refused.Message
	if refused.Want != "" {
		message += "; expected " + refused.Want
	}
	return invalid(message, hint+". Every field is listed by searchDocs scenario-steps.")
}

func (t runSteps) runAll(ctx context.Context, io IO, req scenario.StepsRequest) (any, error) {
	if io.Progress == nil {
		req.Limit = replayQuiet
	}
	var report scenario.StepsReport
	var err error
	newProgress(io, waitLong*time.Second).during(ctx, fmt.Sprintf("running %d steps", len(req.Steps)), func() {
		report, err = t.scenarios.RunSteps(ctx, req)
	})
	if err != nil {
		return nil, controlProblem(err)
	}
	t.cursors.set(req.SessionID, report.Since)
	return stepsAnswer(req.SessionID, report), nil
}

func stepsAnswer(id string, r scenario.StepsReport) runStepsAnswer {
	r.End.PNG = r.End.Picture()
	shown := displayOf(id, r.End)
	answer := runStepsAnswer{Status: "done", SessionID: id, Verdict: r.Verdict, AppLeft: r.AppLeft, Steps: r.Steps,
		NowMs: r.NowMs, Since: r.Since, Text: shown.Text, Focus: r.End.Focus(), Pictures: r.Pictures,
		Findings: orEmpty(r.Findings)}
	if len(r.Pictures) == 0 && shown.Picture != nil {
		answer.Pictures = []scenario.Picture{
			{Name: "end", AtMs: lastAt(r.Steps), SHA256: shown.Picture.SHA256, PNG: r.End.PNG}}
	}
	for _, p := range answer.Pictures[max(0, len(answer.Pictures)-scenario.KeptPNGs):] {
		if len(p.PNG) > 0 {
			answer.shown = append(answer.shown, Image{MIME: "image/png", Data: p.PNG})
		}
	}
	answer.Summary = stepsWords(r) + " " + shown.Summary
	for _, p := range r.Pictures {
		if p.Error != "" {
			answer.Summary += fmt.Sprintf(" The picture %q was %s.", p.Name, p.Error)
			break
		}
	}
	return answer
}

func lastAt(list []scenario.StepReport) int64 {
	if len(list) == 0 {
		return 0
	}
	return list[len(list)-1].AtMs
}

func stepsWords(r scenario.StepsReport) string {
	left := ""
	if r.AppLeft != "" {
		left = "fail: " + r.AppLeft + ". "
	}
	for i, step := range r.Steps {
		if step.Verdict == scenario.Unfinished {
			return left + fmt.Sprintf("unfinished: step %d (%s): %s, at %d ms of the session's clock; %d steps after it "+
				"were not run. Pass the rest in another call.", step.Number, step.Step, step.Message, r.NowMs, len(r.Steps)-i-1)
		}
		if step.Verdict == scenario.Fail {
			return left + strings.TrimSuffix(fmt.Sprintf("fail: step %d (%s): %s", step.Number, step.Step, step.Message), ".") +
				fmt.Sprintf("; %d steps after it were not run.", len(r.Steps)-i-1)
		}
	}
	if left != "" {
		return fmt.Sprintf("%sIts %d steps held; the session's clock is at %d ms.", left, len(r.Steps), r.NowMs)
	}
	return fmt.Sprintf("pass: %d steps, the session's clock is at %d ms.", len(r.Steps), r.NowMs)
}
