// Package webbluetooth is the carrier for pages: a script that opens the links of a driver with the browser's
// Bluetooth. A page imports the script and passes what happens to its links to wherever the driver runs.
package webbluetooth

import _ "embed"

// Script is the JavaScript module bluetooth.js. Its problem codes are those of package driver.
//
//go:embed bluetooth.js
var Script []byte
