package app

// closeOnExec does nothing: handles are inherited only if they are listed explicitly.
func closeOnExec(uintptr) {}
