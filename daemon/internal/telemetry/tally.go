package telemetry

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"github.com/service-dev/service/daemon/internal/statefile"
)

// tallyName is the file of what became of events, beside the log.
const tallyName = "state.json"

// tallied is its content.
type tallied struct {
	// Dropped counts events that were lost and not yet told to the backend.
	Dropped int64 `json:"dropped"`
	// UploadedAt is when the last batch was taken, Unix ms, and Uploaded how many events that was.
	UploadedAt int64 `json:"uploadedAt"`
	Uploaded   int   `json:"uploaded"`
}

// tally keeps it; its methods that write are called under the spool's locks.
type tally struct{ path string }

// read takes a file that cannot be understood for an empty one: it counts, it decides nothing.
func (t tally) read() tallied {
	var c tallied
	data, err := statefile.Read(t.path, 4<<10)
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

func (t tally) forget() error {
	if err := os.Remove(t.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
