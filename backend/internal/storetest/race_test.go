//go:build race

package storetest

// slow is set under the race detector, which makes SQLite, here pure Go, twenty times slower.
const slow = true
