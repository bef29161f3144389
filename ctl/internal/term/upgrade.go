package term

import "fmt"

// Upgrade describes how to upgrade and, if Checked is set, the latest release.
type Upgrade struct {
	Version     string `json:"version"`
	Checked     bool   `json:"checked"`
	Newest      string `json:"newest,omitempty"`
	Newer       bool   `json:"newer"`
	InstalledBy string `json:"installedBy"`
	Dir         string `json:"dir"`
	ReleaseURL  string `json:"releaseUrl,omitempty"`
	Download    string `json:"download,omitempty"` // the file to download before running Command
	Command     string `json:"command,omitempty"`
}

// installers describes the ways of installation.
var installers = map[string]string{
	"deb": "a Debian package", "rpm": "an RPM package", "apk": "an Alpine package", "pacman": "an Arch Linux package",
	"homebrew": "Homebrew", "scoop": "Scoop", "winget": "winget", "script": "install.sh", "source": "make build",
	"archive": "an archive that was unpacked",
}

// UpgradeReport prints the versions and the next step.
func (t *Terminal) UpgradeReport(u Upgrade) {
	rows := [][]string{{"this program", u.Version}}
	if u.Checked {
		rows = append(rows, []string{"newest", u.Newest})
	}
	t.Pairs(append(rows, []string{"installed by", installers[u.InstalledBy]}, []string{"programs", u.Dir}))
	switch {
	case u.Checked && !u.Newer:
		t.Say("It is up to date.")
	default:
		t.Next("%s", upgradeStep(u))
	}
}

// upgradeStep returns how to upgrade.
func upgradeStep(u Upgrade) string {
	from := u.ReleaseURL
	if from == "" {
		from = "where you got the service"
	}
	switch {
	case u.Command == "":
		return fmt.Sprintf("download %s from %s, check it with SHA256SUMS, and unpack it over these programs", u.Download,
			from)
	case u.InstalledBy == "script" && u.ReleaseURL == "":
		return fmt.Sprintf("download install.sh, %s and SHA256SUMS from %s, then run `%s`", u.Download, from, u.Command)
	case u.Download != "":
		return fmt.Sprintf("download %s from %s, then run `%s`", u.Download, from, u.Command)
	}
	return "run `" + u.Command + "`"
}
