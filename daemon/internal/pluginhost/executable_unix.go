//go:build unix

package pluginhost

import "io/fs"

// isExecutable reports whether somebody may run the file.
func isExecutable(info fs.FileInfo) bool { return info.Mode()&0o111 != 0 }

// copySuffix ends the names of the copies of added adapters.
const copySuffix = ""
