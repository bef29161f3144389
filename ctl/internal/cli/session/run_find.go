package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/service-dev/service/glasses/scenario"
	"github.com/service-dev/service/internal/problem"
)

// maxJobs is the maximum number of runs in one command.
const maxJobs = 2000

// recordingFile is the name of the scenario file in a recording's directory.
const recordingFile = "scenario.json"

// job is one scenario to run on one device model.
type job struct {
	file string // absolute path
	name string // path relative to the working directory, with slashes; for a recording, its directory
	// model is the device model to run on, or empty for the scenario's own model. A recording can run only on
	// its own model.
	model    string
	scenario scenario.Scenario
	invalid  error // why the file is not a scenario
}

// title identifies a job among the jobs of a command.
func (j job) title() string {
	if j.model == "" {
		return j.name
	}
	return j.name + " on " + j.model
}

// slug returns the title in a form suitable for file names.
func (j job) slug() string {
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' {
			return r
		}
		return '-'
	}, j.title())
	return strings.Trim(safe[max(0, len(safe)-80):], ".-")
}

// findJobs returns the runs to do: the scenarios and recordings in args, and every scenario below the directories in
// args, on each model. single reports whether args is a single scenario.
func findJobs(args, models []string) (jobs []job, single bool, err error) {
	var files []job
	seen := map[string]bool{}
	single = len(args) == 1 && len(models) <= 1
	for _, arg := range args {
		found, one, err := scenariosAt(arg)
		if err != nil {
			return nil, false, err
		}
		single = single && one
		for _, j := range found {
			if !seen[j.file] {
				seen[j.file] = true
				files = append(files, j)
			}
		}
	}
	for _, j := range files {
		j.scenario, j.invalid = readScenario(j.file)
		if len(models) == 0 || j.scenario.Recorded != nil || j.invalid != nil {
			jobs = append(jobs, j)
			continue
		}
		for _, model := range models {
			j.model = model
			jobs = append(jobs, j)
		}
	}
	if len(jobs) > maxJobs {
		return nil, false, fmt.Errorf("%d runs exceed the limit of %d; pass fewer folders or models", len(jobs), maxJobs)
	}
	return jobs, single, nil
}

// scenariosAt returns the scenarios at a path. one reports whether the path is a single scenario, not a
// directory.
func scenariosAt(arg string) (found []job, one bool, err error) {
	path, err := absolute(arg)
	if err != nil {
		return nil, false, err
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, false, &problem.Error{Code: problem.CodeInvalidScenario, Message: fmt.Sprintf("read %s: %v", path, err),
			FixHint: "Pass a scenario, a recording or a folder."}
	case !info.IsDir():
		return []job{{file: path, name: nameOf(path)}}, true, nil
	case isRecording(path):
		return []job{{file: filepath.Join(path, recordingFile), name: nameOf(path)}}, true, nil
	}
	real, err := filepath.EvalSymlinks(path) // follow a link to this directory, but none below it
	if err != nil {
		return nil, false, fmt.Errorf("search for scenarios: %w", err)
	}
	err = filepath.WalkDir(real, func(at string, entry fs.DirEntry, err error) error {
		at = path + strings.TrimPrefix(at, real)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && at != path && isOther(entry.Name()):
			return filepath.SkipDir
		case entry.IsDir() && isRecording(at):
			found = append(found, job{file: filepath.Join(at, recordingFile), name: nameOf(at)})
			return filepath.SkipDir
		case entry.Type().IsRegular() && filepath.Ext(at) == ".json" && isScenario(at):
			found = append(found, job{file: at, name: nameOf(at)})
		}
		return nil
	})
	if err != nil {
		return nil, false, fmt.Errorf("search for scenarios: %w", err)
	}
	if len(found) == 0 {
		return nil, false, &problem.Error{Code: problem.CodeInvalidScenario, Message: "found no scenario below " + path,
			FixHint: "Pass a scenario, which is a .json file with the field \"scenario\"."}
	}
	return found, false, nil
}

// isOther reports whether a directory contains files that the user did not write, such as packages.
func isOther(name string) bool { return strings.HasPrefix(name, ".") || name == "node_modules" }

// isRecording reports whether a directory contains a recording.
func isRecording(dir string) bool {
	s, err := readScenario(filepath.Join(dir, recordingFile))
	return err == nil && s.Recorded != nil
}

// isScenario reports whether a file is meant to be a scenario, even if it is invalid: the run then reports its errors.
func isScenario(path string) bool {
	data, err := readBounded(path)
	if err != nil {
		return true // the run reports the error
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return bytes.Contains(data, []byte(`"scenario"`))
	}
	return fields["scenario"] != nil
}

func readScenario(path string) (scenario.Scenario, error) {
	invalid := func(err error) error {
		return &problem.Error{Code: problem.CodeInvalidScenario, Message: fmt.Sprintf("read %s: %v", path, err),
			FixHint: "Run `servicectl tool call searchDocs --arg query=\"scenario files\"` to read about the format."}
	}
	data, err := readBounded(path)
	if err != nil {
		return scenario.Scenario{}, invalid(err)
	}
	s, err := scenario.Parse(data)
	if err != nil {
		return scenario.Scenario{}, invalid(err)
	}
	return s, nil
}

func readBounded(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > scenario.MaxFile {
		return nil, fmt.Errorf("not a regular file of at most %d MB", scenario.MaxFile>>20)
	}
	return os.ReadFile(path)
}

// nameOf returns a path as shown in reports, which is relative to the working directory for paths below it.
func nameOf(path string) string {
	if dir, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			path = rel
		}
	}
	return filepath.ToSlash(path)
}
