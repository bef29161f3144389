package tools

// Scaffold generates, checks and explains the modules by which an app connects to its glasses.
type Scaffold interface{}
