package main

import (
	"path"
	"path/filepath"
)

// exampleFiles lists the paths, relative to examples, of the example app, which needs only Python, and its scenario.
var exampleFiles = []string{
	"apps/desk-py/desk.py", "apps/desk-py/service/glasses.py", "scenarios/desk.json", "pictures/desk.png",
}

// examples returns the files that users without the source code try first, as entries in folder.
func (r *release) examples(folder string) []entry {
	var all []entry
	for _, name := range exampleFiles {
		from := filepath.Join(r.root, "examples", filepath.FromSlash(name))
		all = append(all, entry{name: path.Join(folder, name), from: from, mode: 0o644})
	}
	return all
}
