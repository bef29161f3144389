//go:build unix

package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/internal/rendezvous"
)

// TestLogIsBoundedWhileRunning checks that the log also rotates while the daemon runs, because a managed daemon may
// run for months.
func TestLogIsBoundedWhileRunning(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, path string){
		"": func(*testing.T, string) {},
		"cannot be set aside": func(t *testing.T, path string) {
			if err := os.MkdirAll(filepath.Join(path+".1", "x"), 0o700); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := rendezvous.PathsOf(short(t))
			if err != nil {
				t.Fatal(err)
			}
			if err := prepareDirs(p); err != nil {
				t.Fatal(err)
			}
			log, file, err := openLog(p, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			path := filepath.Join(p.Dir, rendezvous.LogDir, rendezvous.LogName)
			spoil(t, path)
			line := strings.Repeat("x", 100<<10)
			for range 2*maxLogSize/len(line) + 3 {
				log.Info(line)
			}
			log.Info("the last")
			data, err := os.ReadFile(path)
			if err != nil || len(data) > maxLogSize+2*len(line) || !strings.Contains(string(data), "the last") {
				t.Errorf("the log has %d bytes (error %v); want at most one line over the limit, with the last line",
					len(data), err)
			}
			if info, err := os.Stat(path + ".1"); err != nil || info.Mode().IsRegular() &&
				(info.Size() < maxLogSize || info.Size() > maxLogSize+2*int64(len(line))) {
				t.Errorf("the old log is %v (error %v); want a regular file within the limit", info, err)
			}
		})
	}
}
