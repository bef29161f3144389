//go:build !race

package sqlstore_test

const slow = false
