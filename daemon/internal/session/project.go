package session

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/daemon/internal/statefile"
	contract "github.com/service-dev/service/proto/clientio"
)

// ManifestName is the file in which a project says its app id: a JSON object with the field "project", e.g.
// {"project":"com.example.app"}. It is looked for in the caller's directory and upward; other fields are ignored, and a
// manifest without the field is passed by.
const ManifestName = "service.json"

// Bounds of what is read for a manifest: bytes of a file, folders upward.
const (
	maxManifest = 64 << 10
	maxUpward   = 64
)

// Platforms are the platforms an app may run on; the first is the default.
var Platforms = []string{"web", "ios", "android", "desktop"}

func platformOf(platform string) (string, error) {
	if platform == "" {
		return Platforms[0], nil
	}
	if !slices.Contains(Platforms, platform) {
		return "", invalid("platform is not one of ios, android, web and desktop", "pass the platform the app is built for, or leave it out for web")
	}
	return platform, nil
}

var (
	modelPattern   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	projectPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)+$`)
)

// maxProject is the longest app id in bytes.
const maxProject = 155

// checkDeviceModel refuses what cannot be a model's id; whether the model exists is the backend's to say.
func checkDeviceModel(model string) error {
	if model != "" && !modelPattern.MatchString(model) {
		return invalid("deviceModel is not the id of a device model", "pass an id such as rayban_display, or leave it out")
	}
	return nil
}

func checkProject(project string) bool {
	return len(project) <= maxProject && projectPattern.MatchString(project)
}

// projectOf decides which project a call is about: the argument, else the manifest found upward from its directory,
// else a random id that is kept for the directory.
func (m *Manager) projectOf(ctx context.Context, argument string, who caller.Caller) (string, error) {
	project, err := named(ctx, argument, who)
	if err != nil || project != "" {
		return project, err
	}
	project, err = m.projects.of(who.Cwd)
	if err != nil {
		return "", stateProblem("remembering the directory's project", err)
	}
	return project, nil
}

// Project is the project that a caller's call is about, for calls that need one that is there already: as for
// opening a session, but no id is made. It is empty where nothing names one.
func (m *Manager) Project(ctx context.Context, argument string, who caller.Caller) (string, error) {
	project, err := named(ctx, argument, who)
	if err != nil || project != "" {
		return project, err
	}
	if project, err = m.projects.known(who.Cwd); err != nil {
		return "", stateProblem("reading the directory's project", err)
	}
	return project, nil
}

// named is the project that the argument names, or else the manifest; empty where neither does.
func named(ctx context.Context, argument string, who caller.Caller) (string, error) {
	if argument == "" {
		return fromManifest(ctx, clientio.FilesOf(who), who.Cwd)
	}
	if !checkProject(argument) {
		return "", invalid("project is not an app id in reverse-DNS form", `pass an id such as "com.example.app", or leave it out`)
	}
	return argument, nil
}

// fromManifest looks upward, past manifests that are silent on the project; empty where none names one.
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
		case err != nil: // there is none, or this client's files are out of reach
			return "", nil
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
	if err := json.Unmarshal(data, &manifest); err != nil {
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
	return &backend.Problem{
		Code: CodeInvalidManifest, Message: fmt.Sprintf("reading %s: %s", path, why),
		FixHint: `repair the file, e.g. {"project":"com.example.app"}, or pass project`,
	}
}

func invalid(message, hint string) error {
	return &backend.Problem{Code: CodeInvalidArguments, Message: message, FixHint: hint}
}

// projectsName is the file that remembers random app ids by directory.
const projectsName = "projects.json"

// Bounds of that file: entries, and bytes that are read.
const (
	maxDirectories  = 500
	maxProjectsFile = 4 << 20
)

// projects gives directories without a manifest an app id each.
type projects struct {
	path string
	mu   sync.Mutex
}

type directory struct {
	Project string `json:"project"`
	// UsedAt is in Unix milliseconds; the directory that was used longest ago is forgotten first.
	UsedAt int64 `json:"usedAt"`
}

// of returns the directory's id and remembers a new one. Callers that have no directory share one.
func (p *projects) of(dir string) (string, error) {
	dir = cleanDir(dir)
	p.mu.Lock()
	defer p.mu.Unlock()
	known, err := p.load()
	if err != nil {
		return "", err
	}
	now := time.Now().UnixMilli()
	if entry, ok := known[dir]; ok && checkProject(entry.Project) {
		if now-entry.UsedAt < int64(24*time.Hour/time.Millisecond) {
			return entry.Project, nil // a write a day is enough for forgetting in the right order
		}
		known[dir] = directory{Project: entry.Project, UsedAt: now}
		return entry.Project, p.save(known)
	}
	entry := directory{Project: "app.local." + strings.ToLower(rand.Text()[:10]), UsedAt: now}
	known[dir] = entry
	forgetOldest(known)
	return entry.Project, p.save(known)
}

// known returns the directory's id; empty where it has none.
func (p *projects) known(dir string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, err := p.load()
	if err != nil {
		return "", err
	}
	if entry := known[cleanDir(dir)]; checkProject(entry.Project) {
		return entry.Project, nil
	}
	return "", nil
}

func forgetOldest(known map[string]directory) {
	for len(known) > maxDirectories {
		oldest, first := "", true
		for dir, entry := range known {
			if first || entry.UsedAt < known[oldest].UsedAt {
				oldest, first = dir, false
			}
		}
		delete(known, oldest)
	}
}

// load reads the file. One that does not parse is begun anew: it holds nothing that a person could miss.
func (p *projects) load() (map[string]directory, error) {
	known := map[string]directory{}
	data, err := statefile.Read(p.path, maxProjectsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return known, nil
	}
	if err != nil {
		return nil, err
	}
	if json.Unmarshal(data, &known) != nil || known == nil {
		known = map[string]directory{}
	}
	return known, nil
}

func (p *projects) save(known map[string]directory) error {
	data, err := json.MarshalIndent(known, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(p.path), 0o700); err != nil {
		return err
	}
	return statefile.Write(p.path, append(data, '\n'))
}
