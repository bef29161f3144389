package pluginhost

import (
	"io/fs"
	"syscall"
	"time"
)

// installedAt returns when the file's inode last changed, for example because the file was written or moved into place.
func installedAt(info fs.FileInfo) time.Time {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.ModTime()
	}
	return time.Unix(st.Ctim.Unix())
}
