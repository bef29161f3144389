// Package uncleared records which disconnected real glasses may still show a picture. The adapter that shows pictures
// on a pair keeps a mark for the pair until the panel is known to be dark. The adapter outlives the daemon, so it can
// clear a pair and remove the mark after the daemon was killed. If the adapter is also killed, the mark stays, and the
// next daemon informs the user. Marks are empty files in a subdirectory of the state directory.
package uncleared

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

const folder = "glasses.uncleared"

// Pair identifies a pair of glasses.
type Pair struct{ DeviceModel, Name string }

// Next is the next step for the user if glasses are not cleared.
const Next = "connect the glasses and disconnect them again, which clears them, or switch them off"

// Notice describes what the wearer may see on glasses that are not cleared.
func Notice(name string) string {
	return name + " may still show an app's last picture: the connection ended before the panel was cleared"
}

// file returns the path of a pair's mark. Names are escaped, because they are received by radio.
func (p Pair) file(stateDir string) string {
	return filepath.Join(stateDir, folder, url.QueryEscape(p.DeviceModel)+" "+url.QueryEscape(p.Name))
}

// Mark records that the glasses may show a picture.
func Mark(stateDir string, p Pair) error {
	if err := os.MkdirAll(filepath.Join(stateDir, folder), 0o700); err != nil {
		return fmt.Errorf("mark the glasses as not cleared: %w", err)
	}
	f, err := os.OpenFile(p.file(stateDir), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("mark the glasses as not cleared: %w", err)
	}
	return f.Close()
}

// Unmark records that the glasses are dark, or that their state no longer matters.
func Unmark(stateDir string, p Pair) error {
	if err := os.Remove(p.file(stateDir)); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("mark the glasses as cleared: %w", err)
	}
	return nil
}

// Has reports whether a pair is marked.
func Has(stateDir string, p Pair) bool {
	_, err := os.Lstat(p.file(stateDir))
	return err == nil
}

// List returns the pairs that may show a picture. It ignores files that it cannot read.
func List(stateDir string) (list []Pair) {
	entries, _ := os.ReadDir(filepath.Join(stateDir, folder)) // usually the folder does not exist
	for _, e := range entries {
		model, name, _ := strings.Cut(e.Name(), " ")
		model, err := url.QueryUnescape(model)
		if name, err2 := url.QueryUnescape(name); err == nil && err2 == nil && name != "" {
			list = append(list, Pair{model, name})
		}
	}
	return list
}
