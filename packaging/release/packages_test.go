package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPackage_InstallsOnDebian installs both packages in an overlay of this machine's root, uses them as an ordinary
// user, and removes them. Only the user's state and the system user remain.
func TestPackage_InstallsOnDebian(t *testing.T) {
	require(t, map[string]string{"man": "man-db"})
	printed, left := inRoot(t, "install.sh", copyFiles(t, map[string]string{
		"toolkit.deb": artefactOf(t, "service-toolkit_*_amd64.deb"),
		"server.deb":  artefactOf(t, "service-backend_*_amd64.deb"),
	}))
	for _, want := range []string{"\nservicectl ", `"deviceModels": {`, "\nPASS  ", "\nservice-backend "} {
		if !strings.Contains(printed, want) {
			t.Errorf("the programs did not print %q", want)
		}
	}
	expected := []string{
		"./home/ada/.service/", "./var/lib/dpkg/", "./var/log/", "./var/cache/man/", "./etc/passwd", "./etc/group",
		"./etc/shadow", "./etc/gshadow", "./etc/.pwd.lock",
	}
	for _, file := range left {
		if !slices.ContainsFunc(expected, func(prefix string) bool { return strings.HasPrefix(file, prefix) }) {
			t.Errorf("after removal there is %s", file)
		}
	}
	if !slices.ContainsFunc(left, func(file string) bool { return strings.HasPrefix(file, "./home/ada/.service/") }) {
		t.Error("removal deleted the user's state")
	}
}

// TestPackage_InstallsWithRPM installs the rpm in an empty root, where the programs run without any libraries, and
// erases it.
func TestPackage_InstallsWithRPM(t *testing.T) {
	requireRoot(t)
	require(t, map[string]string{"rpm": "rpm"})
	root := t.TempDir()
	output(t, "rpm", "--root", root, "--initdb")
	for _, name := range []string{"service-toolkit", "service-backend"} {
		output(t, "rpm", "--root", root, "--install", "--noscripts", artefactOf(t, name+"-*.x86_64.rpm"))
		output(t, "rpm", "--root", root, "--verify", "--nouser", "--nogroup", name)
	}
	checkInstalled(t, root, "usr/share/zsh/site-functions/_servicectl")
	changelog := output(t, "rpm", "--root", root, "--query", "--changelog", "service-toolkit")
	if !strings.Contains(changelog, "Release ") {
		t.Errorf("the changelog is %q", changelog)
	}
	output(t, "rpm", "--root", root, "--erase", "--noscripts", "service-toolkit", "service-backend")
	// Distributions store the database in different places.
	checkRemoved(t, root, "root/.rpmdb", "var/lib/rpm", "usr/lib/sysimage/rpm")
}

// TestPackage_InstallsWithPacman is like TestPackage_InstallsWithRPM, with the Arch Linux package.
func TestPackage_InstallsWithPacman(t *testing.T) {
	requireRoot(t)
	require(t, map[string]string{"pacman": "pacman-package-manager"})
	root := t.TempDir()
	settings := filepath.Join(t.TempDir(), "pacman.conf")
	const options = "[options]\nArchitecture = x86_64\nSigLevel = Never\nLocalFileSigLevel = Never\n"
	if err := writeFile(settings, options); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(root, "var/lib/pacman"), 0o755); err != nil {
		t.Fatal(err)
	}
	pacman := func(args ...string) {
		output(t, "pacman", append([]string{
			"--config", settings, "--root", root, "--dbpath", filepath.Join(root, "var/lib/pacman"), "--cachedir", t.TempDir(),
			"--logfile", filepath.Join(t.TempDir(), "log"), "--noconfirm",
		}, args...)...)
	}
	pacman("--upgrade", "--noscriptlet", artefactOf(t, "service-toolkit-*-x86_64.pkg.tar.zst"),
		artefactOf(t, "service-backend-*-x86_64.pkg.tar.zst"))
	pacman("--query", "--check", "--check")
	checkInstalled(t, root, "usr/share/zsh/site-functions/_servicectl")
	pacman("--remove", "--nosave", "--noscriptlet", "service-toolkit", "service-backend")
	checkRemoved(t, root, "var/lib/pacman")
}

// checkInstalled checks that the programs in root run, and that their files are installed.
func checkInstalled(t *testing.T, root string, others ...string) {
	t.Helper()
	out := output(t, "chroot", root, "/usr/bin/servicectl", "version")
	if !strings.Contains(out, testVersion) && os.Getenv("RELEASE_DIST") == "" {
		t.Errorf("servicectl version prints %s", out)
	}
	output(t, "chroot", root, "/usr/lib/service/serviced", "version")
	checkAdapterLinks(t, filepath.Join(root, toolkitDir))
	output(t, "chroot", root, "/usr/bin/service-backend", "version")
	for _, file := range append(others, "usr/lib/systemd/user/serviced.socket",
		"usr/lib/systemd/system/service-backend.service", "etc/service-backend/config.yaml",
		"usr/share/man/man1/servicectl.1.gz", "usr/share/licenses/service-toolkit/THIRD_PARTY") {
		if _, err := os.Stat(filepath.Join(root, file)); err != nil {
			t.Error(err)
		}
	}
}

// checkRemoved checks that root contains only files of the package manager.
func checkRemoved(t *testing.T, root string, managers ...string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		if slices.Contains(managers, rel) {
			return filepath.SkipDir
		}
		if err == nil && !d.IsDir() {
			t.Errorf("after removal there is %s", rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestPackage_ForAlpineMatchesDeb reads the Alpine package. It must contain the programs of the deb, with the same
// modes and bytes, and the same links.
func TestPackage_ForAlpineMatchesDeb(t *testing.T) {
	require(t, map[string]string{"dpkg-deb": "dpkg"})
	root := t.TempDir()
	output(t, "dpkg-deb", "-x", artefactOf(t, "service-toolkit_*_amd64.deb"), root)
	checkAdapterLinks(t, filepath.Join(root, toolkitDir))
	f, err := os.Open(artefactOf(t, "service-toolkit_*_x86_64.apk"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	packed, err := gzip.NewReader(f) // several streams that form one tar
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for r := tar.NewReader(packed); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		seen[h.Name] = true
		if h.Typeflag == tar.TypeSymlink {
			if to, err := os.Readlink(filepath.Join(root, h.Name)); err != nil || to != h.Linkname {
				t.Errorf("%s is a link to %s, in the deb to %q, %v", h.Name, h.Linkname, to, err)
			}
		}
		if !strings.HasPrefix(h.Name, "usr/lib/service/") || h.Typeflag != tar.TypeReg {
			continue
		}
		got, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(root, h.Name))
		info, serr := os.Stat(filepath.Join(root, h.Name))
		if err != nil || serr != nil || string(got) != string(want) || h.FileInfo().Mode() != info.Mode() {
			t.Errorf("%s differs from that of the deb (%v, %v)", h.Name, h.FileInfo().Mode(), err)
		}
	}
	wanted := []string{".PKGINFO", "usr/bin/servicectl", "usr/bin/service-mcp"}
	for _, name := range append(adapterNames(t), "serviced", manifest) {
		wanted = append(wanted, toolkitDir+"/"+name)
	}
	for _, want := range wanted {
		if !seen[want] {
			t.Errorf("there is no %s", want)
		}
	}
	for name := range seen {
		if strings.Contains(name, "systemd") {
			t.Errorf("Alpine has no systemd: %s", name)
		}
	}
}
