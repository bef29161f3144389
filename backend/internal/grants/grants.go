// Package grants defines what an account allows agents to do with a project's data: one level for each capability, and
// one for each field of the assistant's configuration. It contains no routes or SQL. The connection page and the
// browser simulator need no grant.
package grants

import (
	"fmt"
	"slices"
)

// Capability is the kind of data that a grant applies to.
type Capability string

// The capabilities that can be granted.
const (
	Assistant   Capability = "assistant_config"
	Credentials Capability = "credentials"
	Analytics   Capability = "analytics"
)

// Level is the extent of a grant.
type Level string

// The levels, in ascending order. Each includes the previous ones.
const (
	Off       Level = "off"
	Read      Level = "read"
	ReadWrite Level = "read_write"
)

// Levels lists the levels, in ascending order. Every capability and every field accepts each of them.
func Levels() []Level { return []Level{Off, Read, ReadWrite} }

// Allows reports whether l includes needed.
func (l Level) Allows(needed Level) bool { return l.rank() >= needed.rank() }

func (l Level) rank() int {
	switch l {
	case ReadWrite:
		return 2
	case Read:
		return 1
	}
	return 0
}

// Fields of the capability Assistant that have their own grant. GatewayUsage is a report rather than a setting: the
// cost of the project's calls through the gateway. For it, ReadWrite grants no more than Read.
const (
	RealtimeModel = "realtimeModel"
	Voice         = "voice"
	MemoryModel   = "memoryModel"
	TextModel     = "textModel"
	SessionMemory = "sessionMemory"
	Sounds        = "sounds"
	GatewayUsage  = "gatewayUsage"
)

// Fields lists all fields that have their own grant, in display order.
func Fields() []string { return append(Settings(), GatewayUsage) }

// Settings lists the fields that are settings in the assistant's config.
func Settings() []string {
	return []string{RealtimeModel, Voice, MemoryModel, TextModel, SessionMemory, Sounds}
}

// Grants holds the levels of one project.
type Grants struct {
	Assistant   map[string]Level // has every field in Fields
	Credentials Level
	Analytics   Level
}

// Default returns the built-in default, which applies to accounts that never changed their grants.
func Default() Grants {
	g := Grants{Assistant: map[string]Level{}, Credentials: ReadWrite, Analytics: Read}
	for _, f := range Fields() {
		g.Assistant[f] = ReadWrite
	}
	return g
}

// Of returns the level of a capability. For the assistant's config, it returns the level of field, or the highest level
// of all settings if field is empty.
func (g Grants) Of(c Capability, field string) Level {
	switch c {
	case Credentials:
		return g.Credentials
	case Analytics:
		return g.Analytics
	case Assistant:
		if field != "" {
			return g.Assistant[field]
		}
		highest := Off
		for _, f := range Settings() {
			if l := g.Assistant[f]; l.Allows(highest) {
				highest = l
			}
		}
		return highest
	}
	return Off
}

// Raises reports whether any level in after is higher than the same level in g.
func (g Grants) Raises(after Grants) bool {
	return !g.Credentials.Allows(after.Credentials) || !g.Analytics.Allows(after.Analytics) ||
		slices.ContainsFunc(Fields(), func(f string) bool { return !g.Assistant[f].Allows(after.Assistant[f]) })
}

// Require returns a *DeniedError unless the project's level includes needed.
func (g Grants) Require(project string, c Capability, field string, needed Level) error {
	if has := g.Of(c, field); !has.Allows(needed) {
		return &DeniedError{Project: project, Capability: c, Field: field, Needed: needed, Granted: has}
	}
	return nil
}

// DeniedError is returned if the project's grant is too low for a request.
type DeniedError struct {
	Project         string
	Capability      Capability
	Field           string // a field of the assistant's config, or empty
	Needed, Granted Level
}

// Error returns a message with the capability and the level needed.
func (e *DeniedError) Error() string {
	return fmt.Sprintf("the account grants agents %s for %s of %s, but %s is needed", e.Granted, name(e.Capability,
		e.Field),
		e.Project, e.Needed)
}
