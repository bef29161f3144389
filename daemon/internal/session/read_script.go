package session

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/glasses/assistantscript"
	"github.com/service-dev/service/glasses/scenario"
	"github.com/service-dev/service/internal/problem"
)

// ReadScript reads an assistant script through the client's process. path is the path of a script, or of a scenario
// that contains one; memory is then the scenario's profile of the wearer, otherwise nil. A relative path starts at the
// caller's directory. If path is empty, ReadScript returns no script. It returns a *problem.Error on failure.
func ReadScript(
	ctx context.Context, who caller.Caller, path string,
) (script *assistantscript.Script, memory *string, err error) {
	if path == "" {
		return nil, nil, nil
	}
	files := clientio.FilesOf(who)
	data, full, err := readBeside(ctx, files, who.Cwd, path)
	if err != nil {
		return nil, nil, scriptProblem(path, err)
	}
	var probe struct {
		Scenario json.RawMessage `json:"scenario"`
	}
	if json.Unmarshal(data, &probe) != nil || probe.Scenario == nil {
		if script, err = assistantscript.Parse(data); err != nil {
			return nil, nil, scriptProblem(path, err)
		}
		return script, nil, nil
	}
	s, err := scenario.Parse(data)
	if err == nil && s.Assistant == nil {
		err = errors.New("the scenario has no field assistant")
	}
	if err != nil {
		return nil, nil, scriptProblem(path, err)
	}
	script, err = ScriptOf(ctx, files, filepath.Dir(full), s.Assistant)
	return script, &s.Memory, err
}

// ScriptOf returns the script of a scenario in the directory dir, or nil if the scenario has none. It returns a
// *problem.Error on failure.
func ScriptOf(
	ctx context.Context, files clientio.Files, dir string, a *scenario.Assistant,
) (*assistantscript.Script, error) {
	if script := a.Script(); a == nil || script != nil {
		return script, nil
	}
	data, _, err := readBeside(ctx, files, dir, a.File)
	if err != nil {
		return nil, scriptProblem(a.File, err)
	}
	script, err := assistantscript.Parse(data)
	if err != nil {
		return nil, scriptProblem(a.File, err)
	}
	return script, nil
}

func readBeside(ctx context.Context, files clientio.Files, dir, path string) (data []byte, full string, err error) {
	full = filepath.Clean(path)
	if !filepath.IsAbs(full) {
		full = filepath.Join(dir, full)
	}
	if !filepath.IsAbs(full) {
		return nil, full, errors.New("the path is relative, and the working directory is not known")
	}
	data, err = files.Read(ctx, full, scenario.MaxFile)
	if clientio.IsUnavailable(err) {
		err = problem.New(problem.CodeClientFilesUnavailable, err.Error(),
			"Connect through service-mcp or use servicectl, or leave assistantScript out.")
	}
	return data, full, err
}
