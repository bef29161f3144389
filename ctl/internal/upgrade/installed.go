package upgrade

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/service-dev/service/internal/buildinfo"
	"github.com/service-dev/service/internal/programpath"
)

// These are the names of this distribution's package and formula.
const (
	packageName = "service-toolkit"
	wingetID    = "ServiceDev.ServiceToolkit"
)

// Installed describes how this copy was installed.
type Installed struct {
	// By is deb, rpm, apk, pacman, homebrew, scoop, winget, script, source or archive.
	By string
	// Upgrade and Remove are commands for the user to run; they may contain VERSION and ARCH. They are empty for an
	// archive.
	Upgrade, Remove string
	// Dir is the directory of the programs.
	Dir string
}

// FindInstalled returns how this copy was installed, determined from paths and the databases of package managers.
func FindInstalled() (Installed, error) {
	dir, err := programpath.Dir()
	if err != nil {
		return Installed{}, err
	}
	return installedAt(dir, "/"), nil
}

// packageManagers are the package managers of Linux. Each is recognised by the entry of this package in its database,
// a file pattern below the root.
var packageManagers = []struct{ by, sign, upgrade, remove string }{
	{"deb", "var/lib/dpkg/info/" + packageName + ".list", "sudo apt install ./" + packageName + "_VERSION-1_ARCH.deb",
		"sudo apt remove " + packageName},
	{"pacman", "var/lib/pacman/local/" + packageName + "-*",
		"sudo pacman -U ./" + packageName + "-VERSION-1-ARCH.pkg.tar.zst", "sudo pacman -R " + packageName},
	{"apk", "lib/apk/db/installed", "sudo apk add --allow-untrusted ./" + packageName + "_VERSION-r1_ARCH.apk",
		"sudo apk del " + packageName},
	{"rpm", "var/lib/rpm", "sudo dnf install ./" + packageName + "-VERSION-1.ARCH.rpm", "sudo dnf remove " + packageName},
	{"rpm", "usr/lib/sysimage/rpm", "sudo dnf install ./" + packageName + "-VERSION-1.ARCH.rpm",
		"sudo dnf remove " + packageName},
}

// installedAt is FindInstalled for programs in dir; the databases of package managers are below root.
func installedAt(dir, root string) Installed {
	slashed := filepath.ToSlash(dir)
	if slashed == "/usr/lib/service" {
		for _, m := range packageManagers {
			if found, _ := filepath.Glob(filepath.Join(root, filepath.FromSlash(m.sign))); len(found) > 0 {
				return Installed{m.by, m.upgrade, m.remove, dir}
			}
		}
	}
	if name := folderBelow(slashed, "/Cellar/"); name != "" {
		return Installed{"homebrew", "brew upgrade " + name, "brew uninstall " + name, dir}
	}
	if name := folderBelow(slashed, "/scoop/apps/"); name != "" {
		return Installed{"scoop", "servicectl daemon stop; scoop update " + name, "scoop uninstall " + name, dir}
	}
	if folderBelow(slashed, "/WinGet/Packages/") != "" {
		return Installed{"winget", "winget upgrade --id " + wingetID, "winget uninstall --id " + wingetID, dir}
	}
	if prefix, _, ok := strings.Cut(slashed, "/lib/service/"); ok && strings.HasSuffix(slashed, "/bin") {
		script := "sh install.sh"
		if home, err := os.UserHomeDir(); err != nil || filepath.ToSlash(home)+"/.local" != prefix {
			script += " --prefix " + quote(prefix)
		}
		return Installed{"script", script, script + " --uninstall", dir}
	}
	checkout := filepath.Dir(dir)
	if isFile(filepath.Join(checkout, "go.mod")) && isFile(filepath.Join(checkout, "Makefile")) {
		at := quote(checkout)
		return Installed{"source", "cd " + at + " && git pull && make build", "rm -r " + quote(dir), dir}
	}
	return Installed{By: "archive", Dir: dir}
}

// Command returns the command that upgrades to a version (or to "VERSION" if version is empty), and the file to
// download first, if any.
func (i Installed) Command(version string) (command, download string) {
	version = cmp.Or(version, "VERSION")
	archive := "service-" + version + "-" + runtime.GOOS + "-" + runtime.GOARCH + ".tar.gz"
	if runtime.GOOS == "windows" {
		archive = strings.TrimSuffix(archive, ".tar.gz") + ".zip"
	}
	switch i.By {
	case "archive":
		return "", archive
	case "script":
		if buildinfo.ReleaseURL == "" { // install.sh contains no address either
			return i.Upgrade + " --from " + archive, archive
		}
		return i.Upgrade, "install.sh"
	case "deb", "rpm", "apk", "pacman":
		command = strings.NewReplacer("VERSION", packageVersion(i.By, version), "ARCH", packageArch(i.By)).Replace(i.Upgrade)
		_, download, _ = strings.Cut(command, " ./")
		return command, download
	}
	return i.Upgrade, ""
}

// ScriptURL returns the address of install.sh if Remove runs it and the address is known, or "" otherwise.
func (i Installed) ScriptURL() string {
	if i.By != "script" || buildinfo.ReleaseURL == "" {
		return ""
	}
	return strings.TrimSuffix(buildinfo.ReleaseURL, "/") + "/install.sh"
}

// packageVersion returns a version in the notation of a package manager, so that a pre-release sorts before its
// release. The release process names its packages accordingly.
func packageVersion(by, version string) string {
	number, pre, isPre := strings.Cut(version, "-")
	if !isPre {
		return version
	}
	joined := strings.NewReplacer("-", "", ".", "").Replace(pre)
	switch by {
	case "rpm":
		return number + "~" + strings.ReplaceAll(pre, "-", "_")
	case "apk":
		return number + "_" + joined
	case "pacman":
		return number + joined
	}
	return number + "~" + pre
}

func packageArch(by string) string {
	name, ok := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	if by == "deb" || !ok {
		return runtime.GOARCH
	}
	return name
}

// folderBelow returns the name of the directory that follows mark in path, or "".
func folderBelow(path, mark string) string {
	_, rest, _ := strings.Cut(path, mark)
	name, _, _ := strings.Cut(rest, "/")
	return name
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// quote quotes a word of a command that the user pastes into a shell.
func quote(s string) string {
	plain := !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune("/._-+:@%,=~", r)
	})
	if plain || runtime.GOOS == "windows" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
