package pluginhost

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strings"

	"github.com/hashicorp/go-hclog"
)

// maxLine is the maximum length of a line of an adapter's stderr, in bytes. Longer lines are split.
const maxLine = 16 << 10

// lineLog logs each line of an adapter's stderr. It is not safe for concurrent use.
type lineLog struct {
	log *slog.Logger
	buf bytes.Buffer
}

// Write logs complete lines. It never fails, because an adapter must not block or exit because of its log.
func (l *lineLog) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		line, rest, found := bytes.Cut(p, []byte{'\n'})
		if room := maxLine - l.buf.Len(); len(line) > room {
			l.buf.Write(line[:room])
			p = p[room:]
			l.flush()
			continue
		}
		l.buf.Write(line)
		p = rest
		if found {
			l.flush()
		}
	}
	return n, nil
}

// flush logs the buffered line.
func (l *lineLog) flush() {
	line := bytes.TrimSpace(l.buf.Bytes())
	defer l.buf.Reset()
	if len(line) == 0 {
		return
	}
	level, msg, attrs := parseLine(line)
	l.log.LogAttrs(context.Background(), level, msg, attrs...)
}

// parseLine parses a line of slog's JSON handler. Any other line becomes the message.
func parseLine(line []byte) (slog.Level, string, []slog.Attr) {
	var fields map[string]json.RawMessage
	var msg string
	level := slog.LevelInfo
	if json.Unmarshal(line, &fields) != nil || json.Unmarshal(fields["msg"], &msg) != nil {
		return slog.LevelInfo, string(line), nil
	}
	_ = level.UnmarshalText(bytes.Trim(fields["level"], `"`))
	delete(fields, "msg")
	delete(fields, "level")
	delete(fields, "time")
	attrs := make([]slog.Attr, 0, len(fields))
	for k, v := range fields {
		var text string
		if json.Unmarshal(v, &text) != nil {
			text = string(v)
		}
		attrs = append(attrs, slog.String(k, text))
	}
	return level, msg, attrs
}

// hostLog passes go-plugin's log messages to slog. Most of them are useful only to developers of this package.
type hostLog struct {
	hclog.Logger
	log *slog.Logger
}

func newHostLog(log *slog.Logger) hclog.Logger { return &hostLog{hclog.NewNullLogger(), log} }

func (l *hostLog) Trace(string, ...any)                  {}
func (l *hostLog) Debug(msg string, args ...any)         { l.log.Debug(msg, args...) }
func (l *hostLog) Info(msg string, args ...any)          { l.log.Debug(msg, args...) }
func (l *hostLog) Warn(msg string, args ...any)          { l.log.Debug(msg, args...) }
func (l *hostLog) Error(msg string, args ...any)         { l.log.Info(strings.TrimSpace(msg), args...) }
func (l *hostLog) With(args ...any) hclog.Logger         { return &hostLog{l.Logger, l.log.With(args...)} }
func (l *hostLog) Named(string) hclog.Logger             { return l }
func (l *hostLog) ResetNamed(string) hclog.Logger        { return l }
func (l *hostLog) GetLevel() hclog.Level                 { return hclog.Debug }
func (l *hostLog) Log(_ hclog.Level, m string, a ...any) { l.log.Debug(m, a...) }

var _ io.Writer = (*lineLog)(nil)
