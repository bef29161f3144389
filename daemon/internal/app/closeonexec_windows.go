package app

// closeOnExec does nothing: Windows inherits only the handles that are listed explicitly.
func closeOnExec(uintptr) {}

// closeInherited does nothing: Windows inherits only the handles that are listed explicitly.
func closeInherited() {}
