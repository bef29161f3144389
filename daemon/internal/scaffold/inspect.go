package scaffold

import (
	"context"
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/service-dev/service/daemon/internal/clientio"
	"github.com/service-dev/service/glasses/guide"
	contract "github.com/service-dev/service/internal/clientio"
	"github.com/service-dev/service/internal/problem"
)

// Limits on reading a project.
const (
	maxFiles   = 2000
	maxFolders = 5000
	maxDepth   = 24
	maxReads   = 2 * maxFiles // files of modules are read twice
	maxBytes   = 64 << 20     // of all files together
	maxUses    = 1000         // limit on recorded commands and on recorded phrases
	maxKeys    = 50

	maxExampleModules = 50
)

// Inspection describes the integration of a project.
type Inspection struct {
	Root      string
	Project   string // from service.json; empty if there is none
	Languages []LanguageUse
	Modules   []ModuleState
	Pages     []FileState // the project's copies of the connection page
	// Commands lists the places where the app's files use commands of the module.
	Commands     []Use
	Capabilities []string // of the used commands and events
	Phrases      []Use
	// UnknownPhrases lists the places where the app announces phrases by a name that its files do not
	// define.
	UnknownPhrases []Use
	Declared       []Declared
	Keys           []KeyState
	FilesRead      int
	// Truncated is set if the project has more files than were read.
	Truncated bool

	lineFindings []lineFinding // problems of single lines
}

// LanguageUse is a language and the number of the project's files written in it.
type LanguageUse struct {
	Language string `json:"language"`
	Files    int    `json:"files"`
}

// ModuleState is a generated module with the state of its files.
type ModuleState struct {
	Dir          string      `json:"dir"`
	Language     string      `json:"language"`
	Version      string      `json:"version"`
	Capabilities []string    `json:"capabilities"`
	Files        []FileState `json:"files"`
	// FromExample is set if the module came with an example. Such a module has no key and no project, and no manifest
	// lists it.
	FromExample bool `json:"fromExample"`
}

// FileState is a generated file that is intact, changed or missing.
type FileState struct {
	Path  string `json:"path"`
	State string `json:"state"`
}

// Use is a place in the app's files that uses a command or announces a phrase.
type Use struct {
	Name string `json:"name"`
	File string `json:"file"`
	Line int    `json:"line"`
}

// Declared lists the permissions requested by a platform's manifest.
type Declared struct {
	Platform string   `json:"platform"`
	File     string   `json:"file"`
	Names    []string `json:"names"`
}

// KeyState is the state of a project key's file.
type KeyState struct {
	Path string `json:"path"`
	// Ignored is set if a .gitignore pattern matches the file, Tracked if version control tracks the file anyway, and
	// Private if only the file's owner may read it.
	Ignored bool `json:"ignored"`
	Tracked bool `json:"tracked"`
	Private bool `json:"private"`
}

// lineFinding is a problem in a single line, from which a Finding is created.
type lineFinding struct {
	code, file, word string
	line             int
}

// ignoredFolders lists directories that contain no files of the app itself.
var ignoredFolders = []string{".git", "node_modules", ".venv", "venv", "__pycache__", "build", "dist", "out", ".gradle",
	".build", "Pods", "DerivedData", ".idea", "target", "vendor", ".next", ".nuxt", ".output", ".svelte-kit", ".angular",
	".turbo", ".vercel", ".expo", ".dart_tool", "coverage", ".tox", ".mypy_cache", ".pytest_cache", "site-packages"}

// extensions maps file extensions to languages.
var extensions = map[string]string{".ts": TypeScript, ".tsx": TypeScript, ".mts": TypeScript, ".js": "javascript",
	".jsx": "javascript", ".mjs": "javascript", ".cjs": "javascript",
	".py": Python, ".kt": Kotlin, ".swift": Swift, ".go": "go", ".java": "java", ".rs": "rust"}

// Inspect reads a project directory, within limits. It does not write files or follow symbolic links, and its
// result contains no secret.
func Inspect(ctx context.Context, files clientio.Files, root string) (Inspection, error) {
	if !filepath.IsAbs(root) {
		return Inspection{}, problem.New(problem.CodeFolderUnusable, "the folder is not known",
			"Pass dir, or call from the project's folder.")
	}
	in := &inspector{ctx: ctx, files: files.In(root), found: Inspection{Root: root}, languages: map[string]int{},
		generated: map[string]bool{}, aliases: map[string]string{}}
	var err error
	if in.found.Project, _, err = projectAbove(ctx, files, root); err != nil {
		in.found.lineFindings = append(in.found.lineFindings,
			lineFinding{code: FindProjectFile, file: ProjectFile, word: err.Error()})
	}
	in.readGit()
	if err := in.walk("."); err != nil {
		return Inspection{}, readError(root, err)
	}
	in.walkIgnored()
	in.modules()
	for _, f := range in.sources {
		in.source(f)
	}
	in.resolve()
	in.complete()
	return in.found, ctx.Err()
}

func readError(root string, err error) error {
	var refused *clientio.Error
	if !errors.As(err, &refused) || refused.Code == problem.CodeClientFilesUnavailable {
		return err
	}
	return problem.New(problem.CodeFolderUnusable, "read "+root+": "+refused.Message, "Pass the folder of the project.")
}

type inspector struct {
	ctx       context.Context // the context of the call that inspects the project
	files     clientio.Files  // below the project's directory
	found     Inspection
	languages map[string]int
	generated map[string]bool // paths of generated files
	manifests []string
	sources   []string
	git       gitIgnore
	ignored   []string // directories that version control ignores
	inIgnored bool     // walk is inside an ignored directory
	names     []string // names of all files
	folders   int
	reads     int // number of attempts to read a file
	bytes     int // bytes read

	known         []constant
	aliases       map[string]string // names under which constants are imported; a key is a file, a space and the name
	announcements []announcement
	bound         map[string]bool // variables of the current file that hold glasses
	announces     bool            // a call announces phrases
}

// walk lists at most maxFiles files in a directory and its subdirectories. Only the project's directory itself must be
// readable.
func (in *inspector) walk(dir string) error {
	if in.folders++; in.folders > maxFolders || len(in.names) >= maxFiles {
		in.found.Truncated = true
		return nil
	}
	entries, err := in.files.List(in.ctx, dir)
	if err != nil {
		if dir == "." || in.ctx.Err() != nil {
			return err
		}
		return nil
	}
	if slices.ContainsFunc(entries, func(e contract.Entry) bool {
		return string(e.Name) == ignoreName && e.Kind == contract.KindFile
	}) {
		name := path.Join(dir, ignoreName)
		in.git.add(dir, in.read(name))
	}
	for _, e := range entries {
		name := path.Join(dir, string(e.Name))
		switch {
		case e.Kind == contract.KindDir && !slices.Contains(ignoredFolders, string(e.Name)) &&
			strings.Count(name, "/") < maxDepth:
			if !in.inIgnored && in.git.ignores(name, true) {
				in.ignored = append(in.ignored, name)
				continue
			}
			if err := in.walk(name); err != nil {
				return err
			}
		case e.Kind != contract.KindFile:
		case len(in.names) >= maxFiles:
			in.found.Truncated = true
			return nil
		default:
			in.names = append(in.names, name)
			in.classify(name)
		}
	}
	return nil
}

func (in *inspector) classify(name string) {
	base := path.Base(name)
	if language := extensions[path.Ext(base)]; language != "" {
		in.languages[language]++
	}
	switch {
	case base == ManifestName:
		in.manifests = append(in.manifests, name)
	case base == KeyName && len(in.found.Keys) < maxKeys:
		in.found.Keys = append(in.found.Keys, KeyState{Path: name})
	case isModuleName(base):
		in.sources = append(in.sources, name)
	case in.inIgnored:
	case isConfig(base), extensions[path.Ext(base)] != "" && !in.git.ignores(name, false):
		in.sources = append(in.sources, name)
	}
}

func isModuleName(base string) bool {
	for _, name := range moduleNames {
		if base == name {
			return true
		}
	}
	return false
}

// readGit reads which files version control tracks, and which it ignores in addition to the .gitignore files.
func (in *inspector) readGit() {
	in.git.index, _ = in.files.Read(in.ctx, ".git/index", 32<<20)
	if data, err := in.files.Read(in.ctx, ".git/info/exclude", maxRead); err == nil {
		in.git.add(".", data)
	}
}

// walkIgnored looks for modules and keys in directories that version control ignores. Other files there are build
// copies or private.
func (in *inspector) walkIgnored() {
	truncated := in.found.Truncated
	in.inIgnored = true
	for _, dir := range in.ignored {
		if in.walk(dir) != nil {
			break
		}
	}
	in.found.Truncated = truncated
}

// isConfig reports whether a file contains settings.
func isConfig(base string) bool {
	return strings.HasPrefix(base, ".env") || slices.Contains([]string{".json", ".yaml", ".yml", ".toml", ".properties",
		".plist", ".xml", ".xcconfig", ".ini"}, path.Ext(base)) &&
		base != "package-lock.json"
}

// full reports whether a limit was reached or the call has ended.
func (in *inspector) full() bool {
	full := in.reads >= maxReads || in.bytes >= maxBytes
	in.found.Truncated = in.found.Truncated || full
	return full || in.ctx.Err() != nil
}

// read returns the content of a file. It returns nil if the file is too long or cannot be read, or if a limit was
// reached.
func (in *inspector) read(name string) []byte {
	if in.full() {
		return nil
	}
	in.reads++
	data, err := in.files.Read(in.ctx, name, maxRead)
	if err != nil {
		return nil
	}
	in.found.FilesRead++
	in.bytes += len(data)
	return data
}

// modules compares the files that manifests list with the files on disk.
func (in *inspector) modules() {
	for _, name := range in.manifests {
		if in.full() {
			return
		}
		m, err := parseManifest(in.read(name))
		if err != nil {
			in.found.lineFindings = append(in.found.lineFindings, lineFinding{code: FindManifest, file: name, word: err.Error()})
			continue
		}
		dir := path.Dir(name)
		if in.found.Project != "" && m.Project != "" && m.Project != in.found.Project {
			in.found.lineFindings = append(in.found.lineFindings, lineFinding{code: FindRenamed, file: name, word: m.Project})
		}
		for _, module := range m.Modules {
			state := ModuleState{Dir: dir, Language: module.Language, Version: module.Version, Capabilities: module.Capabilities}
			for _, f := range module.Files {
				if in.full() {
					break
				}
				state.Files = append(state.Files, in.state(dir, f))
			}
			in.found.Modules = append(in.found.Modules, state)
		}
		if m.Page != nil {
			in.found.Pages = append(in.found.Pages, in.state(dir, *m.Page))
		}
	}
}

// state compares a generated file with the file on disk.
func (in *inspector) state(dir string, f Sum) FileState {
	file := path.Join(dir, f.Name)
	in.generated[file] = true
	word := "changed"
	if data := in.read(file); data == nil {
		word = "missing"
	} else if sumOf(data) == f.SHA256 {
		word = "intact"
	}
	return FileState{file, word}
}

func (in *inspector) complete() {
	for language, files := range in.languages {
		in.found.Languages = append(in.found.Languages, LanguageUse{language, files})
	}
	slices.SortFunc(in.found.Languages, func(a, b LanguageUse) int {
		if a.Files != b.Files {
			return b.Files - a.Files
		}
		return strings.Compare(a.Language, b.Language)
	})
	for _, c := range guide.Capabilities() {
		if slices.ContainsFunc(in.found.Commands, func(u Use) bool {
			return slices.Contains(c.Commands, u.Name) ||
				slices.Contains(c.Events, u.Name)
		}) {
			in.found.Capabilities = append(in.found.Capabilities, c.ID)
		}
	}
	for i := range in.found.Keys {
		key := &in.found.Keys[i]
		key.Tracked = in.git.tracks(key.Path, false)
		key.Ignored = in.git.names(key.Path, false)
		if info, err := in.files.Stat(in.ctx, key.Path); err == nil {
			key.Private = info.Private
		}
	}
}
