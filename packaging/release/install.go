package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"strings"
)

//go:embed files/install.sh
var installTemplate string

// writeInstallScript writes install.sh, which contains this version, its download address and its public key.
func writeInstallScript(_ context.Context, r *release, file string) error {
	script, err := stampInstallScript(r.version, r.releaseURL, r.releaseKey)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(script), 0o755)
}

// stampInstallScript sets the variables at the top of install.sh. An empty url or key stays empty.
func stampInstallScript(version, url, key string) (string, error) {
	script := installTemplate
	for name, value := range map[string]string{
		"VERSION": version, "RELEASE_URL": strings.TrimSuffix(url, "/"), "RELEASE_KEY": key,
	} {
		if strings.ContainsAny(value, "'\n") {
			return "", fmt.Errorf("%s must not contain a quote or a line break: %q", name, value)
		}
		empty := "\n" + name + "=''\n"
		if strings.Count(script, empty) != 1 {
			return "", fmt.Errorf("files/install.sh has no line %s=''", name)
		}
		script = strings.Replace(script, empty, "\n"+name+"='"+value+"'\n", 1)
	}
	return script, nil
}
