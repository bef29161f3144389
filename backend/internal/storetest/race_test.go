//go:build race

package storetest

// slow is set under the race detector, which makes the pure-Go SQLite twenty times slower.
const slow = true
