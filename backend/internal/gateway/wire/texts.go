package wire

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Roles of the lines of a conversation.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
)

// Line is what a user or an assistant said.
type Line struct{ Role, Text string }

// said is a message of any interface.
type said struct {
	Type    string         `json:"type"`
	Role    string         `json:"role"`
	Content jsontext.Value `json:"content"`
}

// textParts are the types of a message's parts that contain what was said, and not for example the result of a tool.
var textParts = []string{"text", "input_text", "output_text"}

// text returns the text of a message, which is one string or a list of parts.
func (m said) text() string {
	if text, ok := stringOf(m.Content); ok {
		return text
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if m.Content.Kind() != '[' || json.Unmarshal(m.Content, &parts, lenient...) != nil {
		return ""
	}
	var texts []string
	for _, p := range parts {
		if slices.Contains(textParts, p.Type) {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// Lines returns what the user and the assistant have said in the messages of a request. It leaves out instructions and
// the results of tools.
func (r *Request) Lines() (lines []Line) {
	var body struct {
		Messages []said         `json:"messages"`
		Input    jsontext.Value `json:"input"`
	}
	if json.Unmarshal(r.body, &body, lenient...) != nil {
		return nil
	}
	if text, ok := stringOf(body.Input); ok {
		return []Line{{RoleUser, text}}
	}
	if body.Input.Kind() == '[' && json.Unmarshal(body.Input, &body.Messages, lenient...) != nil {
		return nil
	}
	for _, m := range body.Messages {
		if text := m.text(); text != "" && (m.Role == RoleUser || m.Role == RoleAssistant) {
			lines = append(lines, Line{m.Role, text})
		}
	}
	return lines
}

// AddInstructions places text behind the app's own instructions. It counts like the app's own text.
func (r *Request) AddInstructions(text string) {
	quoted, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		return // not UTF-8
	}
	before := len(r.body)
	switch r.API {
	case Chat:
		r.edit("messages", func(v jsontext.Value) []byte { return addSystem(v, quoted) })
	case Responses:
		r.edit("instructions", func(v jsontext.Value) []byte { return addText(v, quoted) })
	case Messages:
		r.edit("system", func(v jsontext.Value) []byte {
			if v.Kind() == '[' {
				return addElement(v, slices.Concat([]byte(`{"type":"text","text":`), quoted, []byte("}")))
			}
			return addText(v, quoted)
		})
	case Realtime: // has no requests
	}
	more := int64(len(r.body) - before)
	r.text, r.size, r.messages = r.text+more, r.size+more, r.messages+1
}

// edit replaces a member of the body by what f returns for it. f gets nil for a missing member.
func (r *Request) edit(member string, f func(jsontext.Value) []byte) {
	out, found := []byte{'{'}, false
	add := func(name string, v []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out, _ = jsontext.AppendQuote(out, name) // decoded before
		out = append(append(out, ':'), v...)
	}
	err := each(r.body, func(name string, v jsontext.Value) error {
		if name == member {
			found, v = true, f(v)
		}
		add(name, v)
		return nil
	})
	if err != nil {
		return
	}
	if !found {
		add(member, f(nil))
	}
	out = append(out, '}')
	r.body = out
}

// addText appends a quoted text to a string, or returns it if there is no string.
func addText(v jsontext.Value, quoted []byte) []byte {
	if v.Kind() != '"' || len(v) == len(`""`) {
		return quoted
	}
	return slices.Concat(v[:len(v)-1], []byte(`\n\n`), quoted[1:])
}

func addElement(list jsontext.Value, element []byte) []byte {
	if len(list) == len("[]") {
		return slices.Concat([]byte("["), element, []byte("]"))
	}
	return slices.Concat(list[:len(list)-1], []byte(","), element, []byte("]"))
}

// addSystem inserts a message with instructions behind the instructions at the start of a list of messages. It has the
// role of the last of these, because some providers accept only one of the two.
func addSystem(messages jsontext.Value, quoted []byte) []byte {
	var out []byte
	role, inserted := `"system"`, false
	insert := func() {
		inserted = true
		out = append(append(append(out, `,{"role":`+role+`,"content":`...), quoted...), '}')
	}
	_ = each(messages, func(_ string, v jsontext.Value) error {
		var m said
		_ = json.Unmarshal(v, &m, lenient...) // decoded before
		if m.Role == "system" || m.Role == "developer" {
			if !inserted {
				role = `"` + m.Role + `"`
			}
		} else if !inserted {
			insert()
		}
		out = append(append(out, ','), v...)
		return nil
	})
	if !inserted {
		insert()
	}
	return slices.Concat([]byte("["), out[1:], []byte("]"))
}

// CollectText makes the answer collect its text, which Text returns, up to most bytes.
func (a *Answer) CollectText(most int) { a.said = &saidText{most: most} }

// Text returns the text received so far.
func (a *Answer) Text() string {
	if a.said == nil {
		return ""
	}
	return a.said.text.String()
}

// saidText collects the text of an answer.
type saidText struct {
	text strings.Builder
	most int
}

func (s *saidText) add(text string) {
	s.text.WriteString(strings.ToValidUTF8(text[:min(len(text), s.most-s.text.Len())], ""))
}

// textMarks are texts of which each event with text contains one.
var textMarks = map[API]string{Chat: `"content"`, Responses: `"response.output_text.delta"`, Messages: `"text_delta"`}

// event parses an event of a stream.
func (s *saidText) event(api API, data []byte) {
	if !bytes.Contains(data, []byte(textMarks[api])) {
		return
	}
	if api == Responses {
		var e struct {
			Type  string `json:"type"`
			Delta string `json:"delta"`
		}
		if json.Unmarshal(data, &e, lenient...) == nil && e.Type == "response.output_text.delta" {
			s.add(e.Delta)
		}
		return
	}
	var e struct {
		Choices []struct {
			Delta struct {
				Content string `json:"content"`
			} `json:"delta"`
		} `json:"choices"`
		Delta struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"delta"`
	}
	if json.Unmarshal(data, &e, lenient...) != nil {
		return
	}
	for _, c := range e.Choices {
		s.add(c.Delta.Content)
	}
	if e.Delta.Type == "text_delta" {
		s.add(e.Delta.Text)
	}
}

// whole parses an answer that is not streamed.
func (s *saidText) whole(data []byte) {
	var e struct {
		Choices []struct {
			Message said `json:"message"`
		} `json:"choices"`
		Output  []said         `json:"output"`
		Content jsontext.Value `json:"content"`
	}
	if json.Unmarshal(data, &e, lenient...) != nil {
		return
	}
	for _, c := range e.Choices {
		s.add(c.Message.text())
	}
	for _, m := range e.Output {
		if m.Type == "message" {
			s.add(m.text())
		}
	}
	s.add(said{Content: e.Content}.text())
}
