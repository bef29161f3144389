// Package scenario runs scenarios (glasses/scenario) on sessions, records sessions as scenarios, and compares runs with
// recordings. It supports local sessions in virtual or real time and browser sessions. It does not depend on how a
// session is reached or how apps are started.
package scenario

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/assistantscript"
	"github.com/service-dev/service/glasses/scenario"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
)

// Sessions provides access to the sessions on which scenarios run. Its methods return a *problem.Error on
// failure.
type Sessions interface {
	Get(ctx context.Context, target backend.Target, id string) (backend.Session, error)
	Control(ctx context.Context, target backend.Target, id, typ string, payload any, media []byte) (glasses.Result, error)
	Advance(ctx context.Context, id string, ms int64) (nowMs int64, settled bool, err error)
	Wait(ctx context.Context, target backend.Target, id string, since int64, limit int,
		wait time.Duration) (backendapi.EventPage, error)
	Look(ctx context.Context, target backend.Target, id string) (session.Display, error)
	// Media returns a recording made by the camera or the microphone of a local session.
	Media(id, sha string) (name string, body []byte, err error)
	// AssistantScript returns the script of a session's assistant, or nil if it has none.
	AssistantScript(id string) *assistantscript.Script
	// SetAssistantScript sets the script of a session's assistant. It returns a *problem.Error on failure.
	SetAssistantScript(ctx context.Context, target backend.Target, id string, script *assistantscript.Script) error
	// UsePrivateMemory gives a local session a profile of its own. WearerMemory returns the profile that the apps of a
	// local session use. They return a *problem.Error on failure.
	UsePrivateMemory(id, profile string) error
	WearerMemory(id string) (string, error)
}

// Runner runs and records scenarios. It is safe for concurrent use on different sessions.
type Runner struct {
	sessions Sessions
	journal  journal
	// attachWait is how long, in real time, a run waits for an app to attach.
	attachWait time.Duration
}

// New returns a runner.
func New(sessions Sessions) *Runner {
	return &Runner{sessions: sessions, attachWait: 30 * time.Second}
}

// Verdicts of a report and its steps.
const (
	Pass    = "pass"
	Fail    = "fail"
	Skipped = "skipped" // an earlier step could not be run
	// Unfinished is the verdict of RunSteps after it reached its time limit, and of the interrupted step.
	Unfinished = "unfinished"
)

// Request requests a run on an open session. An app must be attached, or attach within 30 seconds.
type Request struct {
	// Files are the files of the client: the scenario and the pictures.
	Files     clientio.Files
	Target    backend.Target
	SessionID string
	// Path is the absolute path of the scenario's file. Paths in the scenario are relative to its directory.
	Path string
	// DeviceModel is the ID of a model to use instead of the scenario's own. A scenario with a recording cannot run on
	// another model.
	DeviceModel string
	// Artifacts is the absolute path of a directory for pictures and differences, which is created if necessary. If it
	// is empty, they are not stored.
	Artifacts string
	// Film also stores a picture of each of the first maxFrames states of the panel.
	Film bool
	// Accept replaces the recording's frames and pictures with those of this run if every step passes.
	Accept bool
	// AcceptSteps lists step numbers, starting at 1. If these steps pass, their differences are copied into the
	// recording, and the rest of the recording stays unchanged. It cannot be combined with Accept.
	AcceptSteps []int
}

// Report is the result of a run.
type Report struct {
	Name      string `json:"name"`
	Verdict   string `json:"verdict"` // Pass or Fail
	SessionID string `json:"sessionId"`
	// AppLeft reports when the app left the session. It is set if the app did not return and no step expects that.
	AppLeft string `json:"appLeft,omitempty"`
	// DurationMs is the time from when the app attached to the end, in ms on the session's clock.
	DurationMs int64 `json:"durationMs"`
	// Diffs are the first maxDiffs differences from the recording, ordered by time; empty without a recording. Equal
	// differences are one entry with a count.
	Diffs []Diff `json:"diffs"`
	// MissingFonts contains a sentence for each of the scenario's fonts that the session does not use for drawing.
	// Pictures then differ.
	MissingFonts []string `json:"missingFonts,omitempty"`
	// Accepted is set if the recording was updated to the app's current frames. Diffs lists the changes.
	Accepted bool `json:"accepted,omitempty"`
	// AcceptedSteps lists the steps whose differences were copied into the recording, for a request with AcceptSteps.
	// AcceptedDiffs counts these differences by kind. Diffs then contains only the remaining differences, and
	// DifferingSteps lists their steps.
	AcceptedSteps  []int          `json:"acceptedSteps,omitempty"`
	AcceptedDiffs  map[string]int `json:"acceptedDiffs,omitempty"`
	DifferingSteps []int          `json:"differingSteps,omitempty"`
	// MoreDiffs counts further differences by kind.
	MoreDiffs map[string]int `json:"moreDiffs,omitempty"`
	Steps     []StepReport   `json:"steps"`
	Pictures  []Picture      `json:"pictures"`
	// Frames are the pictures of the panel, in order, if the request includes a film.
	Frames []Picture `json:"frames,omitempty"`
	// MoreFrames counts the states of the panel that were not stored.
	MoreFrames int `json:"moreFrames,omitempty"`
	// Findings are the first maxFindings distinct findings of content that does not fit the model.
	Findings []Finding `json:"findings"`
	// MoreFindings counts further findings.
	MoreFindings int `json:"moreFindings,omitempty"`
	// Rows counts the rows of the event log that belong to the run.
	Rows int `json:"rows"`
}

// StepReport is the result of a step.
type StepReport struct {
	Number  int    `json:"number"` // from 1
	Step    string `json:"step"`   // description in a few words
	Verdict string `json:"verdict"`
	AtMs    int64  `json:"atMs"` // time on the session's clock after the step, in ms since the app attached
	// Message explains why the step failed.
	Message string `json:"message,omitempty"`
}

// Diff is a difference between a recording and a run.
type Diff struct {
	Kind string `json:"kind"` // one of the Diff constants
	Step int    `json:"step"` // number of the step, from 1
	AtMs int64  `json:"atMs"` // in the run or, for a missing frame, in the recording
	// Count is how often the same difference occurred; 0 means once. Step and AtMs describe the first occurrence.
	Count int `json:"count,omitempty"`
	// AlsoSteps are the first maxAlsoSteps other steps in which the same difference occurred.
	AlsoSteps []int `json:"alsoSteps,omitempty"`
	// Path is the first path in the payload that differs, e.g. payload.tree.children[1].text.
	Path string `json:"path,omitempty"`
	// Message describes the difference, e.g. display.show list[1]: "Calendar" -> "Kalender".
	Message string `json:"message"`
	// Want and Got describe the missing and the extra content, or the two times.
	Want string `json:"want,omitempty"`
	Got  string `json:"got,omitempty"`
	// WantFile, GotFile and DiffFile are the paths of the two pictures and of their difference, if artifacts are
	// stored.
	WantFile string `json:"wantFile,omitempty"`
	GotFile  string `json:"gotFile,omitempty"`
	DiffFile string `json:"diffFile,omitempty"`
}

// Times returns how often the difference occurred.
func (d Diff) Times() int { return max(d.Count, 1) }

// Finding describes content of the panel that does not fit a device model.
type Finding struct {
	DeviceModel string `json:"deviceModel"`
	glasses.Finding
}

// Picture is a panel that a step stored, that did not meet an expectation, or that belongs to a difference.
type Picture struct {
	Name   string `json:"name"`
	AtMs   int64  `json:"atMs"`
	SHA256 string `json:"sha256,omitempty"` // empty for a picture of a difference
	// File is the picture's path, if artifacts are stored.
	File string `json:"file,omitempty"`
	// Error is why the picture could not be stored.
	Error string `json:"error,omitempty"`
	// PNG is the encoded picture. Only RunSteps sets it, and only for the last KeptPNGs pictures.
	PNG []byte `json:"-"`
}

// Load reads a scenario's file. It returns a *problem.Error on failure.
func Load(ctx context.Context, files clientio.Files, path string) (scenario.Scenario, error) {
	data, err := files.Read(ctx, path, scenario.MaxFile)
	if clientio.IsUnavailable(err) {
		return scenario.Scenario{}, &problem.Error{Code: problem.CodeClientFilesUnavailable, Message: err.Error(),
			FixHint: "Connect through service-mcp, or use `servicectl session run`."}
	}
	if err != nil {
		return scenario.Scenario{}, &problem.Error{Code: problem.CodeInvalidScenario,
			Message: "read the scenario: " + err.Error(), FixHint: "Pass the path of a scenario file."}
	}
	s, err := scenario.Parse(data)
	if err != nil {
		return s, &problem.Error{Code: problem.CodeInvalidScenario, Message: fmt.Sprintf("%s: %v", filepath.Base(path), err),
			FixHint: "Correct what the message names; searchDocs scenario-steps lists every field."}
	}
	return s, nil
}

// Run runs a scenario and compares the run with the scenario's recording, if any. A failed run is not an error. Run
// returns a *problem.Error if the file is not a scenario, the session is closed or no app attaches.
func (r *Runner) Run(ctx context.Context, req Request) (Report, error) {
	s, err := Load(ctx, req.Files, req.Path)
	if err != nil {
		return Report{}, err
	}
	if req.Accept || len(req.AcceptSteps) > 0 {
		if err := r.checkAccept(ctx, req, s); err != nil {
			return Report{}, err
		}
	}
	if err := onModel(&s, req.DeviceModel); err != nil {
		return Report{}, err
	}
	if err := makeArtifacts(ctx, req); err != nil {
		return Report{}, err
	}
	run := &run{r: r, req: req, s: s, dir: filepath.Dir(req.Path), used: map[int64]bool{},
		artifacts: map[int]int{}, merged: merger{steps: req.AcceptSteps}}
	run.report = Report{Name: s.Name, SessionID: req.SessionID, Verdict: Pass, Steps: []StepReport{}, Diffs: []Diff{},
		Pictures: []Picture{}, Findings: []Finding{}}
	run.drawing.SetLimit(maxDrawing)
	err = run.do(ctx)
	_ = run.drawing.Wait() // drawing never returns an error
	if err != nil {
		return Report{}, err
	}
	return run.report, nil
}

// notStored notes why the picture could not be stored, if err is not nil.
func (p *Picture) notStored(err error) {
	if err != nil {
		p.Error = "not stored: " + err.Error()
	}
}

// keep writes an artifact and returns its path, or "" if artifacts are not stored.
func (req Request) keep(ctx context.Context, name string, data []byte) (string, error) {
	if req.Artifacts == "" || len(data) == 0 {
		return "", nil
	}
	path := filepath.Join(req.Artifacts, name)
	if err := req.Files.Replace(ctx, path, data, 0o600, 0o700); err != nil {
		return "", err
	}
	return path, nil
}
