package programpath

// isTrusted returns true. On Windows, creating a symbolic link to a file needs a privilege, and programs are installed
// in directories that belong to their user or to the administrators.
func isTrusted(string) bool { return true }
