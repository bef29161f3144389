//go:build unix

package e2e

import (
	"encoding/json"
	"maps"
	"testing"
)

var citySchema = map[string]any{
	"type":       "object",
	"properties": map[string]any{"city": map[string]any{"type": "string"}},
}

// modelTools maps each interface to the same tool in its format.
var modelTools = map[string]map[string]any{
	"chat":      {"type": "function", "function": map[string]any{"name": "weather", "parameters": citySchema}},
	"responses": {"type": "function", "name": "weather", "parameters": citySchema, "strict": false},
	"messages":  {"name": "weather", "input_schema": citySchema},
}

// askBody returns the body of a call with a user's message. The model names are those written by
// llmtest.WriteCatalogue.
func askBody(api, model string, more map[string]any) map[string]any {
	said := []any{map[string]any{"role": "user", "content": "Hello"}}
	body := map[string]any{"model": model, "messages": said}
	switch api {
	case "responses":
		body = map[string]any{"model": "resp-" + model, "input": said}
	case "messages":
		body["model"], body["max_tokens"] = "msg-"+model, 100
	}
	maps.Copy(body, more)
	return body
}

// part returns an element of a list in a response, or nil.
func part(from map[string]any, list string) map[string]any {
	all, _ := from[list].([]any)
	if len(all) == 0 {
		return nil
	}
	one, _ := all[0].(map[string]any)
	return one
}

// answerText returns the text of a whole response.
func answerText(api string, answer map[string]any) string {
	var text any
	switch api {
	case "chat":
		message, _ := part(answer, "choices")["message"].(map[string]any)
		text = message["content"]
	case "responses":
		text = part(part(answer, "output"), "content")["text"]
	case "messages":
		text = part(answer, "content")["text"]
	}
	s, _ := text.(string)
	return s
}

// answerTool appends the tool call of the response and the tool's result to the body of a request.
func answerTool(t *testing.T, api string, body, answer map[string]any) {
	t.Helper()
	var said, name, arguments any
	list, result := "messages", map[string]any{}
	switch api {
	case "chat":
		said, _ = part(answer, "choices")["message"].(map[string]any)
		call := part(said.(map[string]any), "tool_calls")
		function, _ := call["function"].(map[string]any)
		name, arguments = function["name"], function["arguments"]
		result = map[string]any{"role": "tool", "tool_call_id": call["id"], "content": "sunny"}
	case "responses":
		call := part(answer, "output")
		list, said, name, arguments = "input", call, call["name"], call["arguments"]
		result = map[string]any{"type": "function_call_output", "call_id": call["call_id"], "output": "sunny"}
	case "messages":
		call := part(answer, "content")
		input, _ := json.Marshal(call["input"])
		name, arguments = call["name"], string(input)
		said = map[string]any{"role": "assistant", "content": []any{call}}
		result = map[string]any{"role": "user", "content": []any{
			map[string]any{"type": "tool_result", "tool_use_id": call["id"], "content": "sunny"}}}
	}
	if name != "weather" || arguments != `{"city":"Berlin"}` {
		t.Fatalf("%s: the model calls %v with %v, want weather with Berlin", api, name, arguments)
	}
	body[list] = append(body[list].([]any), said, result)
}
