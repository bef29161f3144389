package osservice

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/internal/problem"
)

// TestInstall_RestoresWhatRanBeforeAFailedUpdate covers a service manager that refuses the service of a new version,
// and a user who interrupts the update. Commands under a cancelled context fail, because their processes are killed.
func TestInstall_RestoresWhatRanBeforeAFailedUpdate(t *testing.T) {
	d := here(t)
	older := d
	older.program = filepath.Join(d.home, "older")
	if err := os.WriteFile(older.program, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(d.home, ".config/systemd/user/serviced.socket")
	failsOnce := func(f *fake, start string, interrupt func()) runner {
		failed := false
		return func(ctx context.Context, program string, args ...string) outcome {
			o := f.run(ctx, program, args...)
			if ctx.Err() != nil {
				return outcome{code: -1, errs: "killed"}
			}
			if !failed && strings.HasPrefix(strings.Join(args, " "), start) {
				failed = true
				interrupt()
				return outcome{code: 1, errs: "not this one"}
			}
			return o
		}
	}
	cases := map[string]struct {
		fails   string
		answers map[string]outcome
		manager func(d daemon, run runner) (m manager, f files)
		starts  string
	}{
		"systemd": {
			fails: "--user --quiet enable",
			answers: map[string]outcome{"systemctl --user show --property=Id": {
				out: "Id=serviced.socket\nActiveState=active\nLoadState=loaded\nFragmentPath=" + socket +
					"\n\nId=serviced.service\nActiveState=inactive\n",
			}},
			manager: func(d daemon, run runner) (manager, files) {
				s := newSystemd(d, "", run)
				return s, s.files()
			},
			starts: "systemctl --user --quiet restart serviced.socket",
		},
		"launchd": {
			fails:   "kickstart",
			answers: map[string]outcome{},
			manager: func(d daemon, run runner) (manager, files) {
				l := newLaunchd(d, 501, run)
				l.pause = 0
				return l, l.files()
			},
			starts: "launchctl kickstart " + launchdTarget,
		},
	}
	for _, variant := range []string{"systemd", "systemd, interrupted", "launchd", "launchd, interrupted"} {
		t.Run(variant, func(t *testing.T) {
			name, how, _ := strings.Cut(variant, ", ")
			c := cases[name]
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			interrupt := func() {}
			if how != "" {
				interrupt = cancel
			}
			f := &fake{answers: maps.Clone(c.answers)}
			run := failsOnce(f, c.fails, interrupt)
			if name == "launchd" {
				run = loading(f, run)
			}
			_, old := c.manager(older, run)
			if _, _, err := old.write(); err != nil {
				t.Fatal(err)
			}
			m, _ := c.manager(d, run)
			_, err := m.install(ctx)
			refusedWith(t, err, problem.CodeServiceManagerRefused, "not this one")
			contents, err := old.read()
			for _, one := range old.list {
				if contents[one.path] != one.content {
					t.Errorf("%s: %q, %v", one.path, contents[one.path], err)
				}
			}
			started := -1
			for i, asked := range f.asked {
				if asked == c.starts {
					started = i
				}
			}
			refuses := func(asked string) bool { return strings.Contains(asked, c.fails) }
			if started <= slices.IndexFunc(f.asked, refuses) {
				t.Errorf("the old service was not started again: %q", f.asked)
			}
		})
	}
}

// loading returns a runner that responds like launchd while it unloads an agent and loads it again, unless run refuses
// the kickstart.
func loading(f *fake, run runner) runner {
	f.answers["launchctl print"] = running
	return func(ctx context.Context, program string, args ...string) outcome {
		o := run(ctx, program, args...)
		switch {
		case args[0] == "bootout":
			f.answers["launchctl print"] = notLoaded
		case args[0] == "kickstart" && o.code == 0:
			f.answers["launchctl print"] = running
		}
		return o
	}
}
