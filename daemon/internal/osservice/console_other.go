//go:build !windows

package osservice

func leaveConsole() {}
