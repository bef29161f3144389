package glasses

import _ "embed"

// Protocol is the text of PROTOCOL.md, for the bundled documentation.
//
//go:embed PROTOCOL.md
var Protocol string
