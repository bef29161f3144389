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

// Valid reports whether l is one of the three levels.
func (l Level) Valid() bool { return l == Off || l == Read || l == ReadWrite }

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

// Fields of the assistant's configuration, each with its own grant.
const (
	RealtimeModel = "realtimeModel"
	Voice         = "voice"
	MemoryModel   = "memoryModel"
	SessionMemory = "sessionMemory"
	Sounds        = "sounds"
)

// Fields lists them in display order.
func Fields() []string { return []string{RealtimeModel, Voice, MemoryModel, SessionMemory, Sounds} }

// Grants are the levels of one project.
type Grants struct {
	Assistant   map[string]Level // every field of Fields
	Credentials Level
	Analytics   Level
}

// Default returns the grants of a project that nobody has changed.
func Default() Grants {
	g := Grants{Assistant: map[string]Level{}, Credentials: ReadWrite, Analytics: Read}
	for _, f := range Fields() {
		g.Assistant[f] = ReadWrite
	}
	return g
}

// Of returns the level of a capability. For the assistant's configuration it is the level of field, or if field is
// empty the highest of all fields.
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
		for _, l := range g.Assistant {
			if l.Allows(highest) {
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
