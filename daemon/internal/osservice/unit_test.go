package osservice

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/service-dev/service/internal/rendezvous"
)

// sample is a daemon with simple paths.
var sample = daemon{
	name: "serviced", program: "/opt/service/bin/serviced", home: "/home/ada", usual: true,
	paths: rendezvous.Paths{
		Dir: "/home/ada/.service", Run: "/home/ada/.service/run", Sockets: "/home/ada/.service/run",
		Control: "/home/ada/.service/run/control.sock", MCP: "/home/ada/.service/run/mcp.sock",
	},
}

// golden compares got with a file of testdata; UPDATE_GOLDEN=1 writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") == "1" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.ReplaceAll(string(want), "\r\n", "\n"), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestWhatIsInstalled(t *testing.T) {
	golden(t, "serviced.socket", socketUnit(sample))
	golden(t, "serviced.service", serviceUnit(sample))
	golden(t, "agent.plist", agentPlist(sample, "dev.service.serviced"))
	golden(t, "task.xml", taskXML(sample, `DESK\ada`))
}

// TestSystemdAcceptsTheUnits makes the installed systemd verify the units, with simple and with difficult paths, and
// rate their sandboxing.
func TestSystemdAcceptsTheUnits(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: systemd runs on Linux only")
	}
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("systemd-analyze is missing: apt-get install systemd")
		}
		t.Skip("SKIPPED, systemd-analyze is missing: apt-get install systemd")
	}
	for _, name := range []string{"plain", `50%s it's "a"\x $b`} {
		t.Run(name, func(t *testing.T) {
			home := filepath.Join(t.TempDir(), name)
			units := filepath.Join(home, ".config", "systemd", "user")
			if err := os.MkdirAll(units, 0o700); err != nil {
				t.Fatal(err)
			}
			program := filepath.Join(t.TempDir(), "50% a $b", "serviced")
			if err := os.Mkdir(filepath.Dir(program), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			run := t.TempDir()
			t.Setenv("XDG_RUNTIME_DIR", run)
			paths, err := rendezvous.PathsOf(filepath.Join(home, ".service"))
			if err != nil {
				t.Skipf("SKIPPED: %v", err)
			}
			s := newSystemd(daemon{name: Name, program: program, home: home, paths: paths, usual: true}, "", nil)
			if _, _, err := s.files().write(); err != nil {
				t.Fatal(err)
			}
			analyze := func(args ...string) string {
				t.Helper()
				cmd := exec.Command("systemd-analyze", append([]string{"--user", "--no-pager"}, args...)...)
				cmd.Env = append(os.Environ(), "HOME="+home, "LC_ALL=C")
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Errorf("systemd-analyze %v: %v\n%s", args, err, out)
				}
				return string(out)
			}
			for _, f := range s.files().list {
				// systemd-analyze exits with 0 even if a unit has an option that it does not know.
				if out := analyze("--man=no", "verify", f.path); strings.TrimSpace(out) != "" {
					t.Errorf("%s: %s", filepath.Base(f.path), out)
				}
			}
			// The rating is in hundredths; a unit without sandboxing has more than 9 points.
			analyze("security", "--offline=true", "--threshold=70", s.files().list[1].path)
		})
	}
}

func TestProgramsAreReadBack(t *testing.T) {
	for _, program := range []string{
		"/bin/serviced", `/a b/50%s it's "q"\x $b/serviced`, `C:\Program Files\svc & co\serviced.exe`, "/ü/<serviced>",
	} {
		d := sample
		d.program = program
		if got := programOf(serviceUnit(d)); got != program {
			t.Errorf("unit: %q, want %q", got, program)
		}
		if got := plistProgram(agentPlist(d, "x")); got != program {
			t.Errorf("agent: %q, want %q", got, program)
		}
		if got := taskProgram(taskXML(d, "x")); got != program {
			t.Errorf("task: %q, want %q", got, program)
		}
	}
	for _, text := range []string{
		"", "ExecStart=/bin/x\n", `ExecStart="/bin/x`, "<plist>", "<Task", "<key>ProgramArguments</key>",
	} {
		if got := programOf(text) + plistProgram(text) + taskProgram(text); got != "" {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestWideIsUTF16(t *testing.T) {
	got := wide("aé\U0001F453")
	want := []byte{0xff, 0xfe, 'a', 0, 0xe9, 0, 0x3d, 0xd8, 0x53, 0xdc}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestProperties(t *testing.T) {
	got := properties("Id=a.socket\nActiveState=active\nLoadError=x \"y=z\"\n\nId=a.service\nMainPID=12\n\n")
	want := []map[string]string{
		{"Id": "a.socket", "ActiveState": "active", "LoadError": `x "y=z"`}, {"Id": "a.service", "MainPID": "12"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// FuzzManagersWords checks that neither the output of a service manager nor the content of a file causes a panic.
func FuzzManagersWords(f *testing.F) {
	f.Add(serviceUnit(sample))
	f.Add(agentPlist(sample, "x"))
	f.Add(taskXML(sample, "x"))
	f.Add("Id=a\n\n\nMainPID=99999999999999999999\n=\n")
	f.Add("gui/501/x = {\n\tstate = running\n\tpid = 12\n\tlast exit code = (never exited)\n}")
	f.Fuzz(func(t *testing.T, text string) {
		programOf(text)
		plistProgram(text)
		taskProgram(text)
		var u shown
		for _, unit := range properties(text) {
			u.socket, u.service = unit, unit
		}
		if state, pid, _ := stateOf(u); state == "" || state != StateRunning && pid != 0 {
			t.Errorf("state %q with pid %d; only a running service has a pid", state, pid)
		}
		if state, _, _ := printed(text); state == "" {
			t.Error("printed returned no state")
		}
		outcome{errs: text}.message()
	})
}
