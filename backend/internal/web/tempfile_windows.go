package web

import (
	"cmp"
	"crypto/rand"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// openTempFile opens a file in dir, or in the user's own folder if dir is "". Other users cannot open it, and it
// disappears when it is closed or the process ends.
func openTempFile(dir string) (*os.File, error) {
	path := filepath.Join(cmp.Or(dir, os.TempDir()), ".export-"+rand.Text())
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, &os.PathError{Op: "create", Path: path, Err: err}
	}
	handle, err := windows.CreateFile(name, windows.GENERIC_READ|windows.GENERIC_WRITE, 0, nil, windows.CREATE_NEW,
		windows.FILE_ATTRIBUTE_TEMPORARY|windows.FILE_FLAG_DELETE_ON_CLOSE, 0)
	if err != nil {
		return nil, &os.PathError{Op: "create", Path: path, Err: err}
	}
	return os.NewFile(uintptr(handle), path), nil
}
