//go:build unix

package adapterfile

import (
	"fmt"
	"io/fs"
	"os/user"
	"strconv"
	"syscall"
)

func ownerOf(path string, info fs.FileInfo) (string, error) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", fmt.Errorf("the owner of %s is unknown", path)
	}
	id := strconv.FormatUint(uint64(st.Uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username, nil
	}
	return id, nil
}
