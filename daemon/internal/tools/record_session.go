package tools

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/daemon/internal/scenario"
	file "github.com/service-dev/service/glasses/scenario"
	contract "github.com/service-dev/service/internal/clientio"
	"github.com/service-dev/service/internal/problem"
)

type recordSession struct {
	sessionGate
	scenarios Scenarios
}

// Scenarios records sessions and runs recordings and scenarios.
type Scenarios interface {
	Record(ctx context.Context, req scenario.RecordRequest) (scenario.Recording, error)
	Run(ctx context.Context, req scenario.Request) (scenario.Report, error)
	RunSteps(ctx context.Context, req scenario.StepsRequest) (scenario.StepsReport, error)
	// Note stores a fact for a later recording that is not in the event log.
	Note(ctx context.Context, target backend.Target, id string, step file.Step, row, at int64)
	NoteSound(ctx context.Context, target backend.Target, id string, file []byte)
}

type recordSessionArgs struct {
	sessionArg
	Dir   string   `json:"dir"`
	Name  string   `json:"name" jsonschema:"Default: that of the folder."`
	Since *integer `json:"since" jsonschema:"Only what came after this log row."`
}

type recordAnswer struct {
	Status     string        `json:"status"`
	SessionID  string        `json:"sessionId"`
	File       string        `json:"file" jsonschema:"The scenario file; pass it to replaySession."`
	Name       string        `json:"name"`
	DurationMs int64         `json:"durationMs"`
	Steps      int           `json:"steps"`
	Requests   int           `json:"requests"`
	Claims     int           `json:"claims" jsonschema:"Expectations that were met, stored as steps."`
	Pictures   int           `json:"pictures"`
	Media      int           `json:"media"`
	Notes      []string      `json:"notes" jsonschema:"Things that could not be recorded."`
	Contents   []fileContent `json:"contents,omitempty"`
	Next       []nextCall    `json:"nextCalls"`
	Summary    string        `json:"summary"`
}

// Names of files in a recording's directory.
const (
	scenarioName = "scenario.json"
	picturesName = "pictures"
	mediaName    = "media"
)

func (t recordSession) definition() definition {
	return define(Tool{
		Name: "recordSession", Title: "Save a run as a recording",
		OutputSchema: gatedAnswersOf[recordAnswer]([]string{"recorded"}),
	}, t.run,
		required("dir"),
		on("dir", says("E.g. glasses/main.")),
	)
}

func (t recordSession) run(ctx context.Context, c call, args recordSessionArgs) (any, error) {
	files, collector := writable(c.who)
	dir, err := recordingDir(ctx, c.who, files, args.Dir)
	if err != nil {
		return nil, err
	}
	if args.Name == "" {
		args.Name = filepath.Base(dir)
	}
	return t.onSession(ctx, c, args.SessionID, func(ctx context.Context, target backend.Target, id string) (any, error) {
		rec, err := t.scenarios.Record(ctx, scenario.RecordRequest{
			Files: files, Target: target, SessionID: id, Name: args.Name,
			Path: filepath.Join(dir, scenarioName), Since: clamp(args.Since, 0, 0, 1<<53),
		})
		if err != nil {
			return nil, err
		}
		answer := recordAnswer{
			Status: "recorded", SessionID: id, File: rec.Path, Name: rec.Name, DurationMs: rec.DurationMs, Steps: rec.Steps,
			Requests: rec.Requests, Claims: rec.Claims,
			Pictures: rec.Pictures, Media: rec.Media, Notes: rec.Notes,
			Next: []nextCall{
				suggest("startLocalSimulation", `{"fresh":true,"clock":"virtual"}`,
					"open a fresh session for the next build of the app, and start the app on it"),
				suggest("replaySession", arguments(map[string]any{"file": rec.Path}),
					"then check whether the app still behaves the same"),
			},
		}
		if answer.Notes == nil {
			answer.Notes = []string{}
		}
		answer.Contents = contentsOf(collector)
		answer.Summary = fmt.Sprintf("%d ms of session %s are in %s: %d steps, %d of them "+
			"claims, %d requests of the app, %d pictures.", rec.DurationMs, id, rec.Path, rec.Steps, rec.Claims, rec.Requests,
			rec.Pictures)
		if collector != nil {
			answer.Summary += notWritten
		}
		return answer, nil
	})
}

// recordingDir returns the path of a directory to which a recording may be written. The directory must be missing or
// empty, or contain only a recording.
func recordingDir(ctx context.Context, who caller.Caller, files clientio.Files, path string) (string, error) {
	if path == "" {
		return "", missing("dir", "Pass the recording's folder, e.g. glasses/main.")
	}
	dir, entries, err := listDir(ctx, who, files, "dir", path)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		ours := false
		switch e.Name {
		case picturesName, mediaName:
			ours = e.Kind == contract.KindDir
		case scenarioName:
			s, err := scenario.Load(ctx, files, filepath.Join(dir, scenarioName))
			ours = e.Kind == contract.KindFile && err == nil && s.Recorded != nil
		}
		if !ours {
			return "", &problem.Error{
				Code: problem.CodeFileExists, Message: dir + " contains files other than a recording",
				FixHint: "Pass a new folder; only recordings are overwritten.",
			}
		}
	}
	return dir, nil
}
