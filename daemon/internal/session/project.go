package session

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/clientio"
	contract "github.com/service-dev/service/internal/clientio"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/internal/textfile"
)

// ManifestName is the file that contains a project's app ID. It is a JSON object with the field "project", e.g.
// {"project":"com.example.app"}. The daemon looks for it in the caller's directory and in parent directories that are
// not shared. It ignores other fields, and manifests without this field.
const ManifestName = "service.json"

// Limits of the search for a manifest: the size of a file in bytes, and the number of parent
// directories.
const (
	maxManifest = 64 << 10
	maxUpward   = 64
)

// Platforms are the platforms on which an app may run. The first is the default.
var Platforms = []string{"web", "ios", "android", "desktop"}

func platformOf(platform string) (string, error) {
	if platform == "" {
		return Platforms[0], nil
	}
	if !slices.Contains(Platforms, platform) {
		return "", invalid("platform must be ios, android, web or desktop",
			"Pass the platform the app is built for, or leave it out for web.")
	}
	return platform, nil
}

var (
	modelPattern   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	projectPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)+$`)
)

// Maximum lengths of a model ID and an app ID, in bytes. They are checked separately, because counted repetitions in
// regular expressions use much memory.
const (
	maxModel   = 64
	maxProject = 155
)

// checkDeviceModel rejects a string that cannot be a model's ID. Only the backend knows whether the model exists.
func checkDeviceModel(model string) error {
	if model != "" && (len(model) > maxModel || !modelPattern.MatchString(model)) {
		return invalid("deviceModel must be the id of a device model", "Pass an id such as rayban_display, or leave it out.")
	}
	return nil
}

// checkProject reports whether project is a valid app ID.
func checkProject(project string) bool {
	return len(project) <= maxProject && projectPattern.MatchString(project)
}

// projectOf returns the project of a call: the argument, or the project of the manifest in the caller's directory or
// its parents, or a random ID that is stored for the directory.
func (m *Manager) projectOf(ctx context.Context, argument string, who caller.Caller) (string, error) {
	return projectFrom(ctx, argument, who, m.projects.assign)
}

// accountProject is like projectOf, but for a project of the account. Agents started in a shared directory must specify
// the project, because each of their starts would otherwise add a project to the account. A call without a link is not
// checked, because the backend refuses it.
func (m *Manager) accountProject(
	ctx context.Context, target backend.Target, argument string, who caller.Caller,
) (string, error) {
	if who.Workspace() == who.Cwd || target.Bearer == "" {
		return m.projectOf(ctx, argument, who)
	}
	project, err := namedProject(ctx, argument, who)
	if err == nil && project == "" {
		err = invalid("this agent was started in "+cmp.Or(who.Cwd, "an unknown directory")+", which is not an app's folder",
			`Pass project, an app id such as "com.example.app".`)
	}
	return project, err
}

// Project returns the project for calls that need an existing one. It chooses the project like Open, but does not
// assign a new ID. It returns "" if no project is specified.
func (m *Manager) Project(ctx context.Context, argument string, who caller.Caller) (string, error) {
	return projectFrom(ctx, argument, who, m.projects.find)
}

func projectFrom(
	ctx context.Context, argument string, who caller.Caller, ofDirectory func(string) (string, error),
) (string, error) {
	project, err := namedProject(ctx, argument, who)
	if err != nil || project != "" {
		return project, err
	}
	if project, err = ofDirectory(who.Workspace()); err != nil {
		return "", stateProblem("save the directory's project", err)
	}
	return project, nil
}

// namedProject returns the project from the argument or, if empty, from the manifest. It returns "" if neither contains
// one.
func namedProject(ctx context.Context, argument string, who caller.Caller) (string, error) {
	if argument == "" {
		return fromManifest(ctx, clientio.FilesOf(who), who.Cwd)
	}
	if !checkProject(argument) {
		return "", invalid("project must be an app id in reverse-DNS form",
			`Pass an id such as "com.example.app", or leave it out.`)
	}
	return argument, nil
}

// fromManifest returns the project of the nearest manifest in dir and its parents that contains one, or "".
func fromManifest(ctx context.Context, files clientio.Files, dir string) (string, error) {
	for range maxUpward {
		if !filepath.IsAbs(dir) {
			return "", nil
		}
		path, data, err := files.Find(ctx, dir, ManifestName, maxManifest)
		switch {
		case isTooLarge(err):
			return "", manifestProblem(ManifestName, "it is longer than 64 KiB")
		case ctx.Err() != nil:
			return "", ctx.Err()
		case err != nil: // there is no manifest, or the client's files cannot be read
			return "", nil
		}
		if found := filepath.Dir(path); found != dir && caller.IsShared(found) {
			return "", nil // a manifest above several apps belongs to none of them
		}
		project, err := parseManifest(path, data)
		if err != nil || project != "" {
			return project, err
		}
		parent := filepath.Dir(filepath.Dir(path))
		if parent == filepath.Dir(path) {
			break
		}
		dir = parent
	}
	return "", nil
}

func isTooLarge(err error) bool {
	var e *clientio.Error
	return errors.As(err, &e) && e.Code == contract.CodeTooLarge
}

func parseManifest(path string, data []byte) (string, error) {
	var manifest struct {
		Project json.RawMessage `json:"project"`
	}
	text, err := textfile.Decode(data)
	if err != nil {
		return "", manifestProblem(path, err.Error())
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		return "", manifestProblem(path, "it is not a JSON object")
	}
	if len(manifest.Project) == 0 {
		return "", nil
	}
	var project string
	if json.Unmarshal(manifest.Project, &project) != nil || !checkProject(project) {
		return "", manifestProblem(path, `its "project" is not an app id in reverse-DNS form`)
	}
	return project, nil
}

func manifestProblem(path, why string) error {
	return problem.New(problem.CodeInvalidManifest, fmt.Sprintf("read %s: %s", path, why),
		`Repair the file, e.g. {"project":"com.example.app"}, or pass project.`)
}

// invalid returns the problem of an invalid argument.
func invalid(message, hint string) error {
	return problem.New(problem.CodeInvalidRequest, message, hint)
}

// projectsName is the file that stores random app IDs by directory.
const projectsName = "projects.json"

// projects assigns app IDs to directories without a manifest.
type projects struct {
	path string
	mu   sync.Mutex
}

type directoryProject struct {
	Project string `json:"project"`
	UsedAt  int64  `json:"usedAt"` // Unix ms, precise to a day
}

func (p directoryProject) lastUse() int64 { return p.UsedAt }

// assign returns the directory's ID, or a new random ID if it has none. Callers without a directory share one ID.
func (p *projects) assign(dir string) (string, error) {
	dir = cleanDir(dir)
	p.mu.Lock()
	defer p.mu.Unlock()
	entries, err := loadDirectories[directoryProject](p.path)
	if err != nil {
		return "", err
	}
	entry, now := entries[dir], time.Now().UnixMilli()
	switch isKnown := checkProject(entry.Project); {
	case !isKnown:
		entry.Project = "app.local." + strings.ToLower(rand.Text()[:10])
	case now-entry.UsedAt < (24 * time.Hour).Milliseconds():
		return entry.Project, nil // one write a day is enough to keep the order of use
	}
	entry.UsedAt = now
	entries[dir] = entry
	return entry.Project, saveDirectories(p.path, entries)
}

// find returns the directory's ID, or "" if it has none.
func (p *projects) find(dir string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	entries, err := loadDirectories[directoryProject](p.path)
	if project := entries[cleanDir(dir)].Project; checkProject(project) {
		return project, nil
	}
	return "", err
}
