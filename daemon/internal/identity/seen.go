package identity

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/service-dev/service/daemon/internal/statefile"
)

// fieldVersion is the field of install.json for the version that ran last. Unknown fields of the file are kept.
const fieldVersion = "lastVersion"

// Audience is a channel for the first-run notice. Its value is the name of the field that stores when the notice was
// shown, in RFC 3339.
type Audience string

// Audiences of the notice. Each sees the notice once.
const (
	Agents   Audience = "noticeShownAt"   // in a response to an agent
	Terminal Audience = "noticePrintedAt" // on a terminal
)

// NoticeShownAt returns when an audience saw the first-run notice. It returns the zero time if the audience has not
// seen the notice or the time cannot be read. It considers notices shown by other processes of the same install.
func (i *Install) NoticeShownAt(to Audience) time.Time {
	if at, ok := i.noticed.Load(to); ok {
		return at.(time.Time)
	}
	var text string
	if fields, err := i.read(); err != nil || json.Unmarshal(fields[string(to)], &text) != nil {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	i.noticed.Store(to, at)
	return at
}

// SetNoticeShownAt records that an audience saw the notice.
func (i *Install) SetNoticeShownAt(to Audience, at time.Time) error {
	if err := i.set(string(to), at.UTC().Format(time.RFC3339)); err != nil {
		return err
	}
	i.noticed.Store(to, at)
	return nil
}

// LastVersion returns the version of the service that last ran in this directory, or "" if none was recorded.
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

// set changes one field while holding the lock.
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
