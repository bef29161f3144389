package programpath

// isTrusted returns true: a symbolic link to a file needs a privilege on Windows, and the folders in which programs are
// installed belong to their user or to the administrators.
func isTrusted(string) bool { return true }
