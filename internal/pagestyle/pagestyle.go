// Package pagestyle contains the style of pages that are saved as a single file: scenario reports and shared sessions.
package pagestyle

import _ "embed" // for Report

// Report is the style sheet that these pages share. Each page adds its own rules.
//
//go:embed report.css
var Report string
