package tools

// Docs is the bundled documentation.
type Docs interface{}
