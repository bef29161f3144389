package tools

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Schemas are written as JSON, because that is what an agent reads; these pieces are the same for many tools.

// Schemas name no dialect: MCP says that they are JSON Schema 2020-12.

// inputSchema builds a closed object.
func inputSchema(properties, required string) json.RawMessage {
	if required != "" {
		required = `,"required":[` + required + `]`
	}
	return compact(`{"type":"object","properties":{` + properties + `}` + required + `,"additionalProperties":false}`)
}

// outputSchema builds the one schema of a tool's answers: its successes, its errors, and for gated tools auth_required.
// required lists what a success always holds.
func outputSchema(properties, required string, gated bool) json.RawMessage {
	all := []string{properties, errorProperties}
	either := []string{`{"required":[` + required + `]}`, `{"required":["code","message","retryable","fixHint"]}`}
	if gated {
		all = append(all, authProperties)
	}
	return compact(`{"type":"object","properties":{` + strings.Join(all, ",") + `},"anyOf":[` + strings.Join(either, ",") + `]}`)
}

const errorProperties = `
	"code":{"type":"string","description":"Why there is no other answer: auth_required, or the code of an error."},
	"message":{"type":"string","description":"What happened."},
	"retryable":{"type":"boolean","description":"Whether the same call may succeed later."},
	"fixHint":{"type":"string","description":"The next step."}`

const authProperties = `
	"reason":{"type":"string","enum":["not_linked","revoked","expired","corrupt","other_backend"],"description":"With auth_required: what is wrong with the link."},
	"deviceCode":{"type":"string","description":"With auth_required: pass it to completeAuthLink. Not for the person."},
	"userCode":{"type":"string","description":"With auth_required: show it to the person, who compares it with the page."},
	"verificationUrl":{"type":"string","format":"uri","description":"With auth_required: show it to the person, who opens it."},
	"expiresInSeconds":{"type":"integer","minimum":0,"description":"With auth_required: how long the code is still valid."},
	"browserOpened":{"type":"boolean","description":"Whether a page was opened in the person's browser."}`

const summaryProperty = `"summary":{"type":"string","description":"The answer in a sentence."}`

const sessionProperties = `
	"sessionId":{"type":"string"},
	"project":{"type":"string","description":"The app id the session belongs to."},
	"platform":{"type":"string"},
	"deviceModel":{"type":"string","description":"The glasses that are simulated."},
	"sessionUrl":{"type":"string","format":"uri","description":"The simulator page for the person, who signs in there."},
	"appEndpoint":{"type":"string","format":"uri","description":"The WebSocket address the app attaches to."},
	"expiresAt":{"anyOf":[{"type":"string","format":"date-time"},{"type":"null"}],"description":"When the session ends unless it is used before."}`

// A value that may be null is written as anyOf: clients that map schemas onto one type each refuse a list of types.

// compact drops the white space that makes the pieces readable here. The pieces are constants: a mistake in one shows in
// every test of this package.
func compact(text string) json.RawMessage {
	var out bytes.Buffer
	if err := json.Compact(&out, []byte(text)); err != nil {
		panic("schema: " + err.Error())
	}
	return out.Bytes()
}

// shownDepth is how many levels of an answer's properties a compact schema names: its own.
const shownDepth = 1

// Compact returns an output schema as it travels in the list of tools. Clients check answers with it and show it to no
// model, so that it names properties and types and nothing else: no prose, and nothing of what is the same in the answers
// of every tool, the fields of an error and of auth_required. It holds for every answer that the whole schema holds for.
func Compact(schema json.RawMessage) json.RawMessage {
	var whole map[string]any
	if json.Unmarshal(schema, &whole) != nil {
		return schema
	}
	delete(whole, "anyOf") // which of the common fields belong together
	if properties, ok := whole["properties"].(map[string]any); ok {
		for _, name := range commonFields() {
			delete(properties, name)
		}
	}
	data, err := json.Marshal(bare(whole, shownDepth))
	if err != nil {
		return schema
	}
	return data
}

// commonFields are the properties that every tool's whole schema has.
func commonFields() []string {
	var common map[string]json.RawMessage
	if err := json.Unmarshal([]byte("{"+errorProperties+","+authProperties+"}"), &common); err != nil {
		panic("schema: " + err.Error())
	}
	return sortedKeys(common)
}

// bare takes descriptions out of a schema, and the properties of objects that lie deeper than depth.
func bare(schema any, depth int) any {
	switch s := schema.(type) {
	case []any:
		for i := range s {
			s[i] = bare(s[i], depth)
		}
	case map[string]any:
		delete(s, "description")
		properties, _ := s["properties"].(map[string]any)
		delete(s, "properties")
		for key, value := range s {
			s[key] = bare(value, depth)
		}
		for name, value := range properties {
			properties[name] = bare(value, depth-1)
		}
		if properties != nil && depth > 0 {
			s["properties"] = properties
		}
	}
	return schema
}
