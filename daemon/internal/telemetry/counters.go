package telemetry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/service-dev/service/daemon/internal/statefile"
)

// countersName is the name of the counters' file, which is in the directory of the log.
const countersName = "state.json"

// maxHolders is the maximum number of backends recorded as holding events of this install.
const maxHolders = 16

// counters is the content of the file.
type counters struct {
	// Dropped is the number of lost events that have not been reported to the backend.
	Dropped int64 `json:"dropped"`
	// UploadedAt is the time of the last upload, in Unix ms. Uploaded is the number of events in it.
	UploadedAt int64 `json:"uploadedAt"`
	Uploaded   int   `json:"uploaded"`
	// Holders are the backends that have received events since they last erased them.
	Holders []string `json:"holders,omitempty"`
}

// counterFile stores the counters. The caller of a method that writes must hold the directory's lock.
type counterFile struct{ path string }

// read returns the counters. They are zero if the file cannot be parsed.
func (t counterFile) read() counters {
	var c counters
	data, err := statefile.Read(t.path, 64<<10)
	if err != nil || json.Unmarshal(data, &c) != nil || c.Dropped < 0 {
		return counters{}
	}
	return c
}

func (t counterFile) change(change func(*counters)) error {
	c := t.read()
	change(&c)
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return statefile.Write(t.path, append(data, '\n'))
}

// addDropped counts n events that will never be uploaded.
func (t counterFile) addDropped(n int64) error {
	if n == 0 {
		return nil
	}
	return t.change(func(c *counters) { c.Dropped += n })
}

// hold records that a backend holds events. Call it before the events are sent, because they may arrive even if the
// response is lost.
func (s *spool) hold(url string) error {
	if slices.Contains(s.counterFile.read().Holders, url) {
		return nil
	}
	return s.withLock(func() error {
		c := s.counterFile.read()
		if len(c.Holders) >= maxHolders {
			return fmt.Errorf("%d other backends already hold events of this install, the maximum; run servicectl telemetry "+
				"purge", len(c.Holders))
		}
		return s.counterFile.change(func(c *counters) { c.Holders = append(c.Holders, url) })
	})
}

// erased removes backends that no longer hold events. It removes the file if no backends are left.
func (s *spool) erased(urls []string) error {
	return s.withLock(func() error {
		left := slices.DeleteFunc(s.counterFile.read().Holders, func(url string) bool { return slices.Contains(urls, url) })
		if len(left) > 0 {
			return s.counterFile.change(func(c *counters) { c.Holders = left })
		}
		if err := os.Remove(s.counterFile.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}
