package glasses

import _ "embed"

// Protocol is PROTOCOL.md, for the bundled documentation.
//
//go:embed PROTOCOL.md
var Protocol string
