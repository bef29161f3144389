package assistantscript

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/service-dev/service/internal/problem"
)

// IDs of the model that a script implements.
const (
	Assistant = "assistant"
	Model     = "script"
)

// ErrNoModel is returned for a request that names another model.
var ErrNoModel = &Failure{Status: http.StatusNotFound, Type: "not_found_error", Code: "model_not_found", Param: "model",
	Message: "there is no such model: ask for assistant or script"}

// Request contains the fields that a script reads from the body of POST /v1/chat/completions.
type Request struct {
	Model string
	// Stream requests chunks. IncludeUsage requests a final chunk with the usage.
	Stream, IncludeUsage bool
	// Memory is the user's profile, set by the caller; empty if nothing is known or the call does not remember.
	Memory string

	text       string // text of the last message
	toolResult string // name of the tool whose result the last message is; empty for a user message
	tools      []string
	toolCalls  int // number of tool calls in the conversation
	bytes      int // length of all texts of the conversation
}

type chatBody struct {
	Model         string        `json:"model"`
	Stream        *bool         `json:"stream"`
	StreamOptions *chatOptions  `json:"stream_options"`
	Messages      []chatMessage `json:"messages"`
	Tools         []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
	ToolChoice jsontext.Value `json:"tool_choice"`
}

type chatOptions struct {
	IncludeUsage *bool `json:"include_usage"`
}

type chatMessage struct {
	Role       string         `json:"role"`
	Content    jsontext.Value `json:"content"`
	ToolCallID string         `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// ParseRequest decodes a request body. It rejects repeated names and ignores fields that scripts do not use. On
// failure it returns a *Failure.
func ParseRequest(body []byte) (*Request, error) {
	var b chatBody
	if err := json.Unmarshal(body, &b); err != nil {
		var wrong *json.SemanticError
		if errors.As(err, &wrong) {
			at := strings.ReplaceAll(strings.TrimPrefix(string(wrong.JSONPointer), "/"), "/", ".")
			return nil, invalid(problem.CodeInvalidValue, at, "%s has a wrong type", at)
		}
		return nil, invalid(problem.CodeInvalidJSON, "", "the body is not JSON, or a name occurs twice")
	}
	r := &Request{Model: b.Model, Stream: b.Stream != nil && *b.Stream}
	r.IncludeUsage = b.StreamOptions != nil && b.StreamOptions.IncludeUsage != nil && *b.StreamOptions.IncludeUsage
	if r.Model != Assistant && r.Model != Model {
		return nil, ErrNoModel
	}
	if string(b.ToolChoice) != `"none"` {
		for _, t := range b.Tools {
			r.tools = append(r.tools, t.Function.Name)
		}
	}
	return r, r.read(b.Messages)
}

// read fills in the fields that describe the conversation.
func (r *Request) read(messages []chatMessage) error {
	if len(messages) == 0 {
		return invalid(problem.CodeInvalidValue, "messages", "messages is missing or empty")
	}
	called := map[string]string{} // tool names by call id
	for _, m := range messages {
		if !slices.Contains([]string{"system", "developer", "user", "assistant", "tool"}, m.Role) {
			return invalid(problem.CodeInvalidValue, "messages", "a message has an unknown role")
		}
		text, err := textOf(m.Content)
		if err != nil {
			return err
		}
		r.bytes += len(text)
		for _, c := range m.ToolCalls {
			called[c.ID] = c.Function.Name
			r.toolCalls++
			r.bytes += len(c.Function.Name) + len(c.Function.Arguments)
		}
		r.text, r.toolResult = strings.ToValidUTF8(text[:min(len(text), maxMatched)], ""), ""
		if m.Role != "tool" {
			continue
		}
		if r.toolResult = called[m.ToolCallID]; r.toolResult == "" {
			return invalid(problem.CodeInvalidValue, "messages", "a tool message answers no call of an earlier message")
		}
	}
	if last := messages[len(messages)-1].Role; last != "user" && last != "tool" {
		return invalid(problem.CodeInvalidValue, "messages",
			"the last message has the role %s: it must be user or tool", last)
	}
	return nil
}

// textOf joins the text parts of a message's content.
func textOf(content jsontext.Value) (string, error) {
	switch content.Kind() {
	case 0, 'n':
		return "", nil
	case '"':
		var text string
		return text, json.Unmarshal(content, &text)
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(content, &parts); err != nil {
		return "", invalid(problem.CodeInvalidValue, "messages",
			"the content of a message is neither a text nor a list of parts")
	}
	var texts []string
	for _, p := range parts {
		texts = append(texts, p.Text)
	}
	return strings.Join(texts, " "), nil
}
