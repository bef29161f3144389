package pluginhost

import "io/fs"

// isExecutable returns true, because on Windows the file name determines whether a file is executable.
func isExecutable(fs.FileInfo) bool { return true }

// copySuffix is the suffix of the copies of added adapters. Windows runs only files with this suffix.
const copySuffix = ".exe"
