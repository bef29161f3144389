package llmtest

import "net/http"

// Interfaces, named by their paths.
const (
	chat      = "chat/completions"
	responses = "responses"
	messages  = "messages"
)

// arguments lists the tokens of a tool call's arguments.
var arguments = []string{`{"city":`, `"Berlin"}`}

// toolToCall returns the name of the request's first tool, or "" if its last message is a tool result.
func (s *stream) toolToCall() string {
	tools, _ := s.c.Body["tools"].([]any)
	if len(tools) == 0 {
		return ""
	}
	said, _ := s.c.Body["messages"].([]any)
	if s.api == responses {
		said, _ = s.c.Body["input"].([]any)
	}
	if len(said) > 0 {
		last, _ := said[len(said)-1].(object)
		parts, _ := last["content"].([]any)
		for _, part := range append(parts, last) {
			one, _ := part.(object)
			if one["role"] == "tool" || one["type"] == "function_call_output" || one["type"] == "tool_result" {
				return ""
			}
		}
	}
	tool, _ := tools[0].(object)
	if function, ok := tool["function"].(object); ok {
		tool = function
	}
	name, _ := tool["name"].(string)
	return name
}

// wholeAnswer returns a non-streamed answer without its usage.
func (s *stream) wholeAnswer(text string) object {
	switch s.api {
	case responses:
		return object{"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "error": nil,
			"model": s.c.Model, "output": []any{s.outputItem("completed", text)}}
	case messages:
		return object{"id": "msg_1", "type": "message", "role": "assistant", "model": s.c.Model,
			"stop_reason": s.stopReason(), "stop_sequence": nil, "content": []any{s.block(text)}}
	}
	m := object{"role": "assistant", "content": text, "refusal": nil, "annotations": []any{}}
	if s.tool != "" {
		m["content"], m["tool_calls"] = nil, []any{s.chatCall(text)}
	}
	return object{"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": s.c.Model,
		"choices": []any{object{"index": 0, "finish_reason": s.stopReason(), "message": m}}}
}

// stopReason returns why the answer ended, in the terms of the chat and messages interfaces.
func (s *stream) stopReason() string {
	switch {
	case s.api == chat && s.tool != "":
		return "tool_calls"
	case s.api == chat:
		return "stop"
	case s.tool != "":
		return "tool_use"
	}
	return "end_turn"
}

func (s *stream) chatCall(text string) object {
	return object{"id": "call_1", "type": "function", "function": object{"name": s.tool, "arguments": text}}
}

// outputItem returns the output item of an answer in the responses interface.
func (s *stream) outputItem(status, text string) object {
	if s.tool != "" {
		return object{"type": "function_call", "id": "fc_1", "call_id": "call_1", "status": status, "name": s.tool,
			"arguments": text}
	}
	content := []any{}
	if status == "completed" {
		content = append(content, outputText(text))
	}
	return object{"type": "message", "id": "msg_1", "role": "assistant", "status": status, "content": content}
}

func outputText(text string) object {
	return object{"type": "output_text", "text": text, "annotations": []any{}}
}

// block returns the content block of an answer in the messages interface.
func (s *stream) block(text string) object {
	if s.tool == "" {
		return object{"type": "text", "text": text}
	}
	input := object{}
	if text != "" {
		input["city"] = "Berlin"
	}
	return object{"type": "tool_use", "id": "toolu_1", "name": s.tool, "input": input}
}

// first sends the events that precede the first token.
func (s *stream) first() {
	switch s.api {
	case responses:
		s.responsesEvent("response.created", object{"response": object{"id": "resp_1", "object": "response", "created_at": 1,
			"model": s.c.Model, "status": "in_progress", "output": []any{}, "usage": nil}})
		s.responsesEvent("response.output_item.added", object{"output_index": 0, "item": s.outputItem("in_progress", "")})
		if s.tool == "" {
			s.part("response.content_part.added", object{"part": outputText("")})
		}
	case messages:
		s.event("message_start", object{"type": "message_start", "message": object{"id": "msg_1", "type": "message",
			"role": "assistant", "content": []any{}, "model": s.c.Model, "stop_reason": nil, "stop_sequence": nil,
			"usage": object{"input_tokens": s.in, "output_tokens": 1}}})
		s.event("content_block_start", object{"type": "content_block_start", "index": 0, "content_block": s.block("")})
	default:
		delta := object{"role": "assistant", "content": ""}
		if s.tool != "" {
			call := s.chatCall("")
			call["index"] = 0
			delta["tool_calls"] = []any{call}
		}
		s.delta(delta, nil)
	}
}

func (s *stream) token(text string) bool {
	switch {
	case s.api == responses && s.tool != "":
		return s.responsesEvent("response.function_call_arguments.delta", object{"item_id": "fc_1", "output_index": 0,
			"delta": text})
	case s.api == responses:
		return s.part("response.output_text.delta", object{"delta": text, "logprobs": []any{}})
	case s.api == messages:
		delta := object{"type": "text_delta", "text": text}
		if s.tool != "" {
			delta = object{"type": "input_json_delta", "partial_json": text}
		}
		return s.event("content_block_delta", object{"type": "content_block_delta", "index": 0, "delta": delta})
	case s.tool != "":
		return s.delta(object{"tool_calls": []any{object{"index": 0, "function": object{"arguments": text}}}}, nil)
	}
	return s.delta(object{"content": text}, nil)
}

// last sends the final events and the usage report.
func (s *stream) last(text string) {
	report := s.usage
	if hides(s.c.Model) {
		report = nil
	}
	switch s.api {
	case responses:
		s.lastOfResponses(text, report)
	case messages:
		s.event("content_block_stop", object{"type": "content_block_stop", "index": 0})
		s.event("message_delta", object{"type": "message_delta",
			"delta": object{"stop_reason": s.stopReason(), "stop_sequence": nil}, "usage": report})
		s.afterUsage()
		s.event("message_stop", object{"type": "message_stop"})
	default:
		s.delta(object{}, s.stopReason())
		if report != nil {
			s.chatUsage(report)
		}
		s.afterUsage()
		s.write("data: [DONE]\n\n")
	}
}

func (s *stream) lastOfResponses(text string, report any) {
	if s.tool == "" {
		s.part("response.output_text.done", object{"text": text, "logprobs": []any{}})
		s.part("response.content_part.done", object{"part": outputText(text)})
	} else {
		s.responsesEvent("response.function_call_arguments.done", object{"item_id": "fc_1", "output_index": 0,
			"name": s.tool, "arguments": text})
	}
	s.responsesEvent("response.output_item.done", object{"output_index": 0, "item": s.outputItem("completed", text)})
	answer := s.wholeAnswer(text)
	answer["usage"] = report
	s.responsesEvent("response.completed", object{"response": answer})
	s.afterUsage()
}

// afterUsage misbehaves between the usage report and the end of the stream, as selected by the model's name.
func (s *stream) afterUsage() {
	switch s.c.Model {
	case CutAfterUsage:
		panic(http.ErrAbortHandler)
	case HangsAfterUsage:
		s.p.hang(s.r)
	}
}

func (s *stream) chatUsage(report any) {
	switch s.c.Model {
	case UsageNull:
		s.event("", object{"choices": nil, "usage": report})
	case UsageNoChoices:
		s.event("", object{"usage": report})
	case UsageWithDelta:
		s.chunk([]any{object{"index": 0, "delta": object{}}}, report)
	case UsageTwice:
		s.chunk([]any{}, object{"prompt_tokens": 1, "completion_tokens": 1})
		s.chunk([]any{}, report)
	default:
		s.chunk([]any{}, report)
	}
}

// delta sends a chunk of the chat interface. reason is nil except in the last chunk.
func (s *stream) delta(delta object, reason any) bool {
	return s.chunk([]any{object{"index": 0, "delta": delta, "finish_reason": reason}}, nil)
}

func (s *stream) chunk(choices []any, usage any) bool {
	return s.event("", object{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": s.c.Model,
		"choices": choices, "usage": usage})
}

// part sends a text event of the responses interface.
func (s *stream) part(name string, data object) bool {
	data["item_id"], data["output_index"], data["content_index"] = "msg_1", 0, 0
	return s.responsesEvent(name, data)
}

func (s *stream) responsesEvent(name string, data object) bool {
	data["type"], data["sequence_number"] = name, s.sequence
	s.sequence++
	return s.event(name, data)
}
