package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/daemon/internal/scenario"
	contract "github.com/service-dev/service/proto/clientio"
)

const recordSessionText = `Writes what has happened in a session so far into a folder as a recording: a scenario whose steps are what happened to the glasses, and which holds what ` +
	`the app did (commands in order, pictures by hash, media). Use it when a run was right, to keep it as a test: replaySession runs it against the next build of the app and compares; ` +
	`"servicectl session run FILE" does so in CI. Sessions in virtual time give recordings that are exact to the millisecond. ` +
	`The folder must be new, empty, or one that recordSession wrote before (then it is replaced). To only read what happened use getEventLog.`

type recordSession struct {
	reach
	scenarios Scenarios
}

// Scenarios records sessions and runs recordings and scenarios.
type Scenarios interface {
	Record(ctx context.Context, req scenario.RecordRequest) (scenario.Recording, error)
	Run(ctx context.Context, req scenario.Request) (scenario.Report, error)
}

type recordSessionArgs struct {
	SessionID string   `json:"sessionId"`
	Dir       string   `json:"dir"`
	Name      string   `json:"name"`
	Since     *integer `json:"since"`
}

type recordAnswer struct {
	Status     string        `json:"status"`
	SessionID  string        `json:"sessionId"`
	File       string        `json:"file"`
	Name       string        `json:"name"`
	DurationMs int64         `json:"durationMs"`
	Steps      int           `json:"steps"`
	Requests   int           `json:"requests"`
	Pictures   int           `json:"pictures"`
	Media      int           `json:"media"`
	Notes      []string      `json:"notes"`
	Contents   []fileContent `json:"contents,omitempty"`
	Next       []nextCall    `json:"nextCalls"`
	Summary    string        `json:"summary"`
}

// Names inside a recording's folder.
const (
	scenarioName = "scenario.json"
	picturesName = "pictures"
	mediaName    = "media"
)

func (t recordSession) definition() definition {
	return definition{run: t.run, Tool: Tool{
		Name: "recordSession", Title: "Keep a run as a recording", Description: recordSessionText,
		InputSchema: inputSchema(sessionArgument+`,
			"dir":{"type":"string","description":"The recording's folder, e.g. glasses/main; absolute or below the working directory."},
			"name":{"type":"string","description":"What reports call it. Left out: the folder's name."},
			"since":{"type":"integer","description":"Only what came after this row of the event log. Left out: all."}`, `"dir"`),
		OutputSchema: outputSchema(`
			"status":{"type":"string","enum":["auth_required","recorded"]},
			"sessionId":{"type":"string"},
			"file":{"type":"string","description":"The scenario file; pass it to replaySession."},
			"name":{"type":"string"},
			"durationMs":{"type":"integer"},
			"steps":{"type":"integer"},"requests":{"type":"integer"},"pictures":{"type":"integer"},"media":{"type":"integer"},
			"notes":{"type":"array","items":{"type":"string"},"description":"What could not be recorded."},
			"contents":`+contentsSchema+`,`+
			nextProperty+`,`+summaryProperty, `"status","summary"`, true),
	}}
}

func (t recordSession) run(ctx context.Context, c call) (any, error) {
	var args recordSessionArgs
	if err := decode(c.args, &args); err != nil {
		return nil, err
	}
	files, collector := writable(c.who)
	dir, err := recordingDir(ctx, c.who, files, args.Dir)
	if err != nil {
		return nil, err
	}
	if args.Name == "" {
		args.Name = filepath.Base(dir)
	}
	return t.reach.run(ctx, c, args.SessionID, func(ctx context.Context, target backend.Target, id string) (any, error) {
		rec, err := t.scenarios.Record(ctx, scenario.RecordRequest{
			Files: files, Target: target, SessionID: id, Name: args.Name, Path: filepath.Join(dir, scenarioName), Since: clamp(args.Since, 0, 0, 1<<53),
		})
		if err != nil {
			return nil, err
		}
		answer := recordAnswer{
			Status: "recorded", SessionID: id, File: rec.Path, Name: rec.Name, DurationMs: rec.DurationMs, Steps: rec.Steps, Requests: rec.Requests,
			Pictures: rec.Pictures, Media: rec.Media, Notes: rec.Notes,
			Next: []nextCall{
				call1("startLocalSimulation", `{"fresh":true,"clock":"virtual"}`, "a fresh session for the next build of the app; start the app on it"),
				call1("replaySession", arguments(map[string]any{"file": rec.Path}), "then see whether the app still does the same"),
			},
		}
		if answer.Notes == nil {
			answer.Notes = []string{}
		}
		answer.Contents = contentsOf(collector)
		answer.Summary = fmt.Sprintf("%d ms of session %s are in %s: %d steps, %d requests of the app, %d pictures.", rec.DurationMs, id, rec.Path, rec.Steps, rec.Requests, rec.Pictures)
		if collector != nil {
			answer.Summary += notWritten
		}
		return answer, nil
	})
}

// recordingDir is a folder that a recording may be written to: one that does not exist, is empty, or holds a recording
// and nothing else.
func recordingDir(ctx context.Context, who caller.Caller, files clientio.Files, path string) (string, error) {
	if path == "" {
		return "", &Error{Code: CodeInvalidArguments, Message: `argument "dir" is missing`, FixHint: "pass the recording's folder, e.g. glasses/main"}
	}
	dir, err := pathOf(who, "dir", path)
	if err != nil {
		return "", err
	}
	entries, err := files.List(ctx, dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return dir, nil
	case err != nil:
		return "", fileError(CodeFileUnwritable, err, "pass a folder that may be read and written")
	}
	ours := true
	for _, e := range entries {
		switch e.Name {
		case picturesName, mediaName:
			ours = ours && e.Kind == contract.KindDir
		case scenarioName:
			s, err := scenario.Load(ctx, files, filepath.Join(dir, scenarioName))
			ours = ours && e.Kind == contract.KindFile && err == nil && s.Recorded != nil
		default:
			ours = false
		}
	}
	if !ours {
		return "", &Error{Code: CodeFileExists, Message: dir + " holds other files than a recording", FixHint: "pass a new folder; nothing is overwritten but recordings"}
	}
	return dir, nil
}
