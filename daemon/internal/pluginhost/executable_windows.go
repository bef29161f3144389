package pluginhost

import "io/fs"

// isExecutable returns true: on Windows the name of a file decides.
func isExecutable(fs.FileInfo) bool { return true }
