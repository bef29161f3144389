//go:build unix

package pluginhost

import "io/fs"

// isExecutable reports whether the file is executable for any user.
func isExecutable(info fs.FileInfo) bool { return info.Mode()&0o111 != 0 }

// copySuffix is the suffix of the copies of added adapters.
const copySuffix = ""
