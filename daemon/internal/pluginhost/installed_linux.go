package pluginhost

import (
	"io/fs"
	"syscall"
	"time"
)

// installedAt returns when the file got its content or its place: the last change of its inode.
func installedAt(info fs.FileInfo) time.Time {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.ModTime()
	}
	return time.Unix(st.Ctim.Unix())
}
