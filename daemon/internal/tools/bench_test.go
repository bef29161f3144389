package tools

import "testing"

// BenchmarkNew measures what the schemas cost at every start of the daemon.
func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		New(Options{})
	}
}
