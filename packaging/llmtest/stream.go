package llmtest

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// stream is one answer.
type stream struct {
	p     *Provider
	w     http.ResponseWriter
	r     *http.Request
	c     *Call
	api   string
	usage any
}

type object = map[string]any

// whole sends an answer at once.
func (s *stream) whole(text string) {
	var answer object
	switch s.api {
	case "responses":
		answer = object{"id": "resp_1", "object": "response", "status": "completed", "error": nil, "model": s.c.Model,
			"output": []any{object{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
				"content": []any{object{"type": "output_text", "text": text, "annotations": []any{}}}}}}
	case "messages":
		answer = object{"id": "msg_1", "type": "message", "role": "assistant", "model": s.c.Model,
			"stop_reason": "end_turn", "stop_sequence": nil, "content": []any{object{"type": "text", "text": text}}}
	default:
		answer = object{"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": s.c.Model,
			"choices": []any{object{"index": 0, "finish_reason": "stop", "message": s.message(text)}}}
	}
	if !hides(s.c.Model) {
		answer["usage"] = s.usage
	}
	if s.c.Model == ErrorFrame {
		answer = object{"error": object{"message": "Overloaded", "type": "server_error"}}
	}
	body, _ := json.Marshal(answer)
	s.w.Header().Set("Content-Type", "application/json")
	switch s.c.Model {
	case WrongLength:
		s.w.Header().Set("Content-Length", "100000")
	case Gzip:
		s.w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(s.w)
		_, _ = packed.Write(body)
		_ = packed.Close()
		return
	}
	if s.c.Model == ErrorFrame {
		_, _ = s.w.Write(body)
		return
	}
	s.p.enter(s.c, int(outOf(s.usage, text)), true)
	_, _ = s.w.Write(body)
}

// outOf returns the true count of output tokens of a whole answer.
func outOf(usage any, text string) int64 {
	if u, ok := usage.(object); ok {
		for _, name := range []string{"completion_tokens", "output_tokens"} {
			if n, ok := u[name].(int64); ok {
				return n
			}
		}
	}
	return int64(len(strings.Fields(text)))
}

// message is the message of a whole chat answer. It calls the first tool if the request has one and no result yet.
func (s *stream) message(text string) object {
	m := object{"role": "assistant", "content": text, "refusal": nil, "annotations": []any{}}
	if name := s.tool(); name != "" {
		m["content"] = nil
		m["tool_calls"] = []any{object{"id": "call_1", "type": "function",
			"function": object{"name": name, "arguments": `{"city":"Berlin"}`}}}
	}
	return m
}

// tool returns the name of the tool that the answer calls.
func (s *stream) tool() string {
	tools, _ := s.c.Body["tools"].([]any)
	messages, _ := s.c.Body["messages"].([]any)
	if len(tools) == 0 || len(messages) == 0 || messages[len(messages)-1].(object)["role"] == "tool" {
		return ""
	}
	function, _ := tools[0].(object)["function"].(object)
	name, _ := function["name"].(string)
	return name
}

// send streams an answer, one event for each token.
func (s *stream) send(tokens []string) {
	model := s.c.Model
	switch model {
	case ErrorFrame:
		s.event("error", object{"type": "error", "error": object{"message": "Overloaded", "type": "overloaded_error"}})
		return
	case LongLine:
		tokens = append([]string{strings.Repeat("x", 2<<20)}, tokens...)
	}
	s.first()
	for i, token := range tokens {
		s.p.enter(s.c, i+1, false)
		if !s.token(token) {
			return
		}
		if i > 0 {
			continue
		}
		switch model {
		case WaitsInside:
			s.p.wait(s.r)
		case HangsInside:
			<-s.r.Context().Done()
			return
		case ErrorInside:
			s.event("error", object{"type": "error", "error": object{"message": "Overloaded", "type": "overloaded_error"}})
			return
		}
	}
	if model == CutBeforeUsage {
		panic(http.ErrAbortHandler)
	}
	s.last(strings.Join(tokens, ""))
	s.p.enter(s.c, len(tokens), true)
}

// first sends what comes before the first token.
func (s *stream) first() {
	switch s.api {
	case "responses":
		s.event("response.created", object{"type": "response.created", "sequence_number": 0,
			"response": object{"id": "resp_1", "object": "response", "status": "in_progress", "usage": nil}})
	case "messages":
		u := object{"input_tokens": s.c.In, "output_tokens": 1}
		s.event("message_start", object{"type": "message_start", "message": object{"id": "msg_1", "type": "message",
			"role": "assistant", "content": []any{}, "model": s.c.Model, "stop_reason": nil, "usage": u}})
		s.event("content_block_start", object{"type": "content_block_start", "index": 0,
			"content_block": object{"type": "text", "text": ""}})
	default:
		s.chunk([]any{object{"index": 0, "delta": object{"role": "assistant", "content": ""}, "finish_reason": nil}}, nil)
	}
}

func (s *stream) token(text string) bool {
	switch s.api {
	case "responses":
		return s.event("response.output_text.delta", object{"type": "response.output_text.delta", "item_id": "msg_1",
			"output_index": 0, "content_index": 0, "sequence_number": 1, "delta": text})
	case "messages":
		return s.event("content_block_delta", object{"type": "content_block_delta", "index": 0,
			"delta": object{"type": "text_delta", "text": text}})
	}
	return s.chunk([]any{object{"index": 0, "delta": object{"content": text}, "finish_reason": nil}}, nil)
}

// last sends the end and the report of the usage.
func (s *stream) last(text string) {
	report := s.usage
	if hides(s.c.Model) {
		report = nil
	}
	switch s.api {
	case "responses":
		s.event("response.completed", object{"type": "response.completed", "sequence_number": 2, "response": object{
			"id": "resp_1", "object": "response", "status": "completed", "error": nil, "usage": report,
			"output": []any{object{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
				"content": []any{object{"type": "output_text", "text": text, "annotations": []any{}}}}}}})
		return
	case "messages":
		s.event("content_block_stop", object{"type": "content_block_stop", "index": 0})
		s.event("message_delta", object{"type": "message_delta",
			"delta": object{"stop_reason": "end_turn", "stop_sequence": nil}, "usage": report})
		s.event("message_stop", object{"type": "message_stop"})
		return
	}
	s.chunk([]any{object{"index": 0, "delta": object{}, "finish_reason": "stop"}}, nil)
	if report != nil {
		s.chatUsage(report)
	}
	switch s.c.Model {
	case CutAfterUsage:
		panic(http.ErrAbortHandler)
	case HangsAfterUsage:
		<-s.r.Context().Done()
		return
	}
	s.write("data: [DONE]\n\n")
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

func (s *stream) chunk(choices []any, usage any) bool {
	return s.event("", object{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": s.c.Model,
		"choices": choices, "usage": usage})
}

// event writes one event. It returns false if the client has gone.
func (s *stream) event(name string, data object) bool {
	text, _ := json.Marshal(data)
	out := "data: " + string(text) + "\n\n"
	if name != "" && s.api != "chat/completions" {
		out = "event: " + name + "\n" + out
	}
	return s.write(out)
}

func (s *stream) write(text string) bool {
	if s.c.Model == CRLF {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	size := len(text)
	if s.c.Model == OneByte {
		size = 1 // which also splits characters
	}
	control := http.NewResponseController(s.w)
	for ; text != ""; text = text[min(size, len(text)):] {
		if _, err := io.WriteString(s.w, text[:min(size, len(text))]); err != nil || control.Flush() != nil {
			return false
		}
	}
	return s.r.Context().Err() == nil
}
