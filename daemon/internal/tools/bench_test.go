package tools

import "testing"

// BenchmarkNew measures the time that building the schemas adds to every start of the daemon.
func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		New(Options{})
	}
}
