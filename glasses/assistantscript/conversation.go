package assistantscript

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/problem"
)

// Limits of a conversation.
const (
	maxItems = 1000     // the oldest are removed first
	maxItem  = 64 << 10 // bytes of its texts
	// MaxEvent is the maximum length of a client event, in bytes.
	MaxEvent = 4 << 20
)

// Conversation answers an app with a script, as a realtime model would. It handles the client events of OpenAI's
// Realtime API and sends the server events, with text and sound (see voiceOf). The caller passes the time, in
// milliseconds on the session's clock, and calls Advance when Due is reached. A Conversation is not safe for concurrent
// use.
type Conversation struct {
	o        ConversationOptions
	nowMs    int64
	ids      int // number of assigned IDs
	settings settings
	items    []*item
	calls    int // function calls in the conversation
	listener listener
	response *response // in progress, or nil
	remember []string  // lines of the answers that have begun
	speechMs *int64    // when the wearer's last speech ended; nil if the app has sent text since
}

// ConversationOptions configures a Conversation.
type ConversationOptions struct {
	Script *Script
	// Memory is the user's profile at the beginning; empty if nothing is known or the conversation does not remember.
	Memory string
	// Rate is the sample rate of sound in both directions, 16000 or 24000 Hz.
	Rate int
	// Send sends a server event to the app. Log appends a row to the session's event log, before the app receives the
	// event. The row has a type such as glasses.RowToolCalled.
	Send func(event []byte)
	Log  func(row string, payload any)
}

// item is an entry of the conversation.
type item struct {
	ID      string `json:"id"`
	Object  string `json:"object"` // realtime.item
	Type    string `json:"type"`   // message, function_call or function_call_output
	Status  string `json:"status"` // in_progress, completed or incomplete
	Role    string `json:"role,omitempty"`
	Content []part `json:"content,omitempty"`
	CallID  string `json:"call_id,omitempty"`
	Name    string `json:"name,omitempty"`
	// Arguments is set for a function call, Output for its result.
	Arguments string `json:"arguments,omitempty"`
	Output    string `json:"output,omitempty"`

	audioMs int64 // length of the sound in a message of the assistant
}

type part struct {
	Type       string `json:"type"` // input_text, input_audio, output_text or output_audio
	Text       string `json:"text,omitempty"`
	Transcript string `json:"transcript,omitempty"`
}

// clientEvent has the fields of every event that an app sends.
type clientEvent struct {
	Type    string         `json:"type"`
	EventID string         `json:"event_id"`
	Session jsontext.Value `json:"session"`
	Audio   []byte         `json:"audio"`
	// Transcript contains the words that end in this sound, which is from a microphone fixture.
	Transcript string         `json:"transcript"`
	Item       *item          `json:"item"`
	ItemID     string         `json:"item_id"`
	AudioEndMs int64          `json:"audio_end_ms"`
	ResponseID string         `json:"response_id"`
	Response   *responseBegin `json:"response"`
}

// responseBegin contains the settings of a response that differ from the session's.
type responseBegin struct {
	Conversation string         `json:"conversation"`
	Input        jsontext.Value `json:"input"`
	Modalities   []string       `json:"output_modalities"`
	Tools        []tool         `json:"tools"`
	ToolChoice   jsontext.Value `json:"tool_choice"`
}

// NewConversation returns a Conversation and sends session.created.
func NewConversation(o ConversationOptions, nowMs int64) *Conversation {
	c := &Conversation{o: o, nowMs: nowMs, settings: defaultSettings(o.Rate), listener: listener{rate: int64(o.Rate)}}
	o.Log(glasses.RowAssistantStarted, glasses.AssistantStarted{Model: Model, SampleRate: o.Rate})
	c.send("session.created", fields{"session": c.settings.describe()})
	return c
}

// fields contains the fields of a server event, except type and event_id.
type fields map[string]any

func (c *Conversation) send(kind string, f fields) {
	f["type"], f["event_id"] = kind, c.newID("event")
	c.o.Send(encode(f))
}

func (c *Conversation) newID(prefix string) string {
	c.ids++
	return fmt.Sprintf("%s_%d", prefix, c.ids)
}

// fail sends an error event about the client event with the ID eventID.
func (c *Conversation) fail(eventID string, f *Failure) {
	detail := fields{"type": f.Type, "code": f.Code, "message": f.Message, "param": nil, "event_id": nil}
	if f.Param != "" {
		detail["param"] = f.Param
	}
	if eventID != "" {
		detail["event_id"] = eventID
	}
	c.send("error", fields{"error": detail})
}

// Receive handles a client event. It answers an event that it cannot handle with an error event.
func (c *Conversation) Receive(nowMs int64, data []byte) {
	c.Advance(nowMs)
	var e clientEvent
	if err := json.Unmarshal(data, &e); err != nil {
		c.fail(e.EventID, invalid(problem.CodeInvalidJSON, "", "the event is not JSON of the form of the Realtime API"))
		return
	}
	if err := c.handle(&e); err != nil {
		c.fail(e.EventID, err)
	}
}

func (c *Conversation) handle(e *clientEvent) *Failure {
	switch e.Type {
	case "session.update":
		return c.updateSession(e.Session)
	case "input_audio_buffer.append":
		return c.listen(e.Audio, e.Transcript)
	case "input_audio_buffer.commit":
		return c.commit()
	case "input_audio_buffer.clear":
		c.listener.clear()
		c.send("input_audio_buffer.cleared", fields{})
	case "conversation.item.create":
		return c.createItem(e.Item)
	case "conversation.item.retrieve":
		return c.withItem(e.ItemID, func(i *item) { c.send("conversation.item.retrieved", fields{"item": i}) })
	case "conversation.item.delete":
		return c.withItem(e.ItemID, func(i *item) {
			c.items = slices.DeleteFunc(c.items, func(other *item) bool { return other == i })
			c.send("conversation.item.deleted", fields{"item_id": i.ID})
		})
	case "conversation.item.truncate":
		return c.truncate(e.ItemID, e.AudioEndMs)
	case "response.create":
		return c.createResponse(e.Response)
	case "response.cancel":
		if c.response == nil || e.ResponseID != "" && e.ResponseID != c.response.id {
			return invalid("response_cancel_not_active", "", "no such response is in progress")
		}
		c.cancelResponse("client_cancelled")
	default:
		return invalid(problem.CodeInvalidValue, "type", "the event type %.80q is not supported", e.Type)
	}
	return nil
}

// createItem adds a message or the result of a function call.
func (c *Conversation) createItem(i *item) *Failure {
	if i == nil {
		return invalid(problem.CodeInvalidValue, "item", "item is missing")
	}
	roles := []string{"user", "system", "assistant"}
	switch {
	case len(i.text())+len(i.Arguments)+len(i.Output) > maxItem:
		return invalid(problem.CodeInvalidValue, "item", "the item has over 64 KB of text")
	case i.Type == "message" && slices.Contains(roles, i.Role), i.Type == "function_call":
	case i.Type == "function_call_output":
		if c.toolOf(i.CallID) == "" {
			return invalid(problem.CodeInvalidValue, "item.call_id", "no function call of the conversation has this call_id")
		}
	default:
		return invalid(problem.CodeInvalidValue, "item.type",
			"the item is neither a message of user, system or assistant, nor a function call or its output")
	}
	if i.ID == "" {
		i.ID = c.newID("item")
	}
	i.Status = "completed"
	if i.Role == "user" {
		c.speechMs = nil
		c.o.Log(glasses.RowAssistantHeard, glasses.AssistantHeard{Text: glasses.Spoken(i.text())})
	}
	c.add(i)
	return nil
}

// add appends a complete item and sends the events that announce it.
func (c *Conversation) add(i *item) {
	previous := c.append(i)
	c.send("conversation.item.added", fields{"item": i, "previous_item_id": previous})
	c.send("conversation.item.done", fields{"item": i, "previous_item_id": previous})
}

// append appends an item and returns the ID of the item before it, or nil if there is none.
func (c *Conversation) append(i *item) (previous any) {
	i.Object = "realtime.item"
	if n := len(c.items); n > 0 {
		previous = c.items[n-1].ID
	}
	if i.Type == "function_call" {
		c.calls++
	}
	c.items = append(c.items, i)
	if len(c.items) > maxItems {
		c.items = slices.Delete(c.items, 0, len(c.items)-maxItems)
	}
	return previous
}

func (c *Conversation) find(id string) *item {
	for _, i := range c.items {
		if i.ID == id {
			return i
		}
	}
	return nil
}

func (c *Conversation) withItem(id string, f func(*item)) *Failure {
	i := c.find(id)
	if i == nil {
		return invalid(problem.CodeInvalidValue, "item_id", "the conversation has no item %.80q", id)
	}
	f(i)
	return nil
}

// toolOf returns the name of the function that a call ID refers to, or "" if the ID is unknown.
func (c *Conversation) toolOf(callID string) string {
	for _, i := range c.items {
		if i.Type == "function_call" && i.CallID == callID {
			return i.Name
		}
	}
	return ""
}

// truncate shortens a message of the assistant to the part that the wearer heard.
func (c *Conversation) truncate(id string, endMs int64) *Failure {
	i := c.find(id)
	if i == nil || i.audioMs == 0 {
		return invalid(problem.CodeInvalidValue, "item_id", "the conversation has no spoken answer %.80q", id)
	}
	if endMs < 1 || endMs > i.audioMs {
		return invalid(problem.CodeInvalidValue, "audio_end_ms",
			"audio_end_ms must be 1 to %d, the length of the answer", i.audioMs)
	}
	c.o.Log(glasses.RowAssistantInterrupted, glasses.AssistantInterrupted{PlayedMs: endMs, AudioMs: i.audioMs})
	i.audioMs, i.Status = endMs, "incomplete"
	c.send("conversation.item.truncated", fields{"item_id": id, "content_index": 0, "audio_end_ms": endMs})
	return nil
}

// request returns the request that the script's rules examine.
func (c *Conversation) request(tools []string) (*Request, *Failure) {
	r := &Request{Model: Model, Memory: c.o.Memory, tools: tools, toolCalls: c.calls}
	last := (*item)(nil)
	for _, i := range c.items {
		r.bytes += len(i.text()) + len(i.Arguments) + len(i.Output)
		if i.Role != "system" && i.Type != "function_call" {
			last = i
		}
	}
	switch {
	case last == nil || last.Role == "assistant":
		return nil, invalid(problem.CodeInvalidValue, "",
			"the conversation does not end with a message of the user or a result of a function")
	case last.Type == "function_call_output":
		r.text, r.toolResult = last.Output, c.toolOf(last.CallID)
	default:
		r.text = last.text()
	}
	r.text = strings.ToValidUTF8(r.text[:min(len(r.text), maxMatched)], "")
	return r, nil
}

// Remembered returns the lines for the user's profile from the answers that have begun, in order. The caller merges
// them at the end of the conversation.
func (c *Conversation) Remembered() []string { return slices.Clone(c.remember) }

// ChangeMemory replaces the profile that the script's rules examine from now on. It returns the lines that Remembered
// would return for the profile before, and Remembered no longer returns them.
func (c *Conversation) ChangeMemory(profile string) (remembered []string) {
	remembered, c.remember, c.o.Memory = c.remember, nil, profile
	return remembered
}

// text returns the words of a message.
func (i *item) text() string {
	var texts []string
	for _, p := range i.Content {
		texts = append(texts, p.Text+p.Transcript)
	}
	return strings.Join(texts, " ")
}
