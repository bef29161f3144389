//go:build !linux && !darwin

package pluginhost

import (
	"io/fs"
	"time"
)

// installedAt returns when the file was last written.
func installedAt(info fs.FileInfo) time.Time { return info.ModTime() }
