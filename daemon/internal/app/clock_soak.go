//go:build soak && unix

package app

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// soakDir is the directory through which the soak test (test/soak) shifts this build's clock and reads its goroutine
// count. The linker sets it; shipped builds contain neither this file nor the variable.
var soakDir string

// systemClock returns the system's time plus the number of seconds in the file "clock". It shifts the wall clock and
// the monotonic reading, so durations jump too. This resembles a suspended machine and is a harder test than setting
// only the wall clock.
func systemClock() time.Time {
	now := time.Now()
	data, err := os.ReadFile(filepath.Join(soakDir, "clock"))
	if err != nil {
		return now
	}
	seconds, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		return now
	}
	return now.Add(time.Duration(seconds) * time.Second)
}

// On SIGUSR1 the process writes its goroutine count and stacks to "goroutines.<pid>".
func init() {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	go func() {
		for range asked {
			path := filepath.Join(soakDir, "goroutines."+strconv.Itoa(os.Getpid()))
			stacks := make([]byte, 4<<20)
			stacks = stacks[:runtime.Stack(stacks, true)]
			text := fmt.Sprintf("%d\n%s\n", runtime.NumGoroutine(), stacks)
			if os.WriteFile(path+".new", []byte(text), 0o600) == nil {
				_ = os.Rename(path+".new", path)
			}
		}
	}()
}
