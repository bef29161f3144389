package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aead.dev/minisign"
)

// TestInstallScript checks that install.sh installs, upgrades and removes, and that the previously installed version
// keeps working if anything goes wrong.
func TestInstallScript(t *testing.T) {
	for _, shell := range installShells {
		t.Run(shell[0], func(t *testing.T) {
			for name, test := range map[string]func(*testing.T, *installFixture){
				"upgrade": upgradeKeepsPrevious, "tampered": tamperedIsRefused, "offline": offlineInstalls, "replaced": replacedIsNotRun,
				"uninstall": uninstallKeepsState, "foreign": foreignProgramIsKept, "repeat": repetitionRepairs,
				"wget": wgetDownloads, "unsigned": unsignedIsSaid, "redirect": redirectsStayEncrypted,
				"other wget": otherWgetNeedsSignature, "no settings": uninstallKeepsNoSettings,
				"folders": uninstallRemovesOwnFolders, "next": nextStepIsForFirst,
				"slash": slashAtEndOfPrefix, "unreadable": unreadableArchive, "two": twoAtOnce,
				"repeat a repair": repetitionKeepsPrevious, "confined curl": confinedCurlDownloads,
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					f := newInstallFixture(t, shell...)
					f.release("1.0.0")
					test(t, f)
				})
			}
		})
	}
}

func upgradeKeepsPrevious(t *testing.T, f *installFixture) {
	out := f.install()
	f.works("1.0.0")
	for _, text := range []string{"signature of SHA256SUMS", "servicectl agent add --all", "export PATH="} {
		if !strings.Contains(out, text) {
			t.Errorf("install.sh does not print %q:\n%s", text, out)
		}
	}
	if line := pathLine(out); line == "" || !strings.Contains(evalPath(t, line), f.prefix+"/bin") {
		t.Errorf("the line for the profile does not set PATH: %q", line)
	}
	for _, link := range sharedLinks {
		if _, err := os.Stat(filepath.Join(f.prefix, "share", link)); err != nil {
			t.Error(err)
		}
	}
	for _, version := range []string{"1.1.0", "2.0.0-rc.1"} {
		f.release(version)
		f.install()
		f.works(version)
	}
	if got := f.versions(); !slices.Equal(got, []string{"1.1.0", "2.0.0-rc.1"}) {
		t.Errorf("kept versions %q", got)
	}
	f.isTidy()
	if files, _ := os.ReadDir(f.home); len(files) > 0 {
		t.Errorf("install.sh wrote to HOME: %v", files)
	}
}

// pathLine returns the line that install.sh prints for the shell's profile.
func pathLine(out string) string {
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "export PATH=") {
			return line
		}
	}
	return ""
}

func evalPath(t *testing.T, line string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sh", "-c", line+"\nprintf %s \"$PATH\"").Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func tamperedIsRefused(t *testing.T, f *installFixture) {
	f.install()
	f.release("2.0.0")
	archive, sums := f.read(f.archive("2.0.0")), f.read("SHA256SUMS")

	f.write(f.archive("2.0.0"), append(bytes.Clone(archive), 0))
	f.refuses("1.0.0", "is damaged")

	// An attacker who replaces the archive and its checksum cannot sign them.
	signature := f.read("SHA256SUMS.minisig")
	f.sign()
	f.write("SHA256SUMS.minisig", signature)
	f.refuses("1.0.0", "the signature of SHA256SUMS is wrong")
	f.must(os.Remove(filepath.Join(f.dist, "SHA256SUMS.minisig")))
	f.refuses("1.0.0", "cannot download")

	genuine := f.key
	f.key = signingKey(t, 8)
	f.write(f.archive("2.0.0"), archive)
	f.sign()
	f.refuses("1.0.0", "the signature of SHA256SUMS is wrong")

	f.key = genuine
	f.write("SHA256SUMS", bytes.ReplaceAll(sums, []byte("2.0.0"), []byte("2.0.1")))
	f.write("SHA256SUMS.minisig", minisign.Sign(f.key, f.read("SHA256SUMS")))
	f.refuses("1.0.0", "does not list")
}

func offlineInstalls(t *testing.T, f *installFixture) {
	f.install()
	f.release("2.0.0")
	file := filepath.Join(f.dist, f.archive("2.0.0"))
	script, err := stampInstallScript("2.0.0", "", f.public)
	f.must(err)
	f.write("install.sh", []byte(script))
	f.refuses("1.0.0", "knows no address")
	f.refuses("1.0.0", "does not exist", "--from", file+".missing")
	f.refuses("1.0.0", "is not a file", "--from", f.dist)
	elsewhere := filepath.Join(t.TempDir(), "service-2.0.0-plan9-mips.tar.gz")
	f.must(os.Link(file, elsewhere))
	f.refuses("1.0.0", "is not an archive for this system", "--from", elsewhere)
	f.install("--from", file)
	f.works("2.0.0")
}

// replacedIsNotRun replaces the archive immediately after its checksum has been computed.
func replacedIsNotRun(t *testing.T, f *installFixture) {
	file := filepath.Join(f.dist, f.archive("1.0.0"))
	genuine := f.read(f.archive("1.0.0"))
	program, err := exec.LookPath("sha256sum")
	f.must(err)
	tools := t.TempDir()
	f.must(os.WriteFile(filepath.Join(tools, "sha256sum"),
		fmt.Appendf(nil, "#!/bin/sh\n%s \"$@\"\necho replaced >'%s'\n", program, file), 0o755))
	f.path = tools + ":" + f.path
	f.install("--from", file)
	f.works("1.0.0")
	if bytes.Equal(f.read(f.archive("1.0.0")), genuine) {
		t.Error("the archive was not replaced")
	}
}

func foreignProgramIsKept(t *testing.T, f *installFixture) {
	foreign := filepath.Join(f.prefix, "bin", "servicectl")
	f.must(os.MkdirAll(filepath.Dir(foreign), 0o755))
	f.must(os.WriteFile(foreign, []byte("mine"), 0o755))
	if out, err := f.run(); err == nil || !strings.Contains(out, "was not installed by this script") {
		t.Errorf("install.sh ended with %v:\n%s", err, out)
	}
	if data, err := os.ReadFile(foreign); string(data) != "mine" {
		t.Errorf("the program of somebody else was replaced: %v", err)
	}
}

func repetitionRepairs(t *testing.T, f *installFixture) {
	f.install()
	f.release("2.0.0")
	f.install()
	f.install()
	if got := f.versions(); !slices.Equal(got, []string{"1.0.0", "2.0.0"}) {
		t.Errorf("kept versions %q", got)
	}
	f.must(os.WriteFile(filepath.Join(f.prefix, "lib/service/2.0.0/bin/service-mcp"), []byte("damaged"), 0o755))
	f.install()
	f.works("2.0.0")
	f.isTidy()
	current := filepath.Join(f.prefix, "lib/service/current")
	for _, damage := range []func(link string) error{os.Remove, pointElsewhere} {
		f.must(damage(filepath.Join(current, smallLink)))
		f.install()
		if to, err := os.Readlink(filepath.Join(current, smallLink)); err != nil || to != "serviced" {
			t.Errorf("after a repair %s is a link to %q, %v; want one to serviced", smallLink, to, err)
		}
	}
}

// pointElsewhere replaces a link by one to another file.
func pointElsewhere(link string) error {
	return errors.Join(os.Remove(link), os.Symlink("servicectl", link))
}

// repetitionKeepsPrevious repeats an installation after Python has compiled an example, and an installation that was
// a repair.
func repetitionKeepsPrevious(t *testing.T, f *installFixture) {
	f.install()
	compiled := filepath.Join(f.prefix, "lib/service/1.0.0/examples/__pycache__")
	f.must(os.MkdirAll(compiled, 0o755))
	f.must(os.WriteFile(filepath.Join(compiled, "glasses.pyc"), []byte("compiled"), 0o644))
	f.install()
	if got := f.versions(); !slices.Equal(got, []string{"1.0.0"}) {
		t.Errorf("after an example was run, kept versions %q", got)
	}
	f.must(os.WriteFile(filepath.Join(f.prefix, "lib/service/1.0.0/bin/service-mcp"), []byte("damaged"), 0o755))
	for _, version := range []string{"2.0.0", "1.0.0", "1.0.0"} {
		f.release(version)
		f.install()
		f.works(version)
	}
	if got := f.versions(); !slices.Equal(got, []string{"1.0.0.2", "2.0.0"}) {
		t.Errorf("after the repetition of a repair, kept versions %q", got)
	}
}

func unsignedIsSaid(t *testing.T, f *installFixture) {
	script, err := stampInstallScript("1.0.0", f.url, "")
	f.must(err)
	f.write("install.sh", []byte(script))
	if out := f.install(); !strings.Contains(out, "This release is not signed") {
		t.Errorf("install.sh does not say that the release is not signed:\n%s", out)
	}
}

func TestInstallScript_PassesShellCheck(t *testing.T) {
	require(t, map[string]string{"shellcheck": "shellcheck"})
	cmd := exec.CommandContext(t.Context(), "shellcheck", "-s", "sh", "files/install.sh")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("shellcheck: %v\n%s", err, out)
	}
}

func nextStepIsForFirst(t *testing.T, f *installFixture) {
	for _, path := range []string{f.path, filepath.Join(f.prefix, "bin") + ":" + f.path} {
		f.must(os.RemoveAll(f.prefix))
		f.path = path
		f.release("1.0.0")
		const first, upgraded = "servicectl agent add --all", "coding agents need no change"
		if out := f.install(); !strings.Contains(out, first) || strings.Contains(out, upgraded) {
			t.Errorf("after the first installation:\n%s", out)
		}
		f.release("2.0.0")
		if out := f.install(); strings.Contains(out, first) || !strings.Contains(out, upgraded) {
			t.Errorf("after an upgrade:\n%s", out)
		}
	}
}

func slashAtEndOfPrefix(t *testing.T, f *installFixture) {
	f.path = filepath.Join(f.prefix, "bin") + ":" + f.path
	out, err := f.command("--prefix", f.prefix+"//").CombinedOutput()
	if err != nil || strings.Contains(string(out), "//") {
		t.Errorf("install.sh --prefix DIR// ended with %v:\n%s", err, out)
	}
	if strings.Contains(string(out), "Your PATH does not contain") {
		t.Errorf("install.sh does not find its folder in PATH:\n%s", out)
	}
	f.works("1.0.0")
}

// unreadableArchive installs an archive that was damaged before its checksum was computed.
func unreadableArchive(t *testing.T, f *installFixture) {
	f.install()
	f.release("2.0.0")
	archive := f.read(f.archive("2.0.0"))
	f.write(f.archive("2.0.0"), archive[:len(archive)/2])
	f.sign()
	out, err := f.run()
	if err == nil || !strings.Contains(out, "cannot read") || strings.Contains(out, "disk space") {
		t.Errorf("install.sh ended with %v:\n%s", err, out)
	}
	f.refuses("1.0.0", "cannot read")
}

// twoAtOnce starts two installations, each of which waits for the other before it creates its work directory.
func twoAtOnce(t *testing.T, f *installFixture) {
	f.install()
	f.release("2.0.0")
	mkdir, err := exec.LookPath("mkdir")
	f.must(err)
	tools := t.TempDir()
	script := strings.NewReplacer("MKDIR", mkdir, "TOOLS", tools).Replace(`#!/bin/sh
case $* in
*/.install.*/*) ;;
*/.install.*)
	echo >>TOOLS/arrived
	until [ "$(wc -l <TOOLS/arrived)" -ge 2 ]; do sleep 0.01; done
	;;
esac
exec MKDIR "$@"
`)
	f.must(os.WriteFile(filepath.Join(tools, "mkdir"), []byte(script), 0o755))
	path := f.path
	f.path = tools + ":" + path
	var out [2]bytes.Buffer
	var cmds [2]*exec.Cmd
	for i := range cmds {
		cmds[i] = f.command("--prefix", f.prefix)
		cmds[i].Stdout, cmds[i].Stderr = &out[i], &out[i]
		f.must(cmds[i].Start())
	}
	refused := 0
	for i, cmd := range cmds {
		if err := cmd.Wait(); err == nil {
			continue
		}
		refused++
		if !strings.Contains(out[i].String(), "another installation is running") {
			t.Errorf("an installation beside another says:\n%s", out[i].String())
		}
	}
	if refused == 0 {
		t.Errorf("two installations ran at the same time:\n%s\n%s", out[0].String(), out[1].String())
	}
	f.path = path
	f.install()
	f.works("2.0.0")
	f.isTidy()
	nested, err := filepath.Glob(filepath.Join(f.prefix, "lib/service/*/service-*"))
	if got := f.versions(); err != nil || len(nested) > 0 || !slices.Equal(got, []string{"1.0.0", "2.0.0"}) {
		t.Errorf("kept versions %q, nested %q, %v", got, nested, err)
	}
}
