package web

import (
	"fmt"
	"regexp"
	"sync"
)

// importOf matches an import of a page's script: a file in the same directory.
var importOf = regexp.MustCompile(` from "\./([a-z_]+\.js)"`)

// versionImports makes scripts import each other by versioned URLs, so that browsers need not revalidate them.
// Imports must not form a cycle.
func (s assetSet) versionImports() {
	for _, a := range s {
		if a.kind != scriptType {
			continue
		}
		source := a.body.bytes
		a.imports = sync.OnceValue(func() []string {
			var names []string
			for _, match := range importOf.FindAllSubmatch(source(), -1) {
				names = append(names, string(match[1]))
			}
			return names
		})
		a.body = shared(func() []byte {
			return importOf.ReplaceAllFunc(source(), func(statement []byte) []byte {
				imported := s[string(importOf.FindSubmatch(statement)[1])]
				return fmt.Appendf(nil, ` from "./%s?v=%s"`, imported.name, imported.version())
			})
		})
		s.add(a)
	}
}

// modules is the template function "modules". It returns the URLs of all scripts that a script imports, directly or
// indirectly, so that a browser can load them in parallel instead of one level of imports after another.
func (s assetSet) modules(name string) []string {
	seen := map[string]bool{}
	var urls []string
	var add func(name string)
	add = func(name string) {
		for _, imported := range s[name].imports() {
			if !seen[imported] {
				seen[imported] = true
				urls = append(urls, s[imported].url())
				add(imported)
			}
		}
	}
	add(name)
	return urls
}
