//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	stalledReaders = 100
	// cutWithin is how soon the backend must disconnect a client that does not read. Its own limit is 30 s.
	cutWithin = 90 * time.Second
	// mostMemory is the maximum memory in KB that the backend may use during a run, and restMemory after it.
	mostMemory, restMemory = 300 << 10, 150 << 10
)

// stallReaders keeps connections to the backend whose clients request a large file and never read it, until ctx ends.
// The backend must close them.
func (s *soak) stallReaders(ctx context.Context) {
	var all sync.WaitGroup
	for n := range stalledReaders {
		all.Go(func() {
			for ctx.Err() == nil {
				if outcome := s.stallOnce(ctx, n); outcome != "" {
					s.results.answered("reader that stalls", outcome)
				} else {
					pause(ctx, time.Second)
				}
			}
		})
	}
	all.Wait()
}

// stallOnce requests a file, compressed or not, and returns how the connection ended. The outcome is empty if the
// backend did not accept the connection or was killed, or if ctx ended. The kernel does not close the connections of
// a killed backend until it gives up sending the rest.
func (s *soak) stallOnce(ctx context.Context, n int) (outcome string) {
	kills := s.backend.kills.Load()
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", strings.TrimPrefix(s.backend.url, "http://"))
	if err != nil {
		return ""
	}
	defer conn.Close()
	encoding := []string{"gzip", "identity"}[n%2]
	request := "GET /assets/simulator.wasm HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: " + encoding + "\r\n\r\n"
	if _, err := io.WriteString(conn, request); err != nil {
		return ""
	}
	for since := time.Now(); time.Since(since) < cutWithin; pause(ctx, time.Second) {
		switch open, err := isOpen(conn); {
		case ctx.Err() != nil || s.backend.kills.Load() != kills:
			return ""
		case err != nil:
			return err.Error()
		case !open:
			return ok
		}
	}
	s.results.report("a client that does not read is still connected after %s", cutWithin)
	return "not disconnected"
}

// isOpen reports, without reading from a connection, whether the other side has not closed it.
func isOpen(conn net.Conn) (open bool, err error) {
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return false, err
	}
	var info *unix.TCPInfo
	if controlErr := raw.Control(func(fd uintptr) {
		//nolint:gosec // Descriptors are small.
		info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	}); controlErr != nil || err != nil {
		return false, err
	}
	const established = 1 // TCP_ESTABLISHED of Linux
	return info.State == established, nil
}

// watchMemory measures the backend's memory until ctx ends. It notes the maximum and checks it against the limits.
func (s *soak) watchMemory(ctx context.Context) {
	most := 0
	for ; ctx.Err() == nil; pause(ctx, time.Second) {
		for _, pid := range s.pids("service-backend") {
			most = max(most, residentMemory(pid))
		}
	}
	s.results.note("most memory of the backend", fmt.Sprintf("%d MB, with %d clients that do not read", most>>10,
		stalledReaders))
	if most > mostMemory {
		s.results.report("the backend took %d MB of memory, want at most %d MB", most>>10, mostMemory>>10)
	}
}

// residentMemory returns the memory of a process in KB, or 0 if it has ended.
func residentMemory(pid int) (kb int) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	_, _ = fmt.Sscan(rest, &kb)
	return kb
}
