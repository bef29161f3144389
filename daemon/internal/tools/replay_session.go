package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/daemon/internal/scenario"
	contract "github.com/service-dev/service/proto/clientio"
)

const replaySessionText = `Runs a recording of recordSession, or a scenario written by hand, against the app that is attached to a session, and gives a verdict: pass or fail, with each ` +
	`failed step and each difference in what the app did and showed. A verdict of fail is no error. ` +
	`First open a fresh session (startLocalSimulation with fresh true; clock "virtual" makes minutes take milliseconds), start the build of the app under test on it, then call this; ` +
	`it waits up to 30 seconds for the app. Use it as the test of a change. artifactsDir keeps pictures and their differences in a new folder. ` +
	`For CI and starting the app as well, "servicectl session run FILE" does the same. For a single claim about the screen use expectDisplay; the format stands in searchDocs.`

type replaySession struct {
	reach
	scenarios Scenarios
}

type replaySessionArgs struct {
	SessionID    string `json:"sessionId"`
	File         string `json:"file"`
	ArtifactsDir string `json:"artifactsDir"`
}

type replayAnswer struct {
	Status    string `json:"status"`
	SessionID string `json:"sessionId"`
	scenario.Report
	Summary string `json:"summary"`
}

// replayQuiet is how long a run may take for a client that does not listen to progress.
const replayQuiet = 50 * time.Second

func (t replaySession) definition() definition {
	const verdict = `"verdict":{"type":"string","enum":["pass","fail","skipped"]}`
	return definition{run: t.run, Tool: Tool{
		Name: "replaySession", Title: "Run a recording or scenario", Description: replaySessionText,
		Waits: true,
		InputSchema: inputSchema(sessionArgument+`,
			"file":{"type":"string","description":"The scenario file, or the folder of a recording; absolute or below the working directory."},
			"artifactsDir":{"type":"string","description":"A folder for pictures and differences, which must be new or empty. Left out: none are kept."}`, `"file"`),
		OutputSchema: outputSchema(`
			"status":{"type":"string","enum":["auth_required","done"]},
			"sessionId":{"type":"string"},
			"name":{"type":"string"},
			"verdict":{"type":"string","enum":["pass","fail"]},
			"durationMs":{"type":"integer","description":"On the session's clock."},
			"steps":{"type":"array","items":{"type":"object","properties":{
				"index":{"type":"integer"},"step":{"type":"string"},`+verdict+`,"atMs":{"type":"integer"},"message":{"type":"string","description":"Why it failed."}}}},
			"diffs":{"type":"array","items":{"type":"object","properties":{
				"kind":{"type":"string","enum":["trace","picture"]},"index":{"type":"integer"},"path":{"type":"string"},"message":{"type":"string"},
				"want":{"type":"string"},"got":{"type":"string"},"wantFile":{"type":"string"},"gotFile":{"type":"string"},"diffFile":{"type":"string"}}},
				"description":"Where the app did or showed something else than recorded."},
			"pictures":{"type":"array","items":{"type":"object","properties":{
				"name":{"type":"string"},"atMs":{"type":"integer"},"sha256":{"type":"string"},"file":{"type":"string"}}}},
			"rows":{"type":"integer","description":"Rows of the event log that belong to the run."},`+summaryProperty, `"status","summary"`, true),
	}}
}

func (t replaySession) run(ctx context.Context, c call) (any, error) {
	var args replaySessionArgs
	if err := decode(c.args, &args); err != nil {
		return nil, err
	}
	file, err := scenarioFile(ctx, c.who, args.File)
	if err != nil {
		return nil, err
	}
	artifacts, err := artifactsDir(ctx, c.who, args.ArtifactsDir)
	if err != nil {
		return nil, err
	}
	return t.reach.run(ctx, c, args.SessionID, func(ctx context.Context, target backend.Target, id string) (any, error) {
		return t.replay(ctx, c.io, scenario.Request{Files: clientio.FilesOf(c.who), Target: target, SessionID: id, Path: file, Artifacts: artifacts})
	})
}

func (t replaySession) replay(ctx context.Context, io IO, req scenario.Request) (any, error) {
	inner := ctx
	if io.Progress == nil {
		var cancel context.CancelFunc
		inner, cancel = context.WithTimeout(ctx, replayQuiet)
		defer cancel()
	}
	var report scenario.Report
	var err error
	newMeter(io, waitLong*time.Second).during(ctx, "running "+filepath.Base(req.Path), func() { report, err = t.scenarios.Run(inner, req) })
	if err != nil {
		if ctx.Err() == nil && inner.Err() != nil {
			return nil, &Error{Code: backend.CodeTimeout, Message: fmt.Sprintf("the run took longer than %v", replayQuiet),
				FixHint: `run it on a session with clock "virtual", or with "servicectl session run", which has no limit`}
		}
		return nil, err
	}
	return replayAnswer{Status: "done", SessionID: req.SessionID, Report: report, Summary: reportWords(report)}, nil
}

func reportWords(r scenario.Report) string {
	failed, first := 0, ""
	for _, step := range r.Steps {
		if step.Verdict == scenario.Fail {
			if failed++; first == "" {
				first = fmt.Sprintf(" Step %d (%s): %s.", step.Index, step.Step, step.Message)
			}
		}
	}
	if first == "" && len(r.Diffs) > 0 {
		first = " First difference: " + r.Diffs[0].Message + "."
	}
	return fmt.Sprintf("%s: %s after %d ms, %d of %d steps failed, %d differences.%s", r.Name, r.Verdict, r.DurationMs, failed, len(r.Steps), len(r.Diffs), first)
}

// scenarioFile finds the file that the agent named, in the folder of a recording too.
func scenarioFile(ctx context.Context, who caller.Caller, path string) (string, error) {
	if path == "" {
		return "", &Error{Code: CodeInvalidArguments, Message: `argument "file" is missing`, FixHint: "pass the file that recordSession told, or the path of a scenario"}
	}
	full, err := pathOf(who, "file", path)
	if err != nil {
		return "", err
	}
	files := clientio.FilesOf(who)
	info, err := files.Stat(ctx, full)
	if err == nil && info.Kind == contract.KindDir {
		full = filepath.Join(full, scenarioName)
		info, err = files.Stat(ctx, full)
	}
	if clientio.IsUnavailable(err) {
		return "", fileError(CodeFileUnreadable, err, "")
	}
	if err != nil || info.Kind != contract.KindFile {
		return "", &Error{Code: CodeFileUnreadable, Message: "there is no scenario " + full, FixHint: "pass the file that recordSession told, or the path of a scenario"}
	}
	return full, nil
}

// artifactsDir is a folder that does not exist or is empty; empty for none.
func artifactsDir(ctx context.Context, who caller.Caller, path string) (string, error) {
	if path == "" {
		return "", nil
	}
	full, err := pathOf(who, "artifactsDir", path)
	if err != nil {
		return "", err
	}
	entries, err := clientio.FilesOf(who).List(ctx, full)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0:
		return full, nil
	case err != nil:
		return "", fileError(CodeFileUnwritable, err, "pass a folder that may be read and written")
	}
	return "", &Error{Code: CodeFileExists, Message: full + " is not empty", FixHint: "pass a new folder; nothing is overwritten"}
}
