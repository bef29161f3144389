// Package pagestyle holds the style of the pages that are saved as one file: reports of scenarios and shared sessions.
package pagestyle

import _ "embed" // for Report

// Report is the style sheet that these pages share. Each adds its own rules.
//
//go:embed report.css
var Report string
