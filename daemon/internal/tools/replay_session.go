package tools

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/daemon/internal/scenario"
	contract "github.com/service-dev/service/internal/clientio"
	"github.com/service-dev/service/internal/problem"
)

type replaySession struct {
	sessionGate
	scenarios Scenarios
}

type replaySessionArgs struct {
	sessionArg
	File         string `json:"file"`
	DeviceModel  string `json:"deviceModel"`
	ArtifactsDir string `json:"artifactsDir"`
	Film         bool   `json:"film"`
	Accept       bool   `json:"accept"`
	AcceptSteps  []int  `json:"acceptSteps"`
	AllSteps     bool   `json:"allSteps"`
}

type replayAnswer struct {
	Status    string `json:"status"`
	SessionID string `json:"sessionId"`
	scenario.Report
	MoreSteps int    `json:"moreSteps,omitempty"`
	Summary   string `json:"summary"`
}

// replayQuiet is the maximum duration of a run if the client did not request progress.
const replayQuiet = 50 * time.Second

func (t replaySession) definition() definition {
	return define(Tool{
		Name: "replaySession", Title: "Run a recording or scenario",
		Waits: true,
		OutputSchema: gatedAnswersOf[replayAnswer]([]string{"done"},
			on("verdict", oneOf("pass", "fail")),
			on("durationMs", says("On the session's clock.")),
			on("steps.verdict", oneOf("pass", "fail", "skipped")),
			on("steps.message", says("The reason for the failure.")),
			on("steps", says("Steps that did not pass; with allSteps, all.")),
			on("diffs", says("Differences from the recording, in order.")),
			on("diffs.kind", oneOf(scenario.DiffChanged, scenario.DiffMissing, scenario.DiffExtra, scenario.DiffPicture,
				scenario.DiffTime)),
			on("moreDiffs", says("The number of further ones, by kind.")),
			on("rows", says("Rows of the event log that belong to the run.")),
		),
	}, t.run,
		required("file"),
		on("file", says("A scenario file, or the folder of a recording.")),
		on("deviceModel", says("Run on this model instead.")),
		on("artifactsDir", says("A new or empty folder for pictures and their differences.")),
		on("film", says("Also store each picture that the panel showed.")),
		on("accept", says("Update the recording to this run; its claims stay.")),
		on("acceptSteps", says("Or only in the steps with these numbers.")),
	)
}

func (t replaySession) run(ctx context.Context, c call, args replaySessionArgs) (any, error) {
	if args.Accept && len(args.AcceptSteps) > 0 {
		return nil, invalid("accept and acceptSteps cannot be combined", "Pass one of them.")
	}
	file, err := scenarioFile(ctx, c.who, args.File)
	if err != nil {
		return nil, err
	}
	artifacts, err := artifactsDir(ctx, c.who, args.ArtifactsDir)
	if err != nil {
		return nil, err
	}
	return t.onSession(ctx, c, args.SessionID, func(ctx context.Context, target backend.Target, id string) (any, error) {
		return t.replay(ctx, c.io, scenario.Request{Files: clientio.FilesOf(c.who), Target: target, SessionID: id,
			Path: file, DeviceModel: args.DeviceModel, Artifacts: artifacts, Film: args.Film, Accept: args.Accept,
			AcceptSteps: args.AcceptSteps}, args.AllSteps)
	})
}

func (t replaySession) replay(ctx context.Context, io IO, req scenario.Request, allSteps bool) (any, error) {
	report, err := runQuietly(ctx, io, "running "+filepath.Base(req.Path), t.scenarios.Run, req)
	if err != nil {
		return nil, err
	}
	return replayAnswerOf(req.SessionID, report, allSteps), nil
}

// runQuietly runs steps and reports progress. If the client did not request progress, the run is limited to
// replayQuiet.
func runQuietly[Q, R any](
	ctx context.Context, io IO, doing string, run func(context.Context, Q) (R, error), req Q,
) (report R, err error) {
	inner := ctx
	if io.Progress == nil {
		var cancel context.CancelFunc
		inner, cancel = context.WithTimeout(ctx, replayQuiet)
		defer cancel()
	}
	newProgress(io, waitLong*time.Second).during(ctx, doing, func() { report, err = run(inner, req) })
	if err != nil && ctx.Err() == nil && inner.Err() != nil {
		err = &problem.Error{Code: problem.CodeTimeout, Message: fmt.Sprintf("the run took longer than %v", replayQuiet),
			FixHint: `Run it with "servicectl session run", which has no limit; if the session's clock is real, use "virtual".`}
	}
	return report, err
}

// scenarioFile returns the path of the scenario that the agent passed, either as a file or as the directory that
// contains it.
func scenarioFile(ctx context.Context, who caller.Caller, path string) (string, error) {
	const hint = "Pass the file that recordSession returned, or the path of a scenario."
	if path == "" {
		return "", missing("file", hint)
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
	switch {
	case clientio.IsUnavailable(err):
		return "", fileError(problem.CodeFileUnreadable, err, "")
	case err != nil || info.Kind != contract.KindFile:
		return "", &problem.Error{Code: problem.CodeFileUnreadable, Message: "there is no scenario " + full, FixHint: hint}
	}
	return full, nil
}

// artifactsDir returns the path of a directory that is missing or empty, or "" if none was requested.
func artifactsDir(ctx context.Context, who caller.Caller, path string) (string, error) {
	if path == "" {
		return "", nil
	}
	dir, entries, err := listDir(ctx, who, clientio.FilesOf(who), "artifactsDir", path)
	if err == nil && len(entries) > 0 {
		err = &problem.Error{
			Code: problem.CodeFileExists, Message: dir + " is not empty", FixHint: "Pass a new folder; nothing is overwritten.",
		}
	}
	return dir, err
}
