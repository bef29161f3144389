package osservice

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/service-dev/service/internal/problem"
)

// A path that contains a control character or invalid UTF-8 is refused for each manager before any file is written or
// any command is run.
func TestPathsThatNoFileCanHoldAreRefused(t *testing.T) {
	managers := map[string]func(d daemon, run runner) manager{
		"systemd":        func(d daemon, run runner) manager { return newSystemd(d, "", run) },
		"launchd":        func(d daemon, run runner) manager { return newLaunchd(d, 501, run) },
		"task scheduler": func(d daemon, run runner) manager { return newScheduler(d, `DESK\ada`, run) },
	}
	places := map[string]func(d *daemon) *string{
		"state directory": func(d *daemon) *string { return &d.paths.Dir },
		"control socket":  func(d *daemon) *string { return &d.paths.Control },
		"MCP socket":      func(d *daemon) *string { return &d.paths.MCP },
		"program":         func(d *daemon) *string { return &d.program },
	}
	for system, open := range managers {
		for place, of := range places {
			odds := []string{"\nExecStartPre=/bin/evil", "\r", "\x00", "\x1b[2J", "\x7f", "\u0085", "\u2028", "\xff"}
			for _, odd := range odds {
				t.Run(fmt.Sprintf("%s, %s, %q", system, place, odd), func(t *testing.T) {
					d := here(t)
					*of(&d) += odd
					f := &fake{}
					_, err := open(d, f.run).install(t.Context())
					refusedWith(t, err, problem.CodeServiceUnsupported, place)
					if err != nil && strings.ContainsAny(err.Error(), "\n\r\x00\x1b\x7f") {
						t.Errorf("the refusal quotes the character unescaped: %q", err)
					}
					if len(f.asked) > 0 {
						t.Errorf("asked %v", f.asked)
					}
					if entries, err := os.ReadDir(d.home); err != nil || len(entries) != 1 {
						t.Errorf("files were written: %v, %v", entries, err)
					}
				})
			}
		}
	}
}

// The Task Scheduler expands %NAME% and $(NAME) in a program's path, and cannot escape them.
func TestTaskWithVariablesInItsPathIsRefused(t *testing.T) {
	for _, program := range []string{`C:\%TEMP%\serviced.exe`, `C:\$(Arg0)\serviced.exe`} {
		d := here(t)
		d.program = program
		_, err := newScheduler(d, `DESK\ada`, (&fake{}).run).install(t.Context())
		refusedWith(t, err, problem.CodeServiceUnsupported, program)
	}
	d := here(t)
	d.program += " 50%"
	if err := plainTask(d); err != nil {
		t.Errorf("a path with one percent sign: %v, want no error", err)
	}
}
