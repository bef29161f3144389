//go:build !linux

package opener

var unitCommand = platformCommand
