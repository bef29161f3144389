package fileowner

import (
	"fmt"
	"io/fs"
	"unsafe"

	"golang.org/x/sys/windows"
)

// ancestorsMatter is false. Directories inherit access lists, and every user's right to create a directory in C:\ does
// not apply to existing directories.
const ancestorsMatter = false

// checkAccess refuses a path that does not belong to this user, the administrators or the system, or that a group of
// all users may change.
func checkAccess(path string, _ fs.FileInfo, _ bool) error {
	sd, err := windows.GetNamedSecurityInfo(path, windows.SE_FILE_OBJECT,
		windows.OWNER_SECURITY_INFORMATION|windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		return fmt.Errorf("read the access list of %s: %w", path, err)
	}
	owner, _, err := sd.Owner()
	if err != nil {
		return fmt.Errorf("read the owner of %s: %w", path, err)
	}
	me, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return fmt.Errorf("read the user of this process: %w", err)
	}
	if !owner.Equals(me.User.Sid) && !isTrusted(owner) {
		return &Error{fmt.Sprintf("%s belongs to %s, who could replace it", path, owner),
			`icacls "` + path + `" /setowner Administrators`}
	}
	list, _, err := sd.DACL()
	if err != nil {
		return fmt.Errorf("read the access list of %s: %w", path, err)
	}
	if list == nil {
		return &Error{path + " can be written by every user", `icacls "` + path + `" /reset`}
	}
	for i := range uint32(list.AceCount) {
		var ace *windows.ACCESS_ALLOWED_ACE
		if err := windows.GetAce(list, i, &ace); err != nil {
			return fmt.Errorf("read the access list of %s: %w", path, err)
		}
		if ace.Header.AceType != windows.ACCESS_ALLOWED_ACE_TYPE || ace.Header.AceFlags&windows.INHERIT_ONLY_ACE != 0 ||
			ace.Mask&mayWrite == 0 {
			continue
		}
		if sid := (*windows.SID)(unsafe.Pointer(&ace.SidStart)); isAllUsers(sid) {
			return &Error{fmt.Sprintf("%s can be written by %s, which is every user", path, sid),
				`icacls "` + path + `" /inheritance:d /remove:g *` + sid.String()}
		}
	}
	return nil
}

// mayWrite contains the rights to change a file, to create a file in a directory, and to acquire such a right.
const mayWrite = windows.FILE_WRITE_DATA | windows.FILE_APPEND_DATA | windows.DELETE | windows.WRITE_DAC |
	windows.WRITE_OWNER | windows.GENERIC_WRITE | windows.GENERIC_ALL

// trustedInstaller owns the files installed by Windows itself.
const trustedInstaller = "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464"

func isTrusted(sid *windows.SID) bool {
	return sid.IsWellKnown(windows.WinBuiltinAdministratorsSid) || sid.IsWellKnown(windows.WinLocalSystemSid) ||
		sid.String() == trustedInstaller
}

func isAllUsers(sid *windows.SID) bool {
	return sid.IsWellKnown(windows.WinWorldSid) || sid.IsWellKnown(windows.WinAuthenticatedUserSid) ||
		sid.IsWellKnown(windows.WinBuiltinUsersSid)
}
