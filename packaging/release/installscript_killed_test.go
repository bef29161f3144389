package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// installTools lists the programs that install.sh runs.
var installTools = []string{
	"tar", "gzip", "readlink", "find", "sort", "curl", "minisign", "sha256sum", "uname", "cut", "sed", "mv", "ln",
	"rm", "mkdir", "basename", "dirname", "cat", "rmdir",
}

// countedTool counts its calls as lines of a file. It kills the whole installation before the call with the number in
// another file, and otherwise runs the program with its name. Two commands of a pipeline may have the same number.
const countedTool = `#!/bin/sh
echo >>'COUNT'
n=$(/usr/bin/wc -l <'COUNT')
read -r at <'AT'
[ "$n" != "$at" ] || kill -KILL 0
exec 'PROGRAM' "$@"
`

// TestInstallScript_KilledAtEachCommand kills an upgrade before each command that it runs. The programs work after
// every kill, and have the old version until the last change.
func TestInstallScript_KilledAtEachCommand(t *testing.T) {
	f := newInstallFixture(t, "dash")
	tools := t.TempDir()
	count, at := filepath.Join(tools, "count"), filepath.Join(tools, "at")
	for _, name := range installTools {
		program, err := exec.LookPath(name)
		if err != nil {
			skip(t, name+" is missing: apt-get install "+name)
		}
		script := strings.NewReplacer("COUNT", count, "AT", at, "PROGRAM", program).Replace(countedTool)
		f.must(os.WriteFile(filepath.Join(tools, name), []byte(script), 0o755))
	}
	f.release("1.0.0")
	f.install()
	first := filepath.Join(t.TempDir(), "first")
	output(t, "cp", "-a", f.prefix, first)
	f.release("2.0.0")
	f.path = tools + ":" + f.path
	old, n := 0, 1
	for ; ; n++ {
		f.must(os.RemoveAll(f.prefix))
		output(t, "cp", "-a", first, f.prefix)
		f.must(os.WriteFile(count, nil, 0o644))
		f.must(os.WriteFile(at, fmt.Appendln(nil, n), 0o644))
		cmd := f.command("--prefix", f.prefix)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		err := cmd.Run()
		version, linkErr := os.Readlink(filepath.Join(f.prefix, "lib/service/current"))
		if linkErr != nil {
			t.Fatalf("after the end before command %d: %v", n, linkErr)
		}
		f.works(version)
		if t.Failed() {
			t.Fatalf("after the end before command %d", n)
		}
		if err == nil && len(must(os.ReadFile(count))) < n {
			break
		}
		if version == "1.0.0" {
			old++
		}
	}
	f.works("2.0.0")
	t.Logf("ended before each of %d commands, %d times with the old version", n-1, old)
	if n < 20 || old < 10 || old >= n-1 {
		t.Errorf("of %d installations that were ended, %d left the old version", n-1, old)
	}
}
