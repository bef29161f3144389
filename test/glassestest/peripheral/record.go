package peripheral

import "fmt"

// maxViolations limits the violations in a Record.
const maxViolations = 256

// Record holds a client's protocol violations.
type Record struct {
	violations, grave []string
}

// Add records a violation at a time.
func (r *Record) Add(now int64, format string, args ...any) {
	add(&r.violations, now, format, args...)
}

// AddGrave records a violation that could harm the device or change its owner's settings.
func (r *Record) AddGrave(now int64, format string, args ...any) {
	add(&r.grave, now, format, args...)
	add(&r.violations, now, "grave: "+format, args...)
}

func add(to *[]string, now int64, format string, args ...any) {
	if len(*to) < maxViolations {
		*to = append(*to, fmt.Sprintf("%d ms: %s", now, fmt.Sprintf(format, args...)))
	}
}

// Violations returns the first 256 violations, including grave ones, which start with "grave: ".
func (r *Record) Violations() []string { return r.violations }

// Grave returns the first 256 grave violations.
func (r *Record) Grave() []string { return r.grave }
