package pluginhost

import "io/fs"

// isExecutable returns true: on Windows the name of a file decides.
func isExecutable(fs.FileInfo) bool { return true }

// copySuffix ends the names of the copies of added adapters. Windows runs no file without it.
const copySuffix = ".exe"
