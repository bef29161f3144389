package ratelog

import (
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestWarn(t *testing.T) {
	var out strings.Builder
	at := time.Unix(1_000, 0)
	l := New(slog.New(slog.NewTextHandler(&out, nil)), time.Minute, func() time.Time { return at })
	written := func(what string, lines int, holds ...string) {
		t.Helper()
		text := out.String()
		out.Reset()
		if strings.Count(text, "\n") != lines {
			t.Errorf("%s: logged %q, want %d lines", what, text, lines)
		}
		for _, word := range holds {
			if !strings.Contains(text, word) {
				t.Errorf("%s: logged %q, want %s in it", what, text, word)
			}
		}
	}
	for i := range 100 {
		l.Warn("full", "n", i)
	}
	written("first message", 1, "n=0")
	l.Warn("another")
	written("another message", 1)
	at = at.Add(time.Minute)
	l.Warn("full", "n", 100)
	written("later", 1, "n=100", "leftOut=99")
	at = at.Add(-time.Hour)
	l.Warn("full", "n", 101)
	written("the clock was set back", 1, "n=101")
}
