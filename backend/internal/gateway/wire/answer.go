package wire

import (
	"bytes"
	"errors"
	"slices"
)

// ErrEventTooLarge is returned for an event of a stream that is larger than the request allows.
var ErrEventTooLarge = errors.New("provider sent an event that is too large")

// Answer parses a provider's answer while it is forwarded.
type Answer struct {
	Receipt
	// Failed is set if the provider reported an error in its answer. Ended is set once the answer is complete.
	Failed, Ended bool
	Reason        string // the message of the reported error
	api           API
	keepsAll      bool  // the app requested the chunk with the usage
	maxEvent      int64 // bytes
	most          int64 // maximum number of tokens in a credible report
	pending       []byte
	events        int64 // number of events with text
	text          int64 // bytes of text
	tools         *toolCalls
	said          *saidText
}

// NewAnswer returns a parser for one answer. most is the maximum number of tokens in a credible usage report.
func NewAnswer(r *Request, most int64) *Answer {
	return &Answer{api: r.API, maxEvent: MaxEvent + r.room(), keepsAll: r.WantsUsage || r.API != Chat, most: min(most, MaxTokens)}
}

// Whole parses an answer that is not streamed and reports whether it is a JSON object.
func (a *Answer) Whole(body []byte) bool {
	e, ok := readEvent(body)
	if !ok {
		return false
	}
	a.Ended = true
	a.fail(e, body)
	a.count(body, wholeTexts)
	if a.tools != nil {
		a.tools.whole(body)
	}
	if a.said != nil {
		a.said.whole(body)
	}
	if e.usage != nil {
		a.report(a.api, e.usage, a.most)
		a.Final = a.Seen
	}
	return true
}

// fail records the error that the provider reported in e, if any.
func (a *Answer) fail(e event, data []byte) {
	if a.Failed = e.failed; a.Failed {
		a.Reason = ErrorMessage(data)
	}
}

// Feed parses the next bytes of a stream. It appends the complete events for the app to out.
func (a *Answer) Feed(out, p []byte) ([]byte, error) {
	a.pending = append(a.pending, p...)
	start := 0
	for {
		end := eventEnd(a.pending[start:])
		if end < 0 {
			break
		}
		e := a.pending[start : start+end]
		if start += end; a.event(e) {
			out = append(out, e...)
		}
		if a.Failed {
			break
		}
	}
	a.pending = append(a.pending[:0], a.pending[start:]...)
	if int64(len(a.pending)) > a.maxEvent {
		return out, ErrEventTooLarge
	}
	return out, nil
}

// Finish parses the remaining bytes at the end of the stream, for a provider that does not terminate its last event.
func (a *Answer) Finish(out []byte) []byte {
	data, _ := eventData(a.pending)
	if _, ok := readEvent(data); ok || string(data) == done {
		if a.event(a.pending) && !a.Failed {
			out = append(append(out, bytes.TrimRight(a.pending, "\r\n")...), "\n\n"...)
		}
	}
	a.pending = nil
	return out
}

// eventEnd returns the length of the first event including its blank line, or -1.
func eventEnd(p []byte) int {
	for at := 0; ; {
		i := bytes.IndexByte(p[at:], '\n')
		if i < 0 {
			return -1
		}
		line := p[at : at+i]
		if at += i + 1; len(bytes.TrimSuffix(line, []byte("\r"))) == 0 {
			return at
		}
	}
}

// done is the data of the last event in the chat interface.
const done = "[DONE]"

// event parses one event and reports whether the app should receive it.
func (a *Answer) event(text []byte) bool {
	data, hasData := eventData(text)
	switch {
	case !hasData:
		return true
	case string(data) == done:
		a.Ended = true
		if a.tools != nil {
			a.tools.closeAll()
		}
		return true
	}
	a.count(data, streamTexts[a.api])
	if a.tools != nil {
		a.tools.event(a.api, data)
	}
	if a.said != nil {
		a.said.event(a.api, data)
	}
	if !hasMember(data, `"usage"`) && !hasMember(data, `"error"`) && !a.mayEnd(data) {
		return true // most events end here: decoding them would cost more than everything else
	}
	e, ok := readEvent(data)
	if !ok {
		return true
	}
	if e.usage != nil {
		a.report(a.api, e.usage, a.most)
	}
	switch a.api {
	case Responses:
		a.Ended = a.Ended || isResponse(e.kind)
	case Messages:
		a.Ended = a.Ended || e.kind == "message_stop"
		a.Final = a.Final || a.Seen && e.kind == "message_delta"
	case Chat: // a stream of this interface ends with done
	}
	a.fail(e, data)
	return !a.Failed && (a.keepsAll || !e.nothing || e.usage == nil)
}

// lastEvents are the types of the events that end a stream, for the interfaces that do not use done.
var lastEvents = map[API][]string{
	Responses: {`"response.completed"`, `"response.incomplete"`, `"response.failed"`},
	Messages:  {`"message_stop"`},
}

// mayEnd reports whether an event contains the name of a last event's type, which can also occur in the answer's
// text.
func (a *Answer) mayEnd(data []byte) bool {
	return slices.ContainsFunc(lastEvents[a.api], func(kind string) bool { return bytes.Contains(data, []byte(kind)) })
}

// hasMember reports whether data contains the quoted member name with a value other than null.
func hasMember(data []byte, name string) bool {
	for {
		i := bytes.Index(data, []byte(name))
		if i < 0 {
			return false
		}
		data = bytes.TrimLeft(data[i+len(name):], " \t\r\n:")
		if !bytes.HasPrefix(data, []byte("null")) {
			return true
		}
	}
}

// eventData joins the data lines of an event.
func eventData(text []byte) (data []byte, ok bool) {
	for line := range bytes.Lines(text) {
		value, found := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("data:"))
		if !found {
			continue
		}
		value = bytes.TrimPrefix(value, []byte(" "))
		if ok {
			data = append(append(bytes.Clone(data), '\n'), value...)
			continue
		}
		data, ok = value, true
	}
	return data, ok
}

// Members that contain the text of an answer: in events that append to it, and in a whole answer. Providers use several
// names for a model's reasoning, and some send the same text under two of them, so only the longest is counted.
var (
	thoughts    = []string{`"reasoning_content"`, `"reasoning"`, `"reasoning_text"`, `"thinking"`}
	streamTexts = map[API][][]string{
		Chat:      {{`"content"`}, {`"arguments"`}, {`"refusal"`}, thoughts},
		Responses: {{`"delta"`}},
		Messages:  {{`"text"`}, {`"partial_json"`}, thoughts},
	}
	wholeTexts = [][]string{{`"content"`}, {`"text"`}, {`"arguments"`}, {`"refusal"`}, thoughts}
)

// count counts the text in data, so that the usage can be estimated.
func (a *Answer) count(data []byte, texts [][]string) {
	var counted int64
	for _, names := range texts {
		var longest int64
		for _, name := range names {
			longest = max(longest, textLength(data, []byte(name)))
		}
		counted += longest
	}
	if counted > 0 {
		a.text += counted
		a.events++
	}
}

// textLength returns the length of all strings in data that are members with this quoted name.
func textLength(data, name []byte) (length int64) {
	for {
		i := bytes.Index(data, name)
		if i < 0 {
			return length
		}
		data = bytes.TrimLeft(data[i+len(name):], " \t\r\n:")
		length += stringLength(data)
	}
}

// stringLength returns the length of the JSON string at the start of data, or 0 if there is none.
func stringLength(data []byte) int64 {
	if len(data) == 0 || data[0] != '"' {
		return 0
	}
	for i := 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return int64(i - 1)
		}
	}
	return 0
}

// Estimate returns the probable usage for the received part of the answer. It uses the counts that the provider
// reported, and estimates the others from the size of the input and the text.
func (a *Answer) Estimate(input int64) Usage {
	u := a.Usage
	if !a.Seen {
		u = Usage{In: min(input, a.most)}
	}
	u.Out = min(max(u.Out, a.events, (a.text+3)/4), a.most)
	return u
}

// HasText reports whether any text of the answer was received.
func (a *Answer) HasText() bool { return a.text > 0 }
