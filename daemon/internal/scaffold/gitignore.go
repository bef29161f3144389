package scaffold

import (
	"bytes"
	"path"
	"slices"
	"strings"
)

// Limits on .gitignore files.
const (
	maxIgnores  = 1 << 20 // bytes of all files together
	maxPatterns = 1000    // of all files together
	maxStars    = 3       // occurrences of ** in a pattern
)

// gitIgnore determines which files version control ignores, as git does, from the project's .gitignore files and
// .git/info/exclude. It does not read the user's own settings or files above the project.
type gitIgnore struct {
	byFolder map[string][]ignorePattern
	patterns int
	bytes    int
	// index is the index of the repository whose root is the project directory. It contains uncompressed paths, as in
	// versions 2 (git's default) and 3 of the format.
	index []byte
}

// ignorePattern is a line of a .gitignore file.
type ignorePattern struct {
	segments   []string // of the path below its directory; one without an anchor also matches in subdirectories
	isAnchored bool
	isNegated  bool
	isFolder   bool // matches only folders
}

// add adds the lines of the .gitignore file in a directory.
func (g *gitIgnore) add(folder string, data []byte) {
	if g.bytes += len(data); g.bytes > maxIgnores {
		return
	}
	if g.byFolder == nil {
		g.byFolder = map[string][]ignorePattern{}
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") || g.patterns >= maxPatterns {
			continue
		}
		g.patterns++
		p := ignorePattern{}
		line, p.isNegated = strings.CutPrefix(line, "!")
		line, p.isFolder = strings.CutSuffix(line, "/")
		if rest, ok := strings.CutPrefix(line, "**/"); ok && !strings.Contains(rest, "/") {
			line = rest // the same pattern without an anchor
		}
		p.isAnchored = strings.Contains(line, "/")
		p.segments = strings.Split(strings.TrimPrefix(line, "/"), "/")
		if strings.Count(line, "**") <= maxStars {
			g.byFolder[folder] = append(g.byFolder[folder], p)
		}
	}
}

// ignores reports whether a file or directory is ignored and not tracked.
func (g *gitIgnore) ignores(name string, isFolder bool) bool {
	return g.names(name, isFolder) && !g.tracks(name, isFolder)
}

// names reports whether patterns ignore a file or directory, or one of its parent directories.
func (g *gitIgnore) names(name string, isFolder bool) bool {
	for i := range len(name) {
		if name[i] == '/' && g.matches(name[:i], true) {
			return true
		}
	}
	return g.matches(name, isFolder)
}

// matches applies the patterns of the nearest directory first. Within a file, the last matching pattern wins.
func (g *gitIgnore) matches(name string, isFolder bool) bool {
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		below := strings.Split(strings.TrimPrefix(name, dir+"/"), "/")
		for _, p := range slices.Backward(g.byFolder[dir]) {
			if p.isFolder && !isFolder {
				continue
			}
			given := below
			if !p.isAnchored {
				given = below[len(below)-1:]
			}
			if matchSegments(p.segments, given) {
				return !p.isNegated
			}
		}
		if dir == "." {
			return false
		}
	}
}

func matchSegments(pattern, name []string) bool {
	if len(pattern) == 0 {
		return len(name) == 0
	}
	if pattern[0] == "**" {
		if len(pattern) == 1 {
			return len(name) > 0
		}
		for i := range name {
			if matchSegments(pattern[1:], name[i:]) {
				return true
			}
		}
		return false
	}
	if len(name) == 0 {
		return false
	}
	isMatch, err := path.Match(pattern[0], name[0])
	return err == nil && isMatch && matchSegments(pattern[1:], name[1:])
}

// tracks reports whether the index contains a file, or any file in a directory.
func (g *gitIgnore) tracks(name string, isFolder bool) bool {
	wanted := []byte(name + "\x00")
	if isFolder {
		wanted[len(name)] = '/'
	}
	for rest := g.index; ; {
		at := bytes.Index(rest, wanted)
		if at < 0 {
			return false
		}
		// In the index, the length of the whole path precedes the path. This rules out a match with the end of another
		// path.
		if end := bytes.IndexByte(rest[at:], 0); at >= 2 && end == int(rest[at-2]&0x0f)<<8|int(rest[at-1]) {
			return true
		}
		rest = rest[at+1:]
	}
}
