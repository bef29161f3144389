//go:build unix

package programpath

import "github.com/service-dev/service/internal/fileowner"

// isTrusted reports whether no other user can redirect the link path to another program.
func isTrusted(path string) bool { return fileowner.CheckLinks(path) == nil }
