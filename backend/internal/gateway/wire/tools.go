package wire

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Limits on the tool calls collected from an answer.
const (
	maxToolCalls     = 64       // incomplete calls
	maxToolArguments = 64 << 10 // bytes of arguments per call
	maxToolName      = 1 << 10  // bytes; longer than the name of any tool
)

// ToolCall is a call of one of the app's tools in an answer. Arguments is the text of a JSON object, or other text if
// the model wrote something else.
type ToolCall struct{ Name, Arguments string }

// toolCalls collects tool calls while an answer is forwarded.
type toolCalls struct {
	open   map[int]*ToolCall // incomplete calls, by index
	closed []ToolCall
}

// CollectTools makes the answer collect tool calls, which TakeTools returns.
func (a *Answer) CollectTools() { a.tools = &toolCalls{open: map[int]*ToolCall{}} }

// TakeTools returns the calls completed since it was last called, in order.
func (a *Answer) TakeTools() []ToolCall {
	if a.tools == nil {
		return nil
	}
	taken := a.tools.closed
	a.tools.closed = nil
	return taken
}

type (
	toolFunction struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	chatCalls struct {
		ToolCalls []struct {
			Index    *int         `json:"index"`
			Function toolFunction `json:"function"`
		} `json:"tool_calls"`
	}
	// toolItem is an item of the responses interface or a block of the messages interface.
	toolItem struct {
		Type      string         `json:"type"`
		Name      string         `json:"name"`
		Arguments string         `json:"arguments"`
		Input     jsontext.Value `json:"input"`
	}
	toolEvent struct {
		Type    string `json:"type"`
		Choices []struct {
			Delta        chatCalls `json:"delta"`
			Message      chatCalls `json:"message"`
			FinishReason string    `json:"finish_reason"`
		} `json:"choices"`
		Item   toolItem   `json:"item"`   // responses interface
		Output []toolItem `json:"output"` // for a whole answer of the responses interface
		Index  int        `json:"index"`  // messages interface
		Block  toolItem   `json:"content_block"`
		Delta  struct {
			PartialJSON string `json:"partial_json"`
		} `json:"delta"`
		Content []toolItem `json:"content"` // messages interface, whole answer
	}
)

// toolMarks lists marker texts for each interface. Every event about tool calls contains at least one of them.
var toolMarks = map[API][]string{
	Chat:      {`"tool_calls"`, `"finish_reason"`},
	Responses: {`"response.output_item.done"`},
	Messages:  {`"content_block_start"`, `"content_block_stop"`, `"partial_json"`},
}

// event parses an event of a stream.
func (t *toolCalls) event(api API, data []byte) {
	if !slices.ContainsFunc(toolMarks[api], func(mark string) bool { return bytes.Contains(data, []byte(mark)) }) {
		return
	}
	var e toolEvent
	switch {
	case json.Unmarshal(data, &e, lenient...) != nil: // apps cannot parse it either
	case api == Chat:
		for _, c := range e.Choices {
			t.chat(c.Delta)
			if c.FinishReason != "" {
				t.closeAll()
			}
		}
	case api == Responses:
		t.item(e.Item)
	case e.Block.Type == "tool_use":
		t.add(e.Index, e.Block.Name, "")
	case e.Type == "content_block_delta" && t.open[e.Index] != nil:
		t.add(e.Index, "", e.Delta.PartialJSON)
	case e.Type == "content_block_stop":
		t.close(e.Index)
	}
}

// whole parses an answer that is not streamed.
func (t *toolCalls) whole(data []byte) {
	var e toolEvent
	if json.Unmarshal(data, &e, lenient...) != nil {
		return
	}
	for _, c := range e.Choices {
		t.chat(c.Message)
	}
	t.closeAll()
	for _, item := range slices.Concat(e.Output, e.Content) {
		t.item(item)
	}
}

func (t *toolCalls) chat(c chatCalls) {
	for i, call := range c.ToolCalls {
		index := i
		if call.Index != nil {
			index = *call.Index
		}
		t.add(index, call.Function.Name, call.Function.Arguments)
	}
}

// add appends a part to a call.
func (t *toolCalls) add(index int, name, arguments string) {
	c := t.open[index]
	if c == nil {
		if len(t.open) >= maxToolCalls {
			return
		}
		c = &ToolCall{}
		t.open[index] = c
	}
	if len(c.Name) <= maxToolName {
		c.Name += name
	}
	if len(c.Arguments) <= maxToolArguments { // longer arguments are refused, so ignore further parts
		c.Arguments += arguments
	}
}

// item adds the complete call in an item.
func (t *toolCalls) item(i toolItem) {
	switch i.Type {
	case "function_call":
		t.complete(ToolCall{i.Name, i.Arguments})
	case "tool_use":
		t.complete(ToolCall{i.Name, string(i.Input)})
	}
}

// complete adds a complete call, unless its name is too long for a tool.
func (t *toolCalls) complete(c ToolCall) {
	if len(c.Name) <= maxToolName {
		t.closed = append(t.closed, c)
	}
}

// close marks a call as complete.
func (t *toolCalls) close(index int) {
	if c := t.open[index]; c != nil {
		delete(t.open, index)
		c.Arguments = cmp.Or(c.Arguments, "{}")
		t.complete(*c)
	}
}

func (t *toolCalls) closeAll() {
	for _, index := range slices.Sorted(maps.Keys(t.open)) {
		t.close(index)
	}
}
