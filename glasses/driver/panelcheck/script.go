package panelcheck

import _ "embed" // for Script

// Script is the JavaScript module panelcheck.js, which asks the questions on a page.
//
//go:embed panelcheck.js
var Script []byte
