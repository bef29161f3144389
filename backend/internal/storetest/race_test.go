//go:build race

package storetest

// slow reports whether the race detector watches: SQLite, all of it Go, is then twenty times slower.
const slow = true
