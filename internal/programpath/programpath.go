// Package programpath finds the programs of this installation, and for each a path that stays valid across upgrades.
// service-mcp imports it and must start fast, so it does not use os/exec.
//
// A program has three paths. The file is os.Executable with symbolic links resolved. Package managers often install it
// in a versioned directory that the next upgrade deletes. The called path is os.Args[0], made absolute, or looked up in
// PATH if it is a plain name. It is ignored if it does not resolve to the file. A stable path is a link that an upgrade
// switches to the new version; Stable describes how it is chosen.
package programpath

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

// AdapterPrefix is the beginning of the program names (argv[0]) under which serviced runs as an adapter. The adapter's
// name follows it.
const AdapterPrefix = "service-plugin-"

// installation is the set of programs to which this process belongs.
type installation struct {
	file   string // this executable with links resolved
	called string // the path under which it was called, or "" if that path does not resolve to file
	dirs   []string
}

// current returns this process's installation, as found by the first call of a function of this package.
var current = sync.OnceValues(func() (installation, error) {
	file, err := os.Executable()
	if err != nil {
		return installation{}, fmt.Errorf("find this executable: %w", err)
	}
	dirs := filepath.SplitList(os.Getenv("PATH"))
	return newInstallation(file, os.Args[0], dirs), nil
})

func newInstallation(file, argv0 string, dirs []string) installation {
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	called := absolute(argv0, dirs)
	if called != "" && !leadsTo(called, file) {
		called = ""
	}
	return installation{file: file, called: called, dirs: dirs}
}

// Dir returns the directory of this executable, with links resolved. It belongs to this process's
// version.
func Dir() (string, error) {
	i, err := current()
	return filepath.Dir(i.file), err
}

// Called returns the path under which this process was called, or the path of its file if that path is unknown. After
// an upgrade, the path may refer to another file.
func Called() (string, error) {
	i, err := current()
	if i.called == "" {
		return i.file, err
	}
	return i.called, err
}

// Beside returns the path of another program of this installation. name has no suffix. The path is based on the path
// under which this process was called, so after an upgrade it is the new version's program. The program may not exist.
func Beside(name string) (string, error) {
	i, err := current()
	if err != nil {
		return "", err
	}
	return i.beside(name + suffix()), nil
}

// Stable returns the path under which to register a program of this installation with other software. It is the first
// of these paths that resolves to the program, contains no version number, and cannot be redirected by another user:
//
//  1. A link in the folder bin of a folder above the program: /usr/bin of /usr/lib/service, Homebrew's and install.sh's
//     PREFIX/bin.
//  2. Homebrew's opt/NAME instead of Cellar/NAME/VERSION, and a link "current" instead of the folder of a version, as
//     Scoop has it.
//  3. The folder of the path under which this process was called, and of each link from there on.
//  4. The folders of PATH.
//
// If there is none, it returns the file itself.
func Stable(name string) (string, error) {
	i, err := current()
	if err != nil {
		return "", err
	}
	return i.stable(name + suffix()), nil
}

// StableSelf is like Stable, but for this program itself, whose file may have any name.
func StableSelf() (string, error) {
	i, err := current()
	if err != nil {
		return "", err
	}
	return i.stableSelf(), nil
}

// Same reports whether two paths resolve to the same existing program. A plain name is looked up in PATH.
func Same(a, b string) bool {
	dirs := filepath.SplitList(os.Getenv("PATH"))
	a, b = absolute(a, dirs), absolute(b, dirs)
	if a == "" || b == "" {
		return false
	}
	real, err := filepath.EvalSymlinks(b)
	return err == nil && leadsTo(a, real)
}

func (i installation) beside(name string) string {
	file := i.file
	if real, err := filepath.EvalSymlinks(i.called); err == nil && i.called != "" {
		file = real
	}
	file = filepath.Join(filepath.Dir(file), name)
	for _, dir := range i.calledDirs() {
		if path := filepath.Join(dir, name); leadsTo(path, file) {
			return path
		}
	}
	return file
}

func (i installation) stable(name string) string {
	file := filepath.Join(filepath.Dir(i.file), name)
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	return i.stableLink(file, name)
}

func (i installation) stableSelf() string {
	if i.called != "" {
		if path := i.stableLink(i.file, filepath.Base(i.called)); path != i.file {
			return path
		}
	}
	return i.stableLink(i.file, filepath.Base(i.file))
}

// stableLink returns the best stable link to file called name, or file if there is none.
func (i installation) stableLink(file, name string) string {
	for _, path := range i.candidates(file, name) {
		if path != file && filepath.IsAbs(path) && !isVersioned(path) && leadsTo(path, file) && isTrusted(path) {
			return path
		}
	}
	return file
}

// candidates returns the paths that may be stable links to file, the best first.
func (i installation) candidates(file, name string) []string {
	var paths []string
	dir := filepath.Dir(file)
	for up := dir; up != filepath.Dir(up); up = filepath.Dir(up) {
		paths = append(paths, filepath.Join(filepath.Dir(up), "bin", name))
	}
	const sep = string(filepath.Separator)
	parts := strings.Split(file, sep)
	for n, part := range parts {
		if part == "Cellar" && n+2 < len(parts)-1 {
			opt := append(append([]string{}, parts[:n]...), "opt", parts[n+1])
			paths = append(paths, strings.Join(append(opt, parts[n+3:]...), sep))
		}
		if n < len(parts)-1 && isVersioned(part) {
			link := append(append([]string{}, parts[:n]...), "current")
			paths = append(paths, strings.Join(append(link, parts[n+1:]...), sep))
		}
	}
	for _, dir := range append(i.calledDirs(), i.dirs...) {
		paths = append(paths, filepath.Join(dir, name))
	}
	return paths
}

// maxLinks is the maximum number of links to follow, as in operating systems.
const maxLinks = 40

// calledDirs returns the directory of the path under which this process was called, and the directory of each link
// through which the path resolves.
func (i installation) calledDirs() []string {
	var dirs []string
	for path := i.called; path != "" && len(dirs) < maxLinks; {
		dirs = append(dirs, filepath.Dir(path))
		target, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	return dirs
}

// absolute returns the absolute path of a program, or "" if program is a plain name that is not in dirs.
func absolute(program string, dirs []string) string {
	if program == "" {
		return ""
	}
	if filepath.Base(program) != program {
		path, err := filepath.Abs(program)
		if err != nil {
			return ""
		}
		return path
	}
	for _, dir := range dirs {
		for _, end := range []string{"", suffix()} {
			path := filepath.Join(dir, program+end)
			info, err := os.Stat(path)
			if err != nil || !info.Mode().IsRegular() || !filepath.IsAbs(path) {
				continue
			}
			if runtime.GOOS == "windows" || info.Mode()&0o111 != 0 {
				return path
			}
		}
	}
	return ""
}

// leadsTo reports whether path is file, whose links are resolved, or resolves to file through symbolic links or
// junctions.
func leadsTo(path, file string) bool {
	if real, err := filepath.EvalSymlinks(path); err != nil {
		return false
	} else if real == file {
		return true
	}
	if runtime.GOOS == "linux" { // compare paths exactly; an upgrade does not update a hard link
		return false
	}
	a, err := os.Stat(path)
	if err != nil {
		return false
	}
	b, err := os.Stat(file)
	return err == nil && os.SameFile(a, b)
}

// isVersioned reports whether a path contains a number of the form 1.2.3.
func isVersioned(path string) bool {
	numbers, inNumber := 0, false
	for n := range len(path) {
		switch c := path[n]; {
		case c >= '0' && c <= '9':
			if !inNumber {
				numbers++
			}
			inNumber = true
			if numbers == 3 {
				return true
			}
		case c == '.' && inNumber:
			inNumber = false
		default:
			numbers, inNumber = 0, false
		}
	}
	return false
}

// suffix returns the file extension of programs.
func suffix() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}
