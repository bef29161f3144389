//go:build linux

package main

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/service-dev/service/test/llmtest"
)

// maxInput is the maximum cost of a call's input in micro-USD.
const maxInput = 5000

// modelCall is one call to a model, which may be a turn of a conversation.
type modelCall struct {
	id, api, model  string
	streamed, tools bool
	leaves          bool // its app disconnects once the provider has received the call
	output          int  // maximum number of output tokens
	outcome         string
	cause           error // how the connection of a turn broke, for the report

	talk    *conversation // nil for calls that are not turns
	sound   bool          // the turn has sound
	listens time.Duration // until the app interrupts the answer of a model that waits for it
}

func (c *modelCall) honest() bool {
	if c.talk != nil {
		return c.talk.honest()
	}
	return c.model == llmtest.Reasons || slices.Contains(honest, c.model)
}

// Kinds of calls, which precede how they ended.
const (
	ofCalls = "calls "
	ofTurns = "turns "
)

func (c *modelCall) kind() string {
	if c.talk != nil {
		return ofTurns
	}
	return ofCalls
}

// most returns the most that the account pays for a call without a true receipt.
func (c *modelCall) most() int64 {
	if c.talk != nil {
		return maxTurn
	}
	return llmtest.CataloguePrices.Out*int64(c.output) + maxInput
}

// least returns the least that the account pays for a call without a receipt. This is nothing, except if the app has
// disconnected although the provider was working: then it is the whole hold, which covers at least the whole output.
func (c *modelCall) least() int64 {
	switch {
	case c.outcome != left:
	case c.talk != nil && c.model == llmtest.Hangs:
		return llmtest.CatalogueVoicePrices.AudioOut * llmtest.VoiceOutput
	case c.talk != nil:
	case c.model == llmtest.Hangs, c.model == llmtest.HangsInside:
		return llmtest.CataloguePrices.Out * int64(c.output)
	}
	return 0
}

// callID returns the id of a call in the provider's records, which is the text that the app sent.
func callID(c llmtest.Call) string {
	said, _ := c.Body["messages"].([]any)
	if len(said) == 0 {
		said, _ = c.Body["input"].([]any)
	}
	if len(said) == 0 {
		return ""
	}
	message, _ := said[0].(map[string]any)
	return text(message, "content")
}

// body returns the request body of a call.
func (c *modelCall) body() []byte {
	said := []any{map[string]any{"role": "user", "content": c.id}}
	schema := map[string]any{"type": "object"}
	tool := map[string]any{"name": "weather", "input_schema": schema}
	body := map[string]any{"model": "msg-" + c.model, "messages": said, "max_tokens": c.output, "stream": c.streamed}
	switch c.api {
	case "chat":
		tool = map[string]any{"type": "function", "function": map[string]any{"name": "weather", "parameters": schema}}
		body["model"] = c.model
	case "responses":
		tool = map[string]any{"type": "function", "name": "weather", "parameters": schema, "strict": false}
		body = map[string]any{"model": "resp-" + c.model, "input": said, "max_output_tokens": c.output, "stream": c.streamed}
	}
	if c.tools {
		body["tools"] = []any{tool}
	}
	data, _ := json.Marshal(body)
	return data
}

// capped reports whether a cap refused the call.
func (c *modelCall) capped() bool { return c.outcome == capReached || c.outcome == capHeld }
