package scaffold

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/service-dev/service/daemon/internal/clientio"
)

// DefaultDir is the folder of a module in its project.
const DefaultDir = "service"

const maxRead = 1 << 20 // bytes of a file that is read

// Order requests a module in a project.
type Order struct {
	Request
	Files   clientio.Files // the client's
	Root    string         // the project's folder, absolute
	Dir     string         // the module's folder, below Root; empty: DefaultDir
	Project string         // app id; empty: that of service.json in or above Root, else a new random one
	Force   bool           // overwrite generated files that were changed by hand
	Page    Page           // fetches the connection page; nil: the page is left unchanged
}

// Written is the result of an order.
type Written struct {
	Dir          string // absolute
	Project      string
	Version      string
	Language     string
	Capabilities []string
	Files        []WrittenFile
	KeyFile      string // absolute; the key itself is nowhere else
	KeyMinted    bool   // false: the existing key is used
	PageErr      error  // why the connection page could not be fetched; the module is written nevertheless
}

// WrittenFile is one file of a project and what happened to it: created, updated, unchanged, or kept, which means a
// connection page that was changed by hand.
type WrittenFile struct {
	Path  string // below the project's folder, with slashes
	State string
}

// Mint creates a key of a project. The key is a secret.
type Mint func(ctx context.Context, project string) (key string, err error)

// Page fetches the connection page of a project as one HTML file.
type Page func(ctx context.Context, project string) (html []byte, err error)

// Write generates a module into a project. It preserves the person's own work: if a generated file was changed by hand,
// it reports CodeDrift and writes nothing, unless Force is set; all other files stay. It calls mint if the folder has
// no key yet, before it writes anything. It fetches the connection page after the key, because creating the key creates
// the project; problems with the page do not fail the order. Errors are *Error, or those of mint.
func Write(ctx context.Context, o Order, mint Mint) (Written, error) {
	request, err := Normalise(o.Request)
	if err != nil {
		return Written{}, err
	}
	files, err := Generate(request)
	if err != nil {
		return Written{}, err
	}
	p, err := openProject(ctx, o)
	if err != nil {
		return Written{}, err
	}
	if err := p.choose(ctx, o); err != nil {
		return Written{}, err
	}
	if changedFiles := p.changedFiles(ctx, files); len(changedFiles) > 0 && !o.Force {
		return Written{}, &Error{CodeDrift, strings.Join(changedFiles, ", ") +
			" was changed by hand since it was generated, or is not from here",
			"move the changes into a file of the app's own and call again with force: true, which overwrites it; or choose " +
				"another dir"}
	}
	key, err := p.key(ctx, mint)
	if err != nil {
		return Written{}, err
	}
	page, pageErr := fetchPage(ctx, o.Page, p.project)
	p.page(ctx, page, o)
	if err := p.write(ctx, request, files, key); err != nil {
		return Written{}, folderError(p.dir, err)
	}
	return Written{Dir: filepath.Join(o.Root, filepath.FromSlash(p.dir)), Project: p.project, Version: Version,
		Language:     request.Language,
		Capabilities: request.Capabilities, Files: p.written, KeyFile: filepath.Join(o.Root, filepath.FromSlash(p.dir),
			KeyName), KeyMinted: key != "",
		PageErr: pageErr}, nil
}

// project is a project and the state of an order in it. No path leaves its folder, not even by a symbolic link.
type project struct {
	files    clientio.Files
	dir      string // slashes, below root
	manifest Manifest
	project  string
	named    bool   // a service.json names the project already
	html     []byte // of the connection page, to be written; nil: none
	written  []WrittenFile
}

func openProject(ctx context.Context, o Order) (*project, error) {
	dir := o.Dir
	if dir == "" {
		dir = DefaultDir
	}
	if filepath.IsAbs(dir) {
		below, err := filepath.Rel(o.Root, dir)
		if err != nil {
			below = ".."
		}
		dir = below
	}
	if !filepath.IsAbs(o.Root) {
		return nil, &Error{CodeFolder, "the working directory is not known", "call from the project's folder"}
	}
	if !filepath.IsLocal(dir) || filepath.Clean(dir) == "." {
		return nil, &Error{CodeInvalidRequest, "dir is not a folder below the working directory",
			`pass a relative path such as "service" or "src/service"`}
	}
	p := &project{files: o.Files.In(o.Root), dir: filepath.ToSlash(filepath.Clean(dir))}
	data, err := p.files.Read(ctx, path.Join(p.dir, ManifestName), maxRead)
	if err == nil {
		p.manifest, err = parseManifest(data)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		if clientio.IsUnavailable(err) {
			return nil, err
		}
		return nil, &Error{CodeFolder, fmt.Sprintf("reading %s: %v", path.Join(p.dir, ManifestName), err),
			"repair or delete the file, or choose another dir"}
	}
	return p, nil
}

func folderError(dir string, err error) error {
	if clientio.IsUnavailable(err) {
		return err
	}
	var refused *clientio.Error
	if errors.As(err, &refused) {
		err = errors.New(refused.Message)
	}
	return &Error{CodeFolder, fmt.Sprintf("writing to %s: %v", dir, err),
		"make the folder writable, or choose another dir; links that lead out of the project are refused"}
}

var projectPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)+$`)

// choose determines the project that the module belongs to.
func (p *project) choose(ctx context.Context, o Order) error {
	if o.Project != "" && (len(o.Project) > 155 || !projectPattern.MatchString(o.Project)) {
		return &Error{CodeInvalidRequest, "project is not an app id in reverse-DNS form",
			`pass an id such as "com.example.app", or leave it out`}
	}
	found, where, err := projectAbove(ctx, o.Files, o.Root)
	if err != nil {
		return err
	}
	p.named = found != ""
	switch {
	case found != "" && o.Project != "" && found != o.Project:
		return &Error{CodeInvalidRequest, fmt.Sprintf("%s names the project %s", where, found),
			"leave project out, or change service.json first"}
	case found != "":
		p.project = found
	case o.Project != "":
		p.project = o.Project
	default:
		p.project = "app.local." + strings.ToLower(rand.Text()[:10])
	}
	return nil
}

// projectAbove returns the project's id in the service.json of the folder or of one above it.
func projectAbove(ctx context.Context, files clientio.Files, dir string) (project, where string, err error) {
	for range 64 {
		where, data, err := files.Find(ctx, dir, ProjectFile, 64<<10)
		if err != nil {
			return "", "", nil // the file does not exist or may not be read
		}
		var f struct{ Project string }
		if json.Unmarshal(data, &f) != nil || f.Project != "" && !projectPattern.MatchString(f.Project) {
			return "", where, &Error{CodeFolder, "reading " + where + ": its project is not an app id in reverse-DNS form",
				`repair the file, e.g. {"project":"com.example.app"}`}
		}
		if f.Project != "" {
			return f.Project, where, nil
		}
		if dir = filepath.Dir(filepath.Dir(where)); dir == filepath.Dir(where) {
			break
		}
	}
	return "", "", nil
}

// changedFiles returns the existing files whose content is neither the new one nor the one generated last.
func (p *project) changedFiles(ctx context.Context, files []File) []string {
	var changed []string
	for _, f := range files {
		name := path.Join(p.dir, f.Name)
		data, err := p.files.Read(ctx, name, maxRead)
		if errors.Is(err, fs.ErrNotExist) || err == nil &&
			(bytes.Equal(data, f.Data) || sumOf(data) == p.manifest.sum(f.Name)) {
			continue
		}
		changed = append(changed, name)
	}
	return changed
}

// key returns a new key, or "" if the folder has one of this project.
func (p *project) key(ctx context.Context, mint Mint) (string, error) {
	data, err := p.files.Read(ctx, path.Join(p.dir, KeyName), maxRead)
	of := p.manifest.Project // owner of the existing key; unknown in a folder without a manifest
	if err == nil && len(bytes.TrimSpace(data)) > 0 && (of == "" || of == p.project) {
		return "", nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", folderError(path.Join(p.dir, KeyName), err)
	}
	return mint(ctx, p.project)
}

func (p *project) write(ctx context.Context, r Request, files []File, key string) error {
	if err := p.ignoreKey(ctx); err != nil {
		return err
	}
	if key != "" {
		if err := p.put(ctx, path.Join(p.dir, KeyName), []byte(key+"\n"), 0o600); err != nil {
			return err
		}
	}
	module := Module{Language: r.Language, Version: Version, Capabilities: r.Capabilities}
	for _, f := range files {
		if err := p.put(ctx, path.Join(p.dir, f.Name), f.Data, 0o644); err != nil {
			return err
		}
		module.Files = append(module.Files, Sum{f.Name, sumOf(f.Data)})
	}
	if p.html != nil {
		if err := p.put(ctx, path.Join(p.dir, PageName), p.html, 0o644); err != nil {
			return err
		}
		p.manifest.Page = &Sum{PageName, sumOf(p.html)}
	}
	m := p.manifest.withModule(module)
	m.Manifest, m.Project = 1, p.project
	if err := p.put(ctx, path.Join(p.dir, ManifestName), m.encode(), 0o644); err != nil {
		return err
	}
	if p.named {
		return nil
	}
	data, err := json.Marshal(map[string]string{"project": p.project})
	if err != nil {
		return err
	}
	return p.put(ctx, ProjectFile, append(data, '\n'), 0o644)
}

// ignoreKey excludes the key from version control before it is written.
func (p *project) ignoreKey(ctx context.Context) error {
	name := path.Join(p.dir, ignoreName)
	data, err := p.files.Read(ctx, name, maxRead)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if slices.Contains(strings.Split(string(data), "\n"), KeyName) {
		return nil
	}
	if len(data) > 0 && !bytes.HasSuffix(data, []byte("\n")) {
		data = append(data, '\n')
	}
	return p.put(ctx, name, append(data, KeyName+"\n"...), 0o644)
}

// put writes a file atomically and records the result.
func (p *project) put(ctx context.Context, name string, data []byte, mode fs.FileMode) error {
	old, err := p.files.Read(ctx, name, maxRead)
	if err == nil && bytes.Equal(old, data) {
		p.written = append(p.written, WrittenFile{name, "unchanged"})
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	state := "created"
	if err == nil {
		state = "updated"
	}
	if err := p.files.Replace(ctx, name, data, mode, 0o755); err != nil {
		return err
	}
	p.written = append(p.written, WrittenFile{name, state})
	return nil
}
