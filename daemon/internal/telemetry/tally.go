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

// tallyName is the file of what became of events, beside the log.
const tallyName = "state.json"

// maxHolders bounds the backends that may hold events of this install at a time.
const maxHolders = 16

// tallied is its content.
type tallied struct {
	// Dropped counts events that were lost and not yet told to the backend.
	Dropped int64 `json:"dropped"`
	// UploadedAt is when the last batch was taken, Unix ms, and Uploaded how many events that was.
	UploadedAt int64 `json:"uploadedAt"`
	Uploaded   int   `json:"uploaded"`
	// Holders are the backends that were sent events which nobody erased since.
	Holders []string `json:"holders,omitempty"`
}

// tally keeps it; its methods that write are called under the lock.
type tally struct{ path string }

// read takes a file that cannot be understood for an empty one.
func (t tally) read() tallied {
	var c tallied
	data, err := statefile.Read(t.path, 64<<10)
	if err != nil || json.Unmarshal(data, &c) != nil || c.Dropped < 0 {
		return tallied{}
	}
	return c
}

func (t tally) change(change func(*tallied)) error {
	c := t.read()
	change(&c)
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return statefile.Write(t.path, append(data, '\n'))
}

// lose counts events that will never be sent.
func (t tally) lose(n int64) error {
	if n == 0 {
		return nil
	}
	return t.change(func(c *tallied) { c.Dropped += n })
}

// hold remembers, before events go to a backend, that it holds some: an answer may be lost and the events still be there.
func (s *spool) hold(url string) error {
	if slices.Contains(s.tally.read().Holders, url) {
		return nil
	}
	return s.alone(func() error {
		c := s.tally.read()
		if len(c.Holders) >= maxHolders {
			return fmt.Errorf("%d other backends hold events of this install, which is the most there may be; run servicectl telemetry purge", len(c.Holders))
		}
		return s.tally.change(func(c *tallied) { c.Holders = append(c.Holders, url) })
	})
}

// erased forgets holders that hold nothing any more, and with the last one the tally.
func (s *spool) erased(urls []string) error {
	return s.alone(func() error {
		left := slices.DeleteFunc(s.tally.read().Holders, func(url string) bool { return slices.Contains(urls, url) })
		if len(left) > 0 {
			return s.tally.change(func(c *tallied) { c.Holders = left })
		}
		if err := os.Remove(s.tally.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}
