// Package grants defines what an account allows agents to do with a project's data: a level for each capability, and
// one for each field of the assistant's configuration. It decides and knows neither routes nor SQL. The connection page
// and the browser simulator need no grant.
package grants

import "fmt"

// Capability is the kind of data that a grant applies to.
type Capability string

// The capabilities.
const (
	Assistant   Capability = "assistant_config"
	Credentials Capability = "credentials"
	Analytics   Capability = "analytics"
)

// Level is how much a grant allows.
type Level string

// The levels. Each includes those before it.
const (
	Off       Level = "off"
	Read      Level = "read"
	ReadWrite Level = "read_write"
)

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

// Fields of the capability Assistant that have a grant each. GatewayUsage is not a setting: it is the cost of the
// project's calls through the gateway and can only be read.
const (
	RealtimeModel = "realtimeModel"
	Voice         = "voice"
	MemoryModel   = "memoryModel"
	TextModel     = "textModel"
	SessionMemory = "sessionMemory"
	Sounds        = "sounds"
	GatewayUsage  = "gatewayUsage"
)

// Fields lists them in the order in which they are displayed.
func Fields() []string { return append(Settings(), GatewayUsage) }

// Settings lists those that are fields of the assistant's config.
func Settings() []string {
	return []string{RealtimeModel, Voice, MemoryModel, TextModel, SessionMemory, Sounds}
}

// Levels lists the levels that a capability, or a field of it, can have.
func Levels(field string) []Level {
	if field == GatewayUsage {
		return []Level{Off, Read}
	}
	return []Level{Off, Read, ReadWrite}
}

// Grants are the levels of one project.
type Grants struct {
	Assistant   map[string]Level // every field of Fields
	Credentials Level
	Analytics   Level
}

// Default returns the grants of a project that nobody has changed.
func Default() Grants {
	g := Grants{Assistant: map[string]Level{}, Credentials: ReadWrite, Analytics: Read}
	for _, f := range Settings() {
		g.Assistant[f] = ReadWrite
	}
	g.Assistant[GatewayUsage] = Read
	return g
}

// Of returns the level of a capability. For the assistant's config it is that of field, or with field empty the
// highest of all its settings.
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

// Require returns a *DeniedError unless the level includes needed.
func (g Grants) Require(project string, c Capability, field string, needed Level) error {
	if has := g.Of(c, field); !has.Allows(needed) {
		return &DeniedError{Project: project, Capability: c, Field: field, Needed: needed, Granted: has}
	}
	return nil
}

// DeniedError is a refusal by a grant.
type DeniedError struct {
	Project         string
	Capability      Capability
	Field           string // of the assistant's config; may be empty
	Needed, Granted Level
}

// Error includes the capability and the level needed.
func (e *DeniedError) Error() string {
	return fmt.Sprintf("the account grants agents %s for %s of %s, %s is needed", e.Granted, name(e.Capability, e.Field),
		e.Project, e.Needed)
}
