// Package webbluetooth is the carrier for pages. It contains a script that opens the links of a driver with the
// browser's Bluetooth. A page imports the script and forwards the events of its links to the driver, wherever the
// driver runs.
package webbluetooth

import _ "embed"

// Script is the JavaScript module bluetooth.js. It uses the problem codes of package driver.
//
//go:embed bluetooth.js
var Script []byte
