package identity

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/service-dev/service/daemon/internal/statefile"
)

// The fields of install.json beside the id. Other fields are kept.
const (
	fieldNotice  = "noticeShownAt" // RFC 3339
	fieldVersion = "lastVersion"
)

// NoticeShownAt returns when the first-run notice was shown. It returns the zero time if the notice was not shown or
// the time cannot be read. It includes what other processes of the same install wrote.
func (i *Install) NoticeShownAt() time.Time {
	if at := i.noticed.Load(); at != nil {
		return *at
	}
	var text string
	if fields, err := i.read(); err != nil || json.Unmarshal(fields[fieldNotice], &text) != nil {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	i.noticed.Store(&at)
	return at
}

// SetNoticeShownAt records that the notice was shown.
func (i *Install) SetNoticeShownAt(at time.Time) error {
	if err := i.set(fieldNotice, at.UTC().Format(time.RFC3339)); err != nil {
		return err
	}
	i.noticed.Store(&at)
	return nil
}

// LastVersion returns the version of the service that last ran in this directory; empty if none was recorded.
func (i *Install) LastVersion() string {
	var version string
	if fields, err := i.read(); err != nil || json.Unmarshal(fields[fieldVersion], &version) != nil {
		return ""
	}
	return version
}

// SetLastVersion records the version that is running.
func (i *Install) SetLastVersion(version string) error { return i.set(fieldVersion, version) }

// read returns the fields of the file if the file still belongs to this install.
func (i *Install) read() (map[string]json.RawMessage, error) {
	data, err := statefile.Read(i.path, maxFile)
	if err != nil {
		return nil, err
	}
	id, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", i.path, err)
	}
	if id != i.id {
		return nil, fmt.Errorf("read %s: it now belongs to another install", i.path)
	}
	var fields map[string]json.RawMessage
	return fields, json.Unmarshal(data, &fields)
}

// set changes one field while it holds the lock.
func (i *Install) set(name, value string) error {
	return i.lock.Do(func() error { return i.change(name, value) })
}

func (i *Install) change(name, value string) error {
	fields, err := i.read()
	if err != nil {
		return err
	}
	if fields[name], err = json.Marshal(value); err != nil {
		return err
	}
	data, err := json.MarshalIndent(fields, "", "  ")
	if err != nil {
		return err
	}
	return statefile.Write(i.path, append(data, '\n'))
}
