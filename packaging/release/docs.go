package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

//go:embed files
var templates embed.FS

// manuals lists the commands of this repository that write man pages and completions, one for each program.
var manuals = []string{"./ctl/manpages", "./backend/manpages"}

// docs writes the man pages and completions of all programs on its first call, and returns their directory.
func (r *release) docs(ctx context.Context) (string, error) {
	dir := filepath.Join(r.work, "docs")
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	date := r.time.Format(time.DateOnly)
	for _, pkg := range manuals {
		cmd := command(ctx, r.root, "go", "run", pkg, r.version, date, dir)
		cmd.Env = buildEnv()
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("write man pages with %s: %w", pkg, err)
		}
	}
	pages, err := fs.ReadDir(templates, "files/man")
	if err != nil {
		return "", err
	}
	for _, p := range pages {
		text, err := r.template("man/"+p.Name(), nil)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, "man", p.Name()), []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// template returns the file name of the directory files with each @NAME@ replaced: VERSION, DATE and
// the names in values.
func (r *release) template(name string, values map[string]string) (string, error) {
	text, err := templates.ReadFile("files/" + name)
	if err != nil {
		return "", err
	}
	pairs := []string{"@VERSION@", r.version, "@DATE@", r.time.Format(time.DateOnly)}
	for key, value := range values {
		pairs = append(pairs, "@"+key+"@", value)
	}
	return strings.NewReplacer(pairs...).Replace(string(text)), nil
}

// write writes a file into the working directory and returns its path.
func (r *release) write(name, text string) (string, error) {
	file := filepath.Join(r.work, "files", name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return "", err
	}
	return file, os.WriteFile(file, []byte(text), 0o644)
}

// generated returns an entry whose content is text. The names of generated entries must differ.
func (r *release) generated(name, text string) (entry, error) {
	file, err := r.write(name, text)
	return entry{name: name, from: file, mode: 0o644}, err
}

// templated returns an entry whose content is a filled-in template of files.
func (r *release) templated(name, template string, values map[string]string) (entry, error) {
	text, err := r.template(template, values)
	if err != nil {
		return entry{}, err
	}
	return r.generated(name, text)
}

// isOf reports whether a man page or completion belongs to a program.
func isOf(file, program string) bool {
	base, _, _ := strings.Cut(strings.TrimPrefix(file, "_"), ".")
	return base == program || strings.HasPrefix(base, program+"-")
}

// archiveDocs returns the man pages and completions of programs as entries in folder.
func (r *release) archiveDocs(ctx context.Context, folder string, programs []string) ([]entry, error) {
	dir, err := r.docs(ctx)
	if err != nil {
		return nil, err
	}
	var all []entry
	for _, part := range []string{"man", "completions"} {
		files, err := os.ReadDir(filepath.Join(dir, part))
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if !isOfAny(f.Name(), programs) {
				continue
			}
			all = append(all, entry{
				name: path.Join(folder, part, f.Name()), from: filepath.Join(dir, part, f.Name()), mode: 0o644,
			})
		}
	}
	return all, nil
}
