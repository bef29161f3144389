//go:build race

package sqlstore_test

// slow says that the race detector watches: SQLite, all of it Go, is then twenty times slower.
const slow = true
