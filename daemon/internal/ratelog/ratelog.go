// Package ratelog keeps a persistent condition, such as a full disk or a refused client, from filling the log.
package ratelog

import (
	"log/slog"
	"sync"
	"time"
)

// Logger writes a warning at most once per interval. The warning includes the number of identical ones suppressed since
// the last. Logger is safe for concurrent use.
type Logger struct {
	log   *slog.Logger
	every time.Duration
	now   func() time.Time

	mu       sync.Mutex
	messages map[string]*suppression
}

// suppression is the state of one message.
type suppression struct {
	until   time.Time
	leftOut int
}

// New returns a Logger that writes each message at most once in the interval every.
func New(log *slog.Logger, every time.Duration, now func() time.Time) *Logger {
	return &Logger{log: log, every: every, now: now, messages: map[string]*suppression{}}
}

// Warn logs message, which must be a constant, with its attributes. Messages that differ only in attributes count as
// identical.
func (l *Logger) Warn(message string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	s := l.messages[message]
	if s == nil {
		s = &suppression{}
		l.messages[message] = s
	}
	if now.Before(s.until) && s.until.Sub(now) <= l.every { // the second condition is false if the clock was set back
		s.leftOut++
		return
	}
	if s.leftOut > 0 {
		args = append(args[:len(args):len(args)], "leftOut", s.leftOut)
	}
	s.until, s.leftOut = now.Add(l.every), 0
	l.log.Warn(message, args...)
}
