package main

import (
	"context"
	"embed"
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"
	"time"
)

//go:embed files/manifests
var manifestFiles embed.FS

// manifests are the descriptions of this release for package managers and registries that download it. There are none
// without a download address.
func manifests(r *release) []artefact {
	if r.releaseURL == "" {
		return nil
	}
	files, _ := manifestFiles.ReadDir("files/manifests")
	var all []artefact
	for _, f := range files {
		all = append(all, artefact{f.Name(), func(_ context.Context, r *release, file string) error {
			template, err := manifestFiles.ReadFile(path.Join("files/manifests", f.Name()))
			if err != nil {
				return err
			}
			text, err := r.fillManifest(string(template))
			if err != nil {
				return err
			}
			return os.WriteFile(file, []byte(text), 0o644)
		}})
	}
	return all
}

// placeholder matches {{name}} and {{name_sha256}}, which is the checksum of the artefact with that name.
var placeholder = regexp.MustCompile(`{{(\w+)}}`)

// fillManifest replaces the placeholders of a template.
func (r *release) fillManifest(template string) (text string, err error) {
	windows := func(arch string) string { return archiveFolder(r, toolkit, target{"windows", arch}) }
	values := map[string]string{
		"version": r.version, "description": description, "homepage": homepage, "vendor": vendor, "commit": r.commit,
		"built_at": r.time.Format(time.RFC3339), "url": strings.TrimSuffix(r.releaseURL, "/"), "source": sourceName(r),
		"windows_amd64": windows("amd64"), "windows_arm64": windows("arm64"),
		"mcpb_darwin": mcpbName(r, "darwin"), "mcpb_win32": mcpbName(r, "win32"),
	}
	text = placeholder.ReplaceAllStringFunc(template, func(word string) string {
		name := placeholder.FindStringSubmatch(word)[1]
		artefact, isSum := strings.CutSuffix(name, "_sha256")
		value, ok := values[artefact]
		if !ok && err == nil {
			err = fmt.Errorf("a manifest has the unknown placeholder %s", word)
		}
		if ok && isSum {
			if strings.HasPrefix(artefact, "windows_") {
				value += ".zip"
			}
			var sumErr error
			if value, sumErr = r.checksum(value); sumErr != nil && err == nil {
				err = sumErr
			}
		}
		return value
	})
	return text, err
}
