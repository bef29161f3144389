package main

import (
	"path"
	"path/filepath"
)

// exampleFiles are the example app, which needs only Python, and its scenario, by their paths below examples.
var exampleFiles = []string{
	"apps/desk-py/desk.py", "apps/desk-py/service/glasses.py", "scenarios/desk.json", "pictures/desk.png",
}

// examples returns the files that people without the source try first, as files of the folder.
func (r *release) examples(folder string) []entry {
	var all []entry
	for _, name := range exampleFiles {
		from := filepath.Join(r.root, "examples", filepath.FromSlash(name))
		all = append(all, entry{name: path.Join(folder, name), from: from, mode: 0o644})
	}
	return all
}
