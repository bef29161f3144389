package watch

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/service-dev/service/internal/problem"
)

// Desktops and editors may use up a user's limit of watches. The hint contains the setting to raise.
func TestNew_NamesTheLimit(t *testing.T) {
	if dir := os.Getenv("WATCHED_DIR"); dir != "" { // in the namespace
		_, err := New([]string{dir}, func(string) bool { return false })
		if p := problem.From(err); p != nil {
			fmt.Println(p, p.FixHint)
		}
		return
	}
	namespace := []string{"--user", "--map-root-user"}
	if out, err := exec.Command("unshare", append(namespace, "true")...).CombinedOutput(); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("a user namespace cannot be made: %v: %s", err, out)
		}
		t.Skipf("SKIPPED: a user namespace cannot be made: %v", err)
	}
	for setting, want := range map[string]string{
		"max_inotify_instances": "fs.inotify.max_user_instances", "max_inotify_watches": "fs.inotify.max_user_watches",
	} {
		script := "echo 0 > /proc/sys/user/" + setting + " && exec \"$0\" -test.run=TestNew_NamesTheLimit"
		cmd := exec.Command("unshare", append(namespace, "sh", "-c", script, os.Args[0])...)
		cmd.Env = append(os.Environ(), "WATCHED_DIR="+t.TempDir())
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v: %s; want %s", setting, err, out, want)
		}
	}
}
