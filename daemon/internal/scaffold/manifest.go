package scaffold

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"path"
	"slices"
)

// Names of files in the module's directory. The key file contains a secret.
const (
	ManifestName = "service.manifest.json"
	KeyName      = "service.key"
	PageName     = "connect.html" // the page on which the app's user connects the glasses
	ignoreName   = ".gitignore"
)

// ProjectFile is the file at the root of the app's project that contains the app ID. Sessions look for it in the
// working directory and its parents.
const ProjectFile = "service.json"

// Manifest lists the files generated into a directory, so that manual changes can be detected.
type Manifest struct {
	Manifest int      `json:"manifest"` // the version of this format: 1
	Project  string   `json:"project"`
	Modules  []Module `json:"modules"`        // one per language
	Page     *Sum     `json:"page,omitempty"` // the connection page, which belongs to no language
}

// Module is one generated module.
type Module struct {
	Language     string   `json:"language"`
	Version      string   `json:"version"`
	Capabilities []string `json:"capabilities"`
	Files        []Sum    `json:"files"`
}

// Sum is a generated file and the SHA-256 of its bytes, in lower-case hex.
type Sum struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// parseManifest parses a manifest. It rejects file names that lead out of the directory.
func parseManifest(data []byte) (Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(data, &m); err != nil || m.Manifest != 1 {
		return Manifest{}, errors.New("must be a version 1 manifest")
	}
	for _, module := range m.Modules {
		for _, f := range module.Files {
			if f.Name != path.Base(f.Name) || f.Name == "." || f.Name == ".." {
				return Manifest{}, errors.New("must not list a file outside its directory")
			}
		}
	}
	if m.Page != nil && m.Page.Name != PageName {
		return Manifest{}, errors.New("must not list a connection page other than connect.html")
	}
	return m, nil
}

func (m Manifest) sum(name string) string {
	for _, module := range m.Modules {
		for _, f := range module.Files {
			if f.Name == name {
				return f.SHA256
			}
		}
	}
	return ""
}

// withModule returns the manifest with module, which replaces a module of the same language.
func (m Manifest) withModule(module Module) Manifest {
	m.Modules = append(slices.DeleteFunc(slices.Clone(m.Modules),
		func(old Module) bool { return old.Language == module.Language }), module)
	slices.SortFunc(m.Modules, func(a, b Module) int {
		return slices.Index(Languages(), a.Language) - slices.Index(Languages(), b.Language)
	})
	return m
}

func (m Manifest) encode() []byte {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil // cannot happen: strings and numbers can always be encoded
	}
	return append(data, '\n')
}
