package adapterfile

import (
	"fmt"
	"io/fs"

	"golang.org/x/sys/windows"
)

func ownerOf(path string, _ fs.FileInfo) (string, error) {
	sd, err := windows.GetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, windows.OWNER_SECURITY_INFORMATION)
	if err != nil {
		return "", fmt.Errorf("read the owner of %s: %w", path, err)
	}
	owner, _, err := sd.Owner()
	if err != nil {
		return "", fmt.Errorf("read the owner of %s: %w", path, err)
	}
	if account, domain, _, err := owner.LookupAccount(""); err == nil {
		return domain + `\` + account, nil
	}
	return owner.String(), nil
}
