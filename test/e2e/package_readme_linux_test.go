//go:build release

package e2e

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ada is an ordinary user without Go who follows README.
type ada struct {
	t    *testing.T
	home string
}

const adaID = 65534

func newAda(t *testing.T) ada {
	t.Helper()
	home, err := os.MkdirTemp("", "ada")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(home, ".cursor"), 0o700); err != nil { // her coding agent
		t.Fatal(err)
	}
	for _, dir := range []string{home, filepath.Join(home, ".cursor")} {
		if err := os.Chown(dir, adaID, adaID); err != nil {
			t.Fatal(err)
		}
	}
	a := ada{t, home}
	t.Cleanup(func() {
		_ = a.command("servicectl daemon stop").Run()
		_ = os.RemoveAll(home)
	})
	return a
}

// command returns a command that runs in her shell.
func (a ada) command(script string) *exec.Cmd {
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir, cmd.Env = a.home, []string{"HOME=" + a.home, "PATH=/usr/bin:/bin", "LANG=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: adaID, Gid: adaID}}
	return cmd
}

func (a ada) run(script string) string {
	a.t.Helper()
	out, err := a.command(script).CombinedOutput()
	if err != nil {
		a.t.Fatalf("%s\nended with %v:\n%s", script, err, out)
	}
	return string(out)
}

// login follows `servicectl login`, which prints the address of a page.
func (a ada) login(script, email string) {
	a.t.Helper()
	cmd := a.command(script)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		a.t.Fatal(err)
	}
	defer time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() }).Stop()
	address := regexp.MustCompile(`http://[^\s"]+/activate\?[^\s"]+`)
	printed, approved := "", false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		printed += lines.Text() + "\n"
		if page := address.FindString(lines.Text()); page != "" && !approved {
			newPerson(a.t).approve(page, email)
			approved = true
		}
	}
	if err := cmd.Wait(); err != nil {
		a.t.Fatalf("login ended with %v:\n%s", err, printed)
	}
}

// A new user follows the block of commands in README's section "Install", line by line: they install the package, prove
// an example app, register a coding agent and link an account.
func TestPackage_IsUsedByReadmeAlone(t *testing.T) {
	a := newAda(t)
	if err := dpkg(t, nil, "--purge", "service-toolkit"); err != nil {
		t.Fatal(err)
	}
	version, err := exec.Command("dpkg-deb", "--field", os.Getenv(oldDeb), "Version").Output()
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(readme), "\n## Install\n")
	_, section, _ = strings.Cut(section, "\n```sh\n")
	block, _, _ := strings.Cut(section, "\n```\n")
	block = strings.ReplaceAll(block, "VERSION-1", strings.TrimSpace(string(version)))
	install, rest, _ := strings.Cut(block, "\n")
	use, login, found := strings.Cut(rest, "\nservicectl login ")
	if !found || !strings.HasPrefix(install, "sudo apt install ./") {
		t.Fatalf("README's block has other commands:\n%s", block)
	}

	file := strings.TrimPrefix(strings.Fields(install)[3], "./")
	if out, err := exec.Command("cp", os.Getenv(oldDeb), filepath.Join(a.home, file)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	apt := exec.Command("sh", "-ec", strings.TrimPrefix(install, "sudo "))
	apt.Dir = a.home
	if out, err := apt.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", install, err, out)
	}
	printed := a.run(use)
	for _, want := range []string{"checks are fine", "\nPASS  ", "Cursor"} {
		if !strings.Contains(printed, want) {
			t.Errorf("README's commands did not print %q:\n%s", want, printed)
		}
	}
	a.login("servicectl login "+login, "ada@example.org")
	if who := a.run("servicectl whoami"); !regexp.MustCompile(`(?m)^account +linked$`).MatchString(who) {
		t.Errorf("whoami prints %q, want a linked account", who)
	}

	data, err := os.ReadFile(filepath.Join(a.home, ".cursor", "mcp.json"))
	if err != nil {
		t.Fatal(err)
	}
	var settings struct {
		MCPServers map[string]struct{ Command string } `json:"mcpServers"`
	}
	if err := json.Unmarshal(data, &settings); err != nil {
		t.Fatal(err)
	}
	if got := settings.MCPServers["service"].Command; got != "/usr/bin/service-mcp" {
		t.Errorf("the agent is to start %q, want the program of the package", got)
	}
	hello := a.run(`echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
		`"capabilities":{},"clientInfo":{"name":"cursor","version":"1"}}}' | ` + settings.MCPServers["service"].Command)
	if !strings.Contains(hello, `"serverInfo"`) {
		t.Errorf("the registered program answers %s", hello)
	}
}
