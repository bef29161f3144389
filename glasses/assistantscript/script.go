// Package assistantscript answers chat requests of apps with a script instead of a model, so that tests of apps are
// free and deterministic. A script is a JSON file with rules. The first rule that matches the end of the conversation
// determines the answer. The package parses scripts and requests and formats answers as in /v1/chat/completions. It is
// independent of files, HTTP and time.
package assistantscript

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/service-dev/service/internal/strictjson"
	"github.com/service-dev/service/internal/textfile"
)

// Limits of a script.
const (
	MaxFile      = 64 << 10 // bytes
	MaxRules     = 200
	MaxToolCalls = 16      // per reply
	MaxDelay     = 60_000  // ms
	maxContains  = 500     // characters
	maxPattern   = 200     // characters per pattern
	maxRemember  = 500     // characters of a line to remember
	maxPatterns  = 2000    // total instructions of all patterns, which bounds the time to match
	maxText      = 8000    // characters per reply
	maxMatched   = 4 << 10 // bytes of a message that conditions examine
	toolName     = `^[a-zA-Z0-9_-]{1,64}$`
	toolNameForm = "a name of 1 to 64 letters, digits, _ and -"
)

// Control characters and separators of lines, and a line without them that is not blank.
const (
	lineChars  = `\x00-\x1f\x7f-\x9f` + "\u2028\u2029"
	memoryLine = `^[^` + lineChars + `]*[^ ` + lineChars + `][^` + lineChars + `]*$`
)

// Script is the content of one script file.
type Script struct {
	Rules []Rule `json:"rules"`
}

// Rule sends Reply if it is the first rule whose condition holds.
type Rule struct {
	When  When  `json:"when"`
	Reply Reply `json:"reply"`
}

// When is a condition on the last message of a request and on the user's profile. All of its fields must hold.
type When struct {
	// Contains is text that the message must contain, ignoring case.
	Contains string `json:"contains,omitempty"`
	// Pattern is an RE2 regular expression that must match part of the message's text.
	Pattern string `json:"pattern,omitempty"`
	// ToolResult is the name of a tool. The message must be that tool's result, or a user message if ToolResult is
	// empty.
	ToolResult string `json:"toolResult,omitempty"`
	// Memory is text that the user's profile must contain, ignoring case.
	Memory string `json:"memory,omitempty"`
	// NoMemory, which is true or nil, requires that the profile is empty, as it is when the call does not remember.
	NoMemory *bool `json:"noMemory,omitempty"`
	// Always matches every message and cannot be combined with the other fields.
	Always bool `json:"always,omitempty"`

	pattern *regexp.Regexp
}

// Reply is the response of a rule. Exactly one of Text, ToolCall, ToolCalls and Error is set, and Remember at most
// beside one of the first three.
type Reply struct {
	Text      string     `json:"text,omitempty"`
	ToolCall  *ToolCall  `json:"toolCall,omitempty"`
	ToolCalls []ToolCall `json:"toolCalls,omitempty"`
	Error     *Error     `json:"error,omitempty"`
	// Remember is a line for the user's profile. A call adds it after its answer, a realtime conversation at its end.
	Remember string `json:"remember,omitempty"`
	// DelayMs is how long the reply takes, in milliseconds on the session's clock.
	DelayMs int64 `json:"delayMs,omitempty"`
}

// ToolCall calls one of the app's tools.
type ToolCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitempty"` // an object; {} if missing
}

// Error is an error response in the gateway's form.
type Error struct {
	Code    string `json:"code"`              // one of Codes
	Message string `json:"message,omitempty"` // defaults to the code's standard message
}

const ruleExample = `{"when": {"contains": "milk"}, "reply": {"text": "Milk is on the list."}}`

func ms(what string, low, high int64) strictjson.Rule {
	return strictjson.Rule{What: what, Min: &low, Max: &high}
}

// ListRules returns the strictjson rules for a list of script rules at place in a document.
func ListRules(place string) strictjson.Rules {
	rule := place + "[]"
	call := func(at string) strictjson.Rules {
		return strictjson.Rules{
			at:                {Required: []string{"name"}, Example: `{"name": "add_item", "arguments": {"item": "milk"}}`},
			at + ".name":      {What: "A tool that the request offers.", Pattern: toolName, Form: toolNameForm},
			at + ".arguments": {What: "{} if missing.", Object: true},
		}
	}
	rules := strictjson.Rules{
		place: {What: "The first that matches gives the answer.", MaxItems: MaxRules, Example: "[" + ruleExample + "]"},
		rule:  {Required: []string{"when", "reply"}, Example: ruleExample},
		rule + ".when": {What: "What must hold for the last message, and for what is known about the user.",
			AnyOf:   []string{"contains", "pattern", "toolResult", "memory", "noMemory", "always"},
			Example: `{"contains": "milk"}`},
		rule + ".when.contains": {What: "Part of its text, ignoring case.", MinLength: 1, MaxLength: maxContains},
		rule + ".when.pattern": {What: "A regular expression (RE2) for part of its text.", MinLength: 1,
			MaxLength: maxPattern},
		rule + ".when.toolResult": {What: "The tool whose result it is. Without it, the message must be the user's.",
			Pattern: toolName, Form: toolNameForm},
		rule + ".when.memory": {What: "Part of the user's profile, ignoring case.", MinLength: 1,
			MaxLength: maxContains},
		rule + ".when.noMemory": {What: "true: the user's profile is empty, or the call does not remember."},
		rule + ".when.always":   {What: "true, alone: any message."},
		rule + ".reply": {ExactlyOne: []string{"text", "toolCall", "toolCalls", "error"},
			Example: `{"text": "Milk is on the list."}`},
		rule + ".reply.text":       {MinLength: 1, MaxLength: maxText},
		rule + ".reply.toolCalls":  {MaxItems: MaxToolCalls, What: "Several calls in one answer."},
		rule + ".reply.error":      {Required: []string{"code"}, Example: `{"code": "provider_busy"}`},
		rule + ".reply.error.code": {Words: Codes()},
		rule + ".reply.error.message": {MinLength: 1, MaxLength: maxContains,
			What: "For the app; the code's own text if missing."},
		rule + ".reply.remember": {MinLength: 1, MaxLength: maxRemember, Pattern: memoryLine, Form: "one line of text",
			What: "A line for the user's profile, added after the answer, or at the end of a realtime conversation."},
		rule + ".reply.delayMs": ms("How long the answer takes, in milliseconds on the session's clock.", 0, MaxDelay),
	}
	for _, at := range []string{rule + ".reply.toolCall", rule + ".reply.toolCalls[]"} {
		for place, r := range call(at) {
			rules[place] = r
		}
	}
	return rules
}

var shape = sync.OnceValue(func() *strictjson.Shape[Script] {
	rules := ListRules("rules")
	rules[""] = strictjson.Rule{Required: []string{"rules"}, Example: `{"rules": [` + ruleExample + `]}`}
	return strictjson.Of[Script](rules)
})

// Parse decodes and checks a script. On failure it returns a *strictjson.Error whose path starts with rules[N].
func Parse(data []byte) (*Script, error) {
	if len(data) > MaxFile {
		return nil, &strictjson.Error{Beyond: true,
			Message: fmt.Sprintf("the script is %d bytes long, over the limit of %d", len(data), MaxFile)}
	}
	data, err := textfile.Decode(data)
	if err != nil {
		return nil, &strictjson.Error{Message: err.Error()}
	}
	var s Script
	if err := shape().Decode(data, &s); err != nil {
		return nil, err
	}
	if err := s.Check("rules"); err != nil {
		return nil, err
	}
	return &s, nil
}

// Check prepares a script that was decoded elsewhere and checks the constraints that involve several fields. place is
// the path of its rules in the document. On failure it returns a *strictjson.Error.
func (s *Script) Check(place string) error {
	refuse := func(at, message, want string) error {
		return &strictjson.Error{Path: at, Message: message, Want: want, Example: ruleExample, Beyond: true}
	}
	if len(s.Rules) == 0 {
		return refuse(place, "it is empty", "at least one rule")
	}
	size := 0
	for i := range s.Rules {
		rule, at := &s.Rules[i], fmt.Sprintf("%s[%d]", place, i)
		w := &rule.When
		alone := w.Contains+w.Pattern+w.ToolResult+w.Memory == ""
		if w.NoMemory != nil && !*w.NoMemory {
			if alone && !w.Always {
				return refuse(at+".when.noMemory", "it is false", "true, or no noMemory")
			}
			w.NoMemory = nil // earlier versions accepted it
		}
		if alone = alone && w.NoMemory == nil; w.Always != alone {
			return refuse(at+".when.always", "it is false or combined with other fields",
				"true and no other field, or no always")
		}
		if w.Memory != "" && w.NoMemory != nil {
			return refuse(at+".when.noMemory", "it is true together with memory", "only one of memory and noMemory")
		}
		if rule.Reply.Remember != "" && rule.Reply.Error != nil {
			return refuse(at+".reply.remember", "the answer is an error", "remember beside text, toolCall or toolCalls")
		}
		if w.Pattern != "" {
			cost, err := patternCost(w.Pattern)
			if err != nil {
				return refuse(at+".when.pattern", err.Error(), "a regular expression in RE2 syntax")
			}
			if size += cost; size > maxPatterns {
				return refuse(at+".when.pattern", "the patterns are too large in total", "fewer or smaller repetitions")
			}
			w.pattern = regexp.MustCompile(w.Pattern) // patternCost has already parsed it
		}
		if rule.Reply.ToolCalls != nil && len(rule.Reply.ToolCalls) == 0 {
			return refuse(at+".reply.toolCalls", "it is empty", "at least one call")
		}
	}
	return nil
}

// Remembers reports whether a rule depends on a user's profile or changes it.
func (s *Script) Remembers() bool {
	return slices.ContainsFunc(s.Rules, func(r Rule) bool {
		return r.When.Memory != "" || r.When.NoMemory != nil || r.Reply.Remember != ""
	})
}

// Encode returns the script as the content of a file.
func (s *Script) Encode() []byte { return encode(s) }

// containsFold reports whether text contains part, ignoring case.
func containsFold(text, part string) bool {
	return part == "" || strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

// holds reports whether the condition holds for r.
func (w *When) holds(r *Request) bool {
	switch {
	case w.Always:
		return true
	case r.toolResult != w.ToolResult:
		return false
	case w.NoMemory != nil && r.Memory != "" || !containsFold(r.Memory, w.Memory):
		return false
	case !containsFold(r.text, w.Contains):
		return false
	}
	return w.pattern == nil || w.pattern.MatchString(r.text)
}
