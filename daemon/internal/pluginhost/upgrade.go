package pluginhost

import (
	"errors"
	"os"
	"path/filepath"
	"time"
)

// upgradeWindow is how long after the last change of the installed files a mismatch between them counts as an upgrade
// in progress. Package managers replace files one after the other. upgradePause is how long to wait before trying
// again.
const (
	upgradeWindow = time.Minute
	upgradePause  = 5 * time.Second
)

// restartReplaced is the fix hint if another version was installed after the daemon started. Either it was installed
// side by side, and the daemon still uses its own folder's files, or it replaced the adapters in that folder.
const restartReplaced = "Run `servicectl daemon restart`: the service was installed again after this daemon " +
	"started. If that does not help, install it once more."

// explainMismatch marks a refusal due to mixed versions as temporary if the files are recent, or if their folder does
// not exist. In the latter case this version was removed, and the daemon ends as soon as no app is attached.
func (a *adapter) explainMismatch(path string, err error) error {
	var r *refusal
	if a.added != nil || !errors.As(err, &r) || !r.mismatch {
		return err
	}
	last, exists := lastChange(a.host.opts.Dir, path)
	age := a.host.now().Sub(last)
	if exists && (age >= upgradeWindow || age <= -upgradeWindow) { // setting the clock back must not hide it for long
		if a.host.opts.Elsewhere == nil || !a.host.opts.Elsewhere() {
			return err
		}
		return &refusal{reason: r.reason, mismatch: true, fixHint: restartReplaced}
	}
	hint := "Try again in a few seconds. If this error persists for more than a minute, install the service again."
	if !exists {
		hint = "Try again in a few seconds. If this error persists because an app is attached, end the app or run " +
			"`servicectl daemon restart`: the new version starts then."
	}
	return &refusal{reason: r.reason, mismatch: true, upgrading: true, fixHint: hint}
}

// lastChange returns the time of the last change of the manifest, the adapter or the list of files in their folder.
// exists is false if the folder does not exist. Package managers set a file's modification time to its build time, so
// lastChange uses the time of installation instead.
func lastChange(dir, path string) (last time.Time, exists bool) {
	for _, file := range []string{filepath.Join(dir, Manifest), path} {
		if info, err := os.Stat(file); err == nil && installedAt(info).After(last) {
			last = installedAt(info)
		}
	}
	info, err := os.Stat(dir)
	if err == nil && info.ModTime().After(last) {
		last = info.ModTime()
	}
	return last, err == nil
}

// IsUpgrading reports whether a refusal is temporary because an upgrade is being installed.
func IsUpgrading(err error) bool {
	var r *refusal
	return errors.As(err, &r) && r.upgrading
}
