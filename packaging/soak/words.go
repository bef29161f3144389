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

// maxWords bounds in bytes what is remembered of the daemons' last words.
const maxWords = 16 << 20

// words is what daemons wrote to serviced.stderr, also what a later start cut off: that file is emptied when it is large.
type words struct {
	path string
	at   int64 // how much of the file is read
	text []byte
}

// gather reads on.
func (w *words) gather() {
	f, err := os.Open(w.path)
	if err != nil {
		return // nobody wrote yet
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return
	}
	if info.Size() < w.at { // it was emptied
		w.at = 0
	}
	more, _ := io.ReadAll(io.NewSectionReader(f, w.at, info.Size()-w.at))
	w.at += int64(len(more))
	w.text = append(w.text, more[:min(len(more), maxWords-len(w.text))]...)
}

// listen gathers until ctx ends.
func (w *words) listen(ctx context.Context) {
	for ctx.Err() == nil {
		w.gather()
		pause(ctx, 200*time.Millisecond)
	}
}

// lastWords looks for what only a daemon that broke writes: a panic, a fatal error, a data race.
func (s *soak) lastWords() {
	s.words.gather()
	for _, word := range []string{"panic:", "fatal error:", "WARNING: DATA RACE"} {
		if n := strings.Count(string(s.words.text), word); n > 0 {
			s.ledger.find("daemons ended or went on with %q, %d times: see serviced.stderr", word, n)
		}
	}
	s.ledger.note("daemons' last words", fmt.Sprintf("%d bytes", len(s.words.text)))
}

// keepLogs saves what the daemon and the backend logged, for whoever looks into the findings.
func (s *soak) keepLogs() {
	s.words.gather()
	keep("serviced.stderr", s.words.text)
	for _, path := range []string{filepath.Join(s.state, "log", "serviced.log"), s.backend.logs} {
		if data, err := os.ReadFile(path); err == nil {
			keep(filepath.Base(path), data)
		}
	}
}
