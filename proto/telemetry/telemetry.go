// Package telemetry lists what the service reports about its use: each event, its fields and the wire format. The
// daemon records no other data, the backend accepts no other data, and the privacy page prints this list. The package
// is independent of consent and of how events are stored or sent.
package telemetry

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/service-dev/service/internal/secretscan"
)

// Names of the events.
const (
	InstallStarted = "install.started"
	InstallUpdated = "install.updated"
	LoginInitiated = "account.login_initiated"
	LoginCompleted = "account.login_completed"
	Linked         = "account.linked"
	ToolCalled     = "tool.called"
)

// Outcomes of LoginCompleted.
const (
	OutcomeSuccess        = "success"
	OutcomeCodeExpired    = "code_expired"
	OutcomeUserDenied     = "user_denied"
	OutcomeNetworkError   = "network_error"
	OutcomePollingAborted = "polling_aborted"
)

// Kind is the JSON form of a field.
type Kind string

// Kinds of fields.
const (
	Word    Kind = "word"    // a string of at most MaxWord bytes: letters, digits and . _ - + / @ space; no credential
	Name    Kind = "name"    // the name of a program: a Word that looks like a name, or Other
	Version Kind = "version" // a Word that looks like a version, or Other
	Number  Kind = "number"  // an integer from 0 to 2^53
)

// Other replaces a name or version that does not look like one.
const Other = "other"

// Limits of words and batches. MaxWord and MaxBody are in bytes.
const (
	MaxWord  = 64
	MaxBatch = 200
	MaxBody  = 256 << 10
)

// Field is one field of an event.
type Field struct {
	Name string
	Kind Kind
	// What describes the field, for the documentation.
	What string
}

// Description is one event of the list.
type Description struct {
	Name string
	// When describes when the event occurs, for the documentation.
	When   string
	Fields []Field
}

var (
	version = Field{"version", Version, "version of the service"}
	system  = Field{"os", Word, "operating system, e.g. linux"}
	arch    = Field{"arch", Word, "processor, e.g. amd64"}
)

// List returns all events in reading order. The caller must not modify the result.
func List() []Description { return list }

var list = []Description{
	{InstallStarted, "the daemon runs for the first time", []Field{version, system, arch}},
	{InstallUpdated, "the daemon runs for the first time in a newer version", []Field{
		{"previous", Version, "previous version"}, version, system, arch,
	}},
	{ToolCalled, "an agent or a person called a tool", []Field{
		{"tool", Word, "name of the tool"},
		{"outcome", Word, "ok, a status or an error code"},
		{"durationMs", Number, "how long it took, in milliseconds"},
		{"client", Name, "name of the program as sent over MCP, or other if that does not look like a name"},
		{"clientVersion", Version, "its version, or other"},
		version, system, arch,
	}},
	{LoginInitiated, "linking an account begins", nil},
	{LoginCompleted, "linking an account ends, with or without success", []Field{
		{"outcome", Word, "success, code_expired, user_denied, network_error or polling_aborted"},
	}},
	{Linked, "an account was linked", nil},
}

// described maps event names to descriptions.
var described = func() map[string]*Description {
	m := make(map[string]*Description, len(list))
	for i := range list {
		m[list[i].Name] = &list[i]
	}
	return m
}()

// Of returns the event with the given name.
func Of(name string) (Description, bool) {
	d, ok := described[name]
	if !ok {
		return Description{}, false
	}
	return *d, true
}

// Event is one event as stored and sent. A header identifies the sender once per batch.
type Event struct {
	// ID is a canonical UUID of version 7, created with the event. An event that is sent twice thus counts once.
	ID string `json:"id"`
	// At is the time of the event in RFC 3339, in UTC with milliseconds.
	At     string `json:"at"`
	Name   string `json:"name"`
	Fields Fields `json:"fields,omitempty"`
}

// Fields contains the fields of an event as JSON, by name.
type Fields map[string]json.RawMessage

// Batch is the body of an upload.
type Batch struct {
	Events []Event `json:"events"`
	// Dropped is the number of events lost since the last batch before they could be sent, for example because the spool
	// was full.
	Dropped int64 `json:"dropped,omitempty"`
}

// field returns the index of a field, or -1.
func (d *Description) field(name []byte) int {
	return slices.IndexFunc(d.Fields, func(f Field) bool { return f.Name == string(name) })
}

// text returns the value of a JSON string, or an empty one for null. It copies only strings with escapes.
func text(value []byte) (s []byte, ok bool) {
	if n := len(value); n >= 2 && value[0] == '"' && bytes.IndexByte(value, '\\') < 0 {
		return value[1 : n-1], true
	}
	var unescaped string
	err := json.Unmarshal(value, &unescaped)
	return []byte(unescaped), err == nil
}

// isNumber reports whether s is an integer from 0 to 2^53 in JSON, without sign, fraction, exponent or leading zero.
func isNumber(s string) bool {
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

// inWord marks the bytes that words may contain.
var inWord = func() (in [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._+/@ -") {
		in[c] = true
	}
	return in
}()

func isWord(s string) bool {
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

// shown returns the start of a name chosen by the sender, for use in an error. It replaces a name that is not a plain
// word or that may contain a credential.
func shown(name string) string {
	start := name[:min(len(name), 40)]
	if !isWord(start) || secretscan.ContainsToken(name) {
		return "(not a name)"
	}
	return start
}
