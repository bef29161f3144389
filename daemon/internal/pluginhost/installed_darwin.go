package pluginhost

import (
	"io/fs"
	"syscall"
	"time"
)

// installedAt returns the time of the last change of the file's inode, which changes when the file is written or moved
// into place.
func installedAt(info fs.FileInfo) time.Time {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.ModTime()
	}
	return time.Unix(st.Ctimespec.Unix())
}
