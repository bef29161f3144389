//go:build !linux

package sqlstore_test

func useMemory() {}
