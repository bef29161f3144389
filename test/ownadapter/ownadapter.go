// Package ownadapter builds the adapter from the documentation page "adapters" as a user would: in a separate module
// that uses only what this repository publishes.
package ownadapter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/service-dev/service/docs"
)

const self = "github.com/service-dev/service"

// Source returns the program in the documentation.
func Source() (string, error) {
	for _, p := range docs.Pages() {
		if _, after, ok := strings.Cut(p.Markdown, "```go adapter\n"); ok {
			source, _, _ := strings.Cut(after, "\n```")
			return source + "\n", nil
		}
	}
	return "", errors.New("no page has the code of an adapter")
}

// Build builds source together with further files, by name, and returns the path of the program. It needs no network.
// root is this repository, and dir an empty folder for the module and the program.
func Build(root, dir, source string, files map[string]string) (program string, err error) {
	root, err = filepath.Abs(root)
	if err != nil {
		return "", err
	}
	gomod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	sums, sumErr := os.ReadFile(filepath.Join(root, "go.sum"))
	if err := errors.Join(err, sumErr); err != nil {
		return "", err
	}
	// The module has the same requirements as ours, but not our tools.
	text := strings.Replace(string(gomod), "module "+self+"\n", "module example.com/glasses\n", 1)
	text = regexp.MustCompile(`(?ms)^tool (\(.*?^\)|[^\n]*)\n`).ReplaceAllString(text, "")
	text += fmt.Sprintf("\nrequire %s v0.0.0\n\nreplace %s => %s\n", self, self, root)
	all := map[string]string{"main.go": source, "go.mod": text, "go.sum": string(sums)}
	for name, content := range files {
		all[name] = content
	}
	for name, content := range all {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return "", err
		}
	}
	program = filepath.Join(dir, "my-glasses")
	cmd := exec.CommandContext(context.Background(), "go", "build", "-o", program, ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the documented adapter: %w\n%s", err, out)
	}
	return program, nil
}
