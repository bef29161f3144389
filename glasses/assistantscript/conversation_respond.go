package assistantscript

import (
	"strings"
	"unicode/utf8"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/problem"
)

// Parameters of spoken responses. The first part is sent at once, as fast as a model generates it. The rest is sent in
// parts, so that a long response can be interrupted while it is generated.
const (
	firstPartMs = 10_000
	nextPartMs  = 5000
	partEveryMs = 1000
	deltaMs     = 100
)

// response is an answer in progress.
type response struct {
	id      string
	answer  Answer
	text    bool  // text instead of sound
	dueMs   int64 // when the next part is sent
	begun   bool  // the delay has passed
	afterMs int64 // the delay
	message *item // the message, after it has begun; nil if there is none
	firstMs int64 // when the message began
	// speechMs is when the speech that the response answers ended; nil for text.
	speechMs *int64
	voice    voice
	sentMs   int64
	words    []string // words of the transcript that have not been sent yet
	saidEnd  int64    // where the last sent word ends, in ms of sound
	output   []*item  // complete items
}

// createResponse begins a response in the conversation.
func (c *Conversation) createResponse(given *responseBegin) *Failure {
	if c.response != nil {
		return invalid("conversation_already_has_active_response", "", "response %s is in progress", c.response.id)
	}
	modalities, tools := c.settings.Modalities, offered(c.settings.Tools, c.settings.ToolChoice)
	if given != nil {
		if given.Input != nil || given.Conversation == "none" {
			return invalid(problem.CodeInvalidValue, "response", "a script answers only the session's conversation")
		}
		if given.Modalities != nil {
			modalities = given.Modalities
		}
		if given.Tools != nil || given.ToolChoice != nil {
			t, choice := c.settings.Tools, given.ToolChoice
			if given.Tools != nil {
				t = given.Tools
			}
			tools = offered(t, choice)
		}
	}
	if err := checkModalities(modalities); err != nil {
		return err
	}
	request, err := c.request(tools)
	if err != nil {
		return err
	}
	r := &response{id: c.newID("resp"), answer: c.o.Script.Answer(request), text: modalities[0] == "text",
		speechMs: c.speechMs}
	r.afterMs = r.answer.Delay.Milliseconds()
	r.dueMs = c.nowMs + r.afterMs
	c.response = r
	if r.answer.Failure == nil {
		c.send("response.created", fields{"response": c.describe(r, "in_progress", nil)})
	}
	c.Advance(c.nowMs)
	return nil
}

// Due returns when Advance must be called next, in milliseconds on the session's clock. ok is false if no event is
// scheduled.
func (c *Conversation) Due() (ms int64, ok bool) {
	if c.response == nil {
		return 0, false
	}
	return c.response.dueMs, true
}

// Advance sends the events that are due.
func (c *Conversation) Advance(nowMs int64) {
	for c.response != nil && c.response.dueMs <= nowMs {
		c.nowMs = max(c.nowMs, c.response.dueMs)
		c.continueResponse(c.response)
	}
	c.nowMs = max(c.nowMs, nowMs)
}

func (c *Conversation) continueResponse(r *response) {
	switch {
	case r.answer.Failure != nil:
		c.response = nil
		c.o.Log(glasses.RowAssistantFailed, r.answer.Failure.Row())
		c.fail("", r.answer.Failure)
		return
	case !r.begun:
		r.begun = true
		if r.answer.Remember != "" {
			// Merged at once, so that a long conversation keeps no more than a profile.
			c.remember = strings.Split(Merge(strings.Join(c.remember, "\n"), []string{r.answer.Remember}), "\n")
		}
		c.beginMessage(r)
	}
	if r.message != nil {
		if !r.text && !c.speakPart(r) {
			return
		}
		c.endMessage(r, "completed")
	}
	for _, call := range r.answer.Calls {
		c.sendCall(r, call)
	}
	c.response = nil
	c.send("response.done", fields{"response": c.describe(r, "completed", nil)})
}

// place returns the fields that locate a part of a message in its response.
func (r *response) place(more fields) fields {
	f := fields{"response_id": r.id, "item_id": r.message.ID, "output_index": 0, "content_index": 0}
	for k, v := range more {
		f[k] = v
	}
	return f
}

func (c *Conversation) beginMessage(r *response) {
	if r.answer.Text == "" {
		return
	}
	r.firstMs = c.nowMs
	r.message = &item{ID: c.newID("item"), Type: "message", Status: "in_progress", Role: "assistant"}
	previous := c.append(r.message)
	c.send("response.output_item.added", fields{"response_id": r.id, "output_index": 0, "item": r.message})
	c.send("conversation.item.added", fields{"item": r.message, "previous_item_id": previous})
	kind := "audio"
	if r.text {
		kind = "text"
	}
	c.send("response.content_part.added", r.place(fields{"part": fields{"type": kind}}))
	for word := range strings.SplitAfterSeq(r.answer.Text, " ") {
		if r.text {
			c.send("response.output_text.delta", r.place(fields{"delta": word}))
		} else {
			r.words = append(r.words, word)
		}
	}
	r.voice = voiceOf(r.answer.Text, c.o.Rate)
}

// speakPart sends the next part of the sound, and each word of the transcript before its sound. It reports whether the
// message is complete.
func (c *Conversation) speakPart(r *response) bool {
	end := r.sentMs + nextPartMs
	if r.sentMs == 0 {
		end = firstPartMs
	}
	end = min(end, r.voice.ms())
	for r.sentMs < end {
		next := min(r.sentMs+deltaMs, end)
		for len(r.words) > 0 && r.saidEnd < next {
			c.send("response.output_audio_transcript.delta", r.place(fields{"delta": r.words[0]}))
			r.saidEnd += msPerCharacter * int64(utf8.RuneCountInString(r.words[0]))
			r.words = r.words[1:]
		}
		c.send("response.output_audio.delta", r.place(fields{"delta": r.voice.pcm(r.sentMs, next)}))
		r.sentMs = next
	}
	r.message.audioMs = r.sentMs
	r.dueMs += partEveryMs
	return r.sentMs == r.voice.ms()
}

// endMessage sends the events that end a message. status is completed or incomplete.
func (c *Conversation) endMessage(r *response, status string) {
	said := strings.TrimSuffix(r.answer.Text, strings.Join(r.words, ""))
	m := r.message
	m.Status = status
	var p part
	if r.text {
		p = part{Type: "output_text", Text: r.answer.Text}
		c.send("response.output_text.done", r.place(fields{"text": p.Text}))
		c.send("response.content_part.done", r.place(fields{"part": fields{"type": "text", "text": p.Text}}))
	} else {
		p = part{Type: "output_audio", Transcript: said}
		c.send("response.output_audio.done", r.place(nil))
		c.send("response.output_audio_transcript.done", r.place(fields{"transcript": p.Transcript}))
		c.send("response.content_part.done", r.place(fields{"part": fields{"type": "audio", "transcript": p.Transcript}}))
	}
	m.Content = []part{p}
	row := glasses.AssistantSaid{Text: glasses.Spoken(p.Text + p.Transcript), AfterMs: r.afterMs, AudioMs: r.sentMs}
	if r.speechMs != nil {
		after := r.firstMs - *r.speechMs
		row.AfterSpeechMs = &after
	}
	c.o.Log(glasses.RowAssistantSaid, row)
	c.send("conversation.item.done", fields{"item": m})
	c.send("response.output_item.done", fields{"response_id": r.id, "output_index": 0, "item": m})
	r.output = append(r.output, m)
}

func (c *Conversation) sendCall(r *response, call Call) {
	c.o.Log(glasses.RowToolCalled, glasses.NewToolCalled(call.Name, call.Arguments))
	i := &item{ID: c.newID("item"), Type: "function_call", Status: "completed", CallID: call.ID, Name: call.Name,
		Arguments: call.Arguments}
	previous, at := c.append(i), len(r.output)
	f := func(more fields) fields {
		more["response_id"], more["item_id"], more["output_index"], more["call_id"] = r.id, i.ID, at, i.CallID
		return more
	}
	c.send("response.output_item.added", fields{"response_id": r.id, "output_index": at, "item": i})
	c.send("conversation.item.added", fields{"item": i, "previous_item_id": previous})
	c.send("response.function_call_arguments.delta", f(fields{"delta": i.Arguments}))
	c.send("response.function_call_arguments.done", f(fields{"arguments": i.Arguments, "name": i.Name}))
	c.send("conversation.item.done", fields{"item": i, "previous_item_id": previous})
	c.send("response.output_item.done", fields{"response_id": r.id, "output_index": at, "item": i})
	r.output = append(r.output, i)
}

// cancelResponse ends the response in progress. reason is client_cancelled or turn_detected.
func (c *Conversation) cancelResponse(reason string) {
	r := c.response
	c.response = nil
	if r.answer.Failure != nil {
		return // the app has not seen it
	}
	if r.message != nil {
		c.endMessage(r, "incomplete")
	}
	c.send("response.done", fields{"response": c.describe(r, "cancelled", fields{"type": "cancelled", "reason": reason})})
}

// describe returns a response in the form that the app sees.
func (c *Conversation) describe(r *response, status string, details any) fields {
	output := r.output
	if output == nil {
		output = []*item{}
	}
	f := fields{"id": r.id, "object": "realtime.response", "status": status, "status_details": details,
		"output": output, "usage": nil}
	if status == "in_progress" {
		return f
	}
	audio := r.sentMs / 50 // 20 tokens per second
	text := int64(r.answer.Usage.Out)
	in := int64(r.answer.Usage.In)
	f["usage"] = fields{"total_tokens": in + text + audio, "input_tokens": in, "output_tokens": text + audio,
		"input_token_details":  fields{"text_tokens": in, "audio_tokens": 0, "cached_tokens": 0},
		"output_token_details": fields{"text_tokens": text, "audio_tokens": audio}}
	return f
}
