package model

import (
	"encoding/json"
	"net/http"
	"strings"
)

// part is one part of a message's content on the wire.
type part struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	Content json.RawMessage `json:"content"`
	// ToolUseID is the id of the call that a result belongs to.
	ToolUseID string `json:"tool_use_id"`
}

// answerOf decodes content that is either a string or a list of parts.
func answerOf(raw json.RawMessage) Answer {
	var a Answer
	if json.Unmarshal(raw, &a.Text) == nil {
		return a
	}
	var parts []part
	_ = json.Unmarshal(raw, &parts)
	for _, p := range parts {
		if strings.Contains(p.Type, "image") {
			a.Images++
		}
		a.Text += p.Text
	}
	return a
}

// responses is OpenAI's Responses API.
type responses struct{}

func (responses) read(body []byte) (conversation, error) {
	var in struct {
		Stream bool
		Tools  []struct {
			Type, Name string
			Tools      []struct{ Name string }
		}
		Input json.RawMessage
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return conversation{}, err
	}
	c := conversation{stream: in.Stream}
	for _, t := range in.Tools {
		c.tools = append(c.tools, tool{name: t.Name})
		for _, inner := range t.Tools {
			c.tools = append(c.tools, tool{name: inner.Name, namespace: t.Name})
		}
	}
	var items []struct {
		Type   string
		CallID string `json:"call_id"`
		Output json.RawMessage
	}
	_ = json.Unmarshal(in.Input, &items) // a string contains no tool results
	for _, item := range items {
		if item.Type == "function_call_output" {
			c.answered(item.CallID, answerOf(item.Output))
		}
	}
	return c, nil
}

func (responses) write(w http.ResponseWriter, r reply, stream bool) {
	item := map[string]any{"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
		"content": []any{map[string]any{"type": "output_text", "text": r.text, "annotations": []any{}}}}
	if r.tool.name != "" {
		item = map[string]any{"type": "function_call", "id": "fc_1", "call_id": r.id, "name": r.tool.name,
			"arguments": r.arguments, "status": "completed"}
		if r.tool.namespace != "" {
			item["namespace"] = r.tool.namespace
		}
	}
	whole := map[string]any{"id": "resp_1", "object": "response", "status": "completed", "model": "scripted",
		"output": []any{item},
		"usage": map[string]any{"input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
			"input_tokens_details":  map[string]any{"cached_tokens": 0},
			"output_tokens_details": map[string]any{"reasoning_tokens": 0}}}
	if !stream {
		writeJSON(w, whole)
		return
	}
	begun := map[string]any{"id": "resp_1", "object": "response", "status": "in_progress", "model": "scripted",
		"output": []any{}}
	writeEvents(w,
		event{"response.created", map[string]any{"type": "response.created", "response": begun}},
		event{"response.output_item.added", map[string]any{"type": "response.output_item.added", "output_index": 0,
			"item": item}},
		event{"response.output_item.done", map[string]any{"type": "response.output_item.done", "output_index": 0,
			"item": item}},
		event{"response.completed", map[string]any{"type": "response.completed", "response": whole}})
}

// chat is OpenAI's Chat Completions API, which many other services implement.
type chat struct{}

func (chat) read(body []byte) (conversation, error) {
	var in struct {
		Stream   bool
		Tools    []struct{ Function struct{ Name string } }
		Messages []struct {
			Role       string
			ToolCallID string `json:"tool_call_id"`
			Content    json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return conversation{}, err
	}
	c := conversation{stream: in.Stream}
	for _, t := range in.Tools {
		c.tools = append(c.tools, tool{name: t.Function.Name})
	}
	for _, m := range in.Messages {
		a := answerOf(m.Content)
		switch {
		case m.Role == "tool":
			c.answered(m.ToolCallID, a)
		case m.Role == "user" && len(c.answers) > 0: // a tool message contains text only, and pictures follow it
			c.answers[len(c.answers)-1].Images += a.Images
		}
	}
	return c, nil
}

func (chat) write(w http.ResponseWriter, r reply, stream bool) {
	message, reason := map[string]any{"role": "assistant", "content": r.text}, "stop"
	if r.tool.name != "" {
		call := map[string]any{"index": 0, "id": r.id, "type": "function",
			"function": map[string]any{"name": r.tool.name, "arguments": r.arguments}}
		message, reason = map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{call}}, "tool_calls"
	}
	usage := map[string]any{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
	head := func(object string, choice, usage any) map[string]any {
		return map[string]any{"id": "chatcmpl-1", "object": object, "created": 1, "model": "scripted",
			"choices": []any{choice}, "usage": usage}
	}
	if !stream {
		writeJSON(w, head("chat.completion", map[string]any{"index": 0, "message": message, "finish_reason": reason}, usage))
		return
	}
	writeEvents(w,
		event{"", head("chat.completion.chunk", map[string]any{"index": 0, "delta": message, "finish_reason": nil}, nil)},
		event{"", head("chat.completion.chunk", map[string]any{"index": 0, "delta": map[string]any{},
			"finish_reason": reason}, usage)},
		event{"", "[DONE]"})
}

// messages is Anthropic's Messages API.
type messages struct{}

func (messages) read(body []byte) (conversation, error) {
	var in struct {
		Stream   bool
		Tools    []struct{ Name string }
		Messages []struct{ Content json.RawMessage }
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return conversation{}, err
	}
	c := conversation{stream: in.Stream}
	for _, t := range in.Tools {
		c.tools = append(c.tools, tool{name: t.Name})
	}
	for _, m := range in.Messages {
		var parts []part
		_ = json.Unmarshal(m.Content, &parts) // a string contains no tool results
		for _, p := range parts {
			if p.Type == "tool_result" {
				c.answered(p.ToolUseID, answerOf(p.Content))
			}
		}
	}
	return c, nil
}

func (messages) write(w http.ResponseWriter, r reply, stream bool) {
	block, reason := map[string]any{"type": "text", "text": r.text}, "end_turn"
	begun, delta := map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": r.text}
	if r.tool.name != "" {
		block, reason = map[string]any{"type": "tool_use", "id": r.id, "name": r.tool.name,
			"input": json.RawMessage(r.arguments)}, "tool_use"
		begun = map[string]any{"type": "tool_use", "id": r.id, "name": r.tool.name, "input": map[string]any{}}
		delta = map[string]any{"type": "input_json_delta", "partial_json": r.arguments}
	}
	usage := map[string]any{"input_tokens": 1, "output_tokens": 1}
	whole := map[string]any{"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted",
		"content":     []any{block},
		"stop_reason": reason, "stop_sequence": nil, "usage": usage}
	if !stream {
		writeJSON(w, whole)
		return
	}
	empty := map[string]any{"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted",
		"content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": usage}
	writeEvents(w,
		event{"message_start", map[string]any{"type": "message_start", "message": empty}},
		event{"content_block_start", map[string]any{"type": "content_block_start", "index": 0, "content_block": begun}},
		event{"content_block_delta", map[string]any{"type": "content_block_delta", "index": 0, "delta": delta}},
		event{"content_block_stop", map[string]any{"type": "content_block_stop", "index": 0}},
		event{"message_delta", map[string]any{"type": "message_delta",
			"delta": map[string]any{"stop_reason": reason, "stop_sequence": nil}, "usage": map[string]any{"output_tokens": 1}}},
		event{"message_stop", map[string]any{"type": "message_stop"}})
}

// gemini is Google's generateContent.
type gemini struct{}

func (gemini) read(body []byte) (conversation, error) {
	type inline struct {
		InlineData *struct{ MimeType string } `json:"inlineData"`
	}
	var in struct {
		Tools []struct {
			FunctionDeclarations []struct{ Name string } `json:"functionDeclarations"`
		}
		Contents []struct {
			Parts []struct {
				inline
				FunctionResponse *struct {
					ID       string
					Response json.RawMessage
					Parts    []inline
				} `json:"functionResponse"`
			}
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return conversation{}, err
	}
	var c conversation
	for _, t := range in.Tools {
		for _, f := range t.FunctionDeclarations {
			c.tools = append(c.tools, tool{name: f.Name})
		}
	}
	for _, content := range in.Contents {
		for _, p := range content.Parts {
			switch {
			case p.FunctionResponse != nil:
				c.answered(p.FunctionResponse.ID, Answer{Text: string(p.FunctionResponse.Response),
					Images: len(p.FunctionResponse.Parts)})
			case p.InlineData != nil && len(c.answers) > 0:
				c.answers[len(c.answers)-1].Images++
			}
		}
	}
	return c, nil
}

func (gemini) write(w http.ResponseWriter, r reply, stream bool) {
	said := map[string]any{"text": r.text}
	if r.tool.name != "" {
		said = map[string]any{"functionCall": map[string]any{"id": r.id, "name": r.tool.name,
			"args": json.RawMessage(r.arguments)}}
	}
	whole := map[string]any{
		"candidates": []any{map[string]any{"index": 0, "finishReason": "STOP",
			"content": map[string]any{"role": "model", "parts": []any{said}}}},
		"usageMetadata": map[string]any{"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
		"modelVersion":  "scripted",
	}
	if !stream {
		writeJSON(w, whole)
		return
	}
	writeEvents(w, event{"", whole})
}
