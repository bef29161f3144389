package assistantscript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/service-dev/service/internal/problem"
)

// Answer is a script's response to a request.
type Answer struct {
	// Delay is how long the response takes on the session's clock.
	Delay time.Duration
	// Failure is set if the response is an error. The other fields are then empty.
	Failure *Failure
	Text    string
	Calls   []Call
	// Remember is a line for the user's profile, for Merge; empty if there is none.
	Remember string
	Usage    Usage
}

// Call is a tool call in an answer.
type Call struct {
	// ID is unique within the conversation.
	ID, Name string
	// Arguments is a JSON object, encoded as text.
	Arguments string
}

// Usage counts tokens. Four bytes of text count as one token, because a script has no tokenizer.
type Usage struct {
	In    int `json:"prompt_tokens"`
	Out   int `json:"completion_tokens"`
	Total int `json:"total_tokens"`
}

// Answer returns the answer of the first rule that matches r. It depends only on the script and the
// request.
func (s *Script) Answer(r *Request) Answer {
	for i := range s.Rules {
		if s.Rules[i].When.holds(r) {
			return s.Rules[i].Reply.answer(r, i)
		}
	}
	what := "what the user said"
	if r.toolResult != "" {
		what = "a result of " + r.toolResult
	}
	return Answer{Failure: invalid(problem.CodeNoRule, "messages",
		"no rule of the assistant script matches %s: add one, or a last one with when {\"always\": true}", what)}
}

func (reply *Reply) answer(r *Request, rule int) Answer {
	a := Answer{Delay: time.Duration(reply.DelayMs) * time.Millisecond, Text: reply.Text, Remember: reply.Remember}
	if reply.Error != nil {
		a.Failure = reply.Error.failure()
		return a
	}
	calls := reply.ToolCalls
	if reply.ToolCall != nil {
		calls = []ToolCall{*reply.ToolCall}
	}
	size := len(a.Text)
	for _, c := range calls {
		if !slices.Contains(r.tools, c.Name) {
			return Answer{Failure: invalid(problem.CodeToolNotOffered, "tools",
				"rules[%d] of the assistant script calls %s, which the request does not offer", rule, c.Name)}
		}
		call := Call{ID: fmt.Sprintf("call_%d", r.toolCalls+len(a.Calls)+1), Name: c.Name, Arguments: c.arguments()}
		a.Calls = append(a.Calls, call)
		size += len(call.Name) + len(call.Arguments)
	}
	a.Usage = Usage{In: (r.bytes + 3) / 4, Out: (size + 3) / 4}
	a.Usage.Total = a.Usage.In + a.Usage.Out
	return a
}

func (c ToolCall) arguments() string {
	var compact bytes.Buffer
	if len(c.Arguments) == 0 || json.Compact(&compact, c.Arguments) != nil {
		return "{}"
	}
	return compact.String()
}

func (a *Answer) finishReason() string {
	if a.Calls != nil {
		return "tool_calls"
	}
	return "stop"
}

// JSON objects of the chat completions interface.
type (
	completion struct {
		ID      string   `json:"id"`
		Object  string   `json:"object"`
		Created int64    `json:"created"`
		Model   string   `json:"model"`
		Choices []choice `json:"choices"`
		Usage   Usage    `json:"usage"`
	}
	choice struct {
		Index        int     `json:"index"`
		Message      message `json:"message"`
		LogProbs     *string `json:"logprobs"`
		FinishReason string  `json:"finish_reason"`
	}
	message struct {
		Role      string     `json:"role"`
		Content   *string    `json:"content"`
		Refusal   *string    `json:"refusal"`
		ToolCalls []toolCall `json:"tool_calls,omitempty"`
	}
	toolCall struct {
		Index    *int     `json:"index,omitempty"` // only in chunks
		ID       string   `json:"id,omitempty"`
		Type     string   `json:"type,omitempty"`
		Function function `json:"function"`
	}
	function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	}
	chunk struct {
		ID      string        `json:"id"`
		Object  string        `json:"object"`
		Created int64         `json:"created"`
		Model   string        `json:"model"`
		Choices []chunkChoice `json:"choices"`
		Usage   *Usage        `json:"usage,omitempty"`
	}
	chunkChoice struct {
		Index        int     `json:"index"`
		Delta        delta   `json:"delta"`
		FinishReason *string `json:"finish_reason"`
	}
	delta struct {
		Role      string     `json:"role,omitempty"`
		Content   *string    `json:"content,omitempty"`
		ToolCalls []toolCall `json:"tool_calls,omitempty"`
	}
)

// Completion returns the whole answer as a chat.completion with this ID. created is a Unix time in seconds.
func (a *Answer) Completion(id string, created int64) []byte {
	m := message{Role: "assistant"}
	if a.Text != "" {
		m.Content = &a.Text
	}
	for _, c := range a.Calls {
		m.ToolCalls = append(m.ToolCalls, toolCall{ID: c.ID, Type: "function",
			Function: function{Name: c.Name, Arguments: c.Arguments}})
	}
	return encode(completion{ID: id, Object: "chat.completion", Created: created, Model: Model, Usage: a.Usage,
		Choices: []choice{{Message: m, FinishReason: a.finishReason()}}})
}

// Events returns the answer as a stream of chat.completion.chunk events, each followed by a blank line. Text is sent
// word by word, and each tool call in two parts.
func (a *Answer) Events(id string, created int64, includeUsage bool) [][]byte {
	var events [][]byte
	send := func(choices []chunkChoice, usage *Usage) {
		data := encode(chunk{ID: id, Object: "chat.completion.chunk", Created: created, Model: Model, Choices: choices,
			Usage: usage})
		events = append(events, slices.Concat([]byte("data: "), data, []byte("\n\n")))
	}
	say := func(d delta) { send([]chunkChoice{{Delta: d}}, nil) }
	say(delta{Role: "assistant", Content: new(string)})
	for word := range strings.SplitAfterSeq(a.Text, " ") {
		if word != "" {
			say(delta{Content: &word})
		}
	}
	for i, c := range a.Calls {
		say(delta{ToolCalls: []toolCall{{Index: &i, ID: c.ID, Type: "function", Function: function{Name: c.Name}}}})
		say(delta{ToolCalls: []toolCall{{Index: &i, Function: function{Arguments: c.Arguments}}}})
	}
	reason := a.finishReason()
	send([]chunkChoice{{FinishReason: &reason}}, nil)
	if includeUsage {
		send([]chunkChoice{}, &a.Usage)
	}
	return append(events, []byte("data: [DONE]\n\n"))
}

// encode returns v as JSON. v must have a type of this package, so encoding cannot fail. Characters are not escaped for
// HTML, because that could make a script exceed its size limit.
func encode(v any) []byte {
	var data bytes.Buffer
	e := json.NewEncoder(&data)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("assistantscript: " + err.Error())
	}
	return bytes.TrimSuffix(data.Bytes(), []byte("\n"))
}
