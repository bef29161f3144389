//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// maxStderr is the maximum amount of the daemons' stderr that is kept, in bytes.
const maxStderr = 16 << 20

// stderrLog holds the text that daemons wrote to serviced.stderr, including text that a later start truncated.
type stderrLog struct {
	path string
	at   int64 // offset up to which the file was read
	text []byte
}

// readOn reads the text added since the last call.
func (w *stderrLog) readOn() {
	f, err := os.Open(w.path)
	if err != nil {
		return // nothing was written yet
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return
	}
	if info.Size() < w.at { // it was truncated
		w.at = 0
	}
	more, _ := io.ReadAll(io.NewSectionReader(f, w.at, info.Size()-w.at))
	w.at += int64(len(more))
	w.text = append(w.text, more[:min(len(more), maxStderr-len(w.text))]...)
}

// follow reads until ctx ends.
func (w *stderrLog) follow(ctx context.Context) {
	for ctx.Err() == nil {
		w.readOn()
		pause(ctx, 200*time.Millisecond)
	}
}

// checkStderr reports a panic, a fatal error or a data race as a finding.
func (s *soak) checkStderr() {
	s.stderrLog.readOn()
	for _, word := range []string{"panic:", "fatal error:", "WARNING: DATA RACE"} {
		if n := strings.Count(string(s.stderrLog.text), word); n > 0 {
			s.results.report("serviced.stderr contains %q %d times", word, n)
		}
	}
	s.results.note("daemons' last words", fmt.Sprintf("%d bytes", len(s.stderrLog.text)))
}

// keepLogs saves the logs of the daemon and the backend.
func (s *soak) keepLogs() {
	s.stderrLog.readOn()
	keep("serviced.stderr", s.stderrLog.text)
	for _, path := range []string{filepath.Join(s.state, "log", "serviced.log"), s.backend.logs} {
		if data, err := os.ReadFile(path); err == nil {
			keep(filepath.Base(path), data)
		}
	}
}
