// Package telemetry is the one list of what the service tells about its use: each event, each field that it
// may carry, and the shape in which it travels. The daemon writes nothing else down, the backend takes nothing else,
// and the privacy pages print this list. The package knows neither consent nor how events are kept or sent.
package telemetry

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/service-dev/service/proto/secretscan"
)

// The events.
const (
	InstallStarted = "install.started"
	InstallUpdated = "install.updated"
	LoginInitiated = "account.login_initiated"
	LoginCompleted = "account.login_completed"
	Linked         = "account.linked"
	ToolCalled     = "tool.called"
)

// The outcomes of LoginCompleted.
const (
	OutcomeSuccess        = "success"
	OutcomeCodeExpired    = "code_expired"
	OutcomeUserDenied     = "user_denied"
	OutcomeNetworkError   = "network_error"
	OutcomePollingAborted = "polling_aborted"
)

// Kind tells how a field looks in JSON.
type Kind string

// The kinds of fields.
const (
	Word    Kind = "word"    // a string of at most MaxWord bytes: letters, digits and . _ - + / @ space; no credential
	Name    Kind = "name"    // what a program calls itself: a Word that reads like a name, or Other
	Version Kind = "version" // a Word that reads like a version, or Other
	Number  Kind = "number"  // an integer from 0 to 2^53
)

// Other stands for a name or a version that does not read like one.
const Other = "other"

// Bounds. A batch holds at most MaxBatch events and MaxBody bytes of JSON.
const (
	MaxWord  = 64
	MaxBatch = 200
	MaxBody  = 256 << 10
)

// Field is one thing that an event may carry.
type Field struct {
	Name string
	Kind Kind
	// What says to people what it holds.
	What string
}

// Description is one event of the list.
type Description struct {
	Name string
	// When says to people when it happens.
	When   string
	Fields []Field
}

var (
	version = Field{"version", Version, "version of the service"}
	system  = Field{"os", Word, "operating system, e.g. linux"}
	arch    = Field{"arch", Word, "processor, e.g. amd64"}
)

// List is every event in the order in which people read it. The caller leaves it as it is.
func List() []Description { return list }

var list = []Description{
	{InstallStarted, "the daemon runs for the first time", []Field{version, system, arch}},
	{InstallUpdated, "the daemon runs for the first time in a newer version", []Field{{"previous", Version, "version before"}, version, system, arch}},
	{ToolCalled, "an agent or a person called a tool", []Field{
		{"tool", Word, "name of the tool"},
		{"outcome", Word, "ok, a status or an error code"},
		{"durationMs", Number, "how long it took, in milliseconds"},
		{"client", Name, "name of the program, as MCP gives it, or other where that does not read like a name"},
		{"clientVersion", Version, "its version, or other"},
		version, system, arch,
	}},
	{LoginInitiated, "linking an account begins", nil},
	{LoginCompleted, "linking an account ends, however it ends", []Field{{"outcome", Word,
		"success, code_expired, user_denied, network_error or polling_aborted"}}},
	{Linked, "an account was linked", nil},
}

// described finds an event by its name.
var described = func() map[string]*Description {
	m := make(map[string]*Description, len(list))
	for i := range list {
		m[list[i].Name] = &list[i]
	}
	return m
}()

// Of finds an event of the list.
func Of(name string) (Description, bool) {
	d, ok := described[name]
	if !ok {
		return Description{}, false
	}
	return *d, true
}

// Event is one event as it is kept and sent. Who sends it is told by a header, once for a batch.
type Event struct {
	// ID is a UUID of version 7 in its canonical form, made when the event happened: a batch that is sent again counts once.
	ID string `json:"id"`
	// At is when it happened, RFC 3339 in UTC with milliseconds.
	At     string                     `json:"at"`
	Name   string                     `json:"name"`
	Fields map[string]json.RawMessage `json:"fields,omitempty"`
}

// Batch is the body of an upload.
type Batch struct {
	Events []Event `json:"events"`
	// Dropped counts events that were lost before they could be sent since the last batch, e.g. evicted from a full spool.
	Dropped int64 `json:"dropped,omitempty"`
}

// Check tells what is wrong with the name and fields of an event: both ends hold it to the same list.
func (e Event) Check() error {
	d, ok := described[e.Name]
	if !ok {
		return fmt.Errorf("there is no event of the name %q", cut(e.Name))
	}
	for name, value := range e.Fields {
		f := d.field(name)
		if f < 0 {
			return fmt.Errorf("%s has no field of the name %q", e.Name, cut(name))
		}
		if err := d.Fields[f].check(value); err != nil {
			return fmt.Errorf("%s: %s: %w", e.Name, name, err)
		}
	}
	return nil
}

// field gives the place of a field, or -1.
func (d *Description) field(name string) int {
	return slices.IndexFunc(d.Fields, func(f Field) bool { return f.Name == name })
}

func (f Field) check(value json.RawMessage) error {
	switch f.Kind {
	case Number:
		if !isNumber(value) {
			return errors.New("it is not an integer from 0 to 2^53")
		}
	default:
		if s := ""; json.Unmarshal(value, &s) != nil || !fits(f.Kind, s) {
			return fmt.Errorf("it is not a %s of at most %d bytes", f.Kind, MaxWord)
		}
	}
	return nil
}

// isNumber tells whether JSON is an integer from 0 to 2^53 as people write it: no sign, fraction, exponent or leading zero.
func isNumber[T ~[]byte | ~string](s T) bool {
	if len(s) == 0 || len(s) > 16 || s[0] == '0' && len(s) > 1 {
		return false
	}
	n := int64(0)
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
		n = 10*n + int64(s[i]-'0')
	}
	return n <= 1<<53
}

// inWord are the bytes of words.
var inWord = func() (in [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+/@ -") {
		in[c] = true
	}
	return in
}()

func isWord[T ~[]byte | ~string](s T) bool {
	if len(s) == 0 || len(s) > MaxWord {
		return false
	}
	for i := range len(s) {
		if !inWord[s[i]] {
			return false
		}
	}
	return !secretscan.ContainsToken(s)
}

func cut(s string) string { return s[:min(len(s), 40)] }
