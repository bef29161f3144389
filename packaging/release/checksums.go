package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// writeChecksums writes the checksums of all earlier artefacts, in the format of sha256sum.
func writeChecksums(_ context.Context, r *release, file string) error {
	files, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, f := range files {
		if f.Name() == filepath.Base(file) {
			continue
		}
		sum, err := r.checksum(f.Name())
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%s  %s\n", sum, f.Name())
	}
	return os.WriteFile(file, []byte(lines.String()), 0o644)
}
