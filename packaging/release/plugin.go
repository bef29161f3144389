package main

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// pluginFiles is one directory that is both a plugin for Claude Code, Codex and every client of Agent Plugins 1.0,
// and an extension for Gemini CLI. The marketplace around it is for clients that install plugins from marketplaces.
//
//go:embed all:files/agent-plugin
var pluginFiles embed.FS

// description describes the service for places that allow at most 100 characters.
const description = "Build apps for smart glasses and prove that they work, on simulated glasses, without an account."

// writePlugin writes the plugin directory as a zip.
func writePlugin(_ context.Context, r *release, file string) error {
	const root = "files/agent-plugin"
	var entries []entry
	err := fs.WalkDir(pluginFiles, root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := pluginFiles.ReadFile(name)
		if err != nil {
			return err
		}
		inside := strings.TrimPrefix(name, root+"/")
		text := r.fill(string(data))
		if path.Ext(name) == ".json" && !json.Valid([]byte(text)) {
			return fmt.Errorf("%s is not JSON", inside)
		}
		e, err := r.generated("service-plugin/"+inside, text)
		entries = append(entries, e)
		return err
	})
	if err != nil {
		return err
	}
	return r.writeZip(file, entries)
}

// fill replaces the placeholders of a template.
func (r *release) fill(template string) string {
	return strings.NewReplacer(
		"{{version}}", r.version, "{{description}}", description, "{{homepage}}", homepage, "{{vendor}}", vendor,
	).Replace(template)
}
