package tools

import "testing"

// BenchmarkNew measures how much time building the schemas adds to every start of the daemon.
func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		New(Options{})
	}
}
