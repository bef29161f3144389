package gateway

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/service-dev/service/backend/internal/gateway/wire"
	"github.com/service-dev/service/glasses"
)

// conversationRows writes what happens in a conversation with a provider's model to the event log of the app's
// simulator session, with the rows that a script writes. All methods do nothing on nil, which stands for an app outside
// of a session: what its users say is stored nowhere.
type conversationRows struct {
	log func(row string, payload any)
	now func() time.Time

	mu          sync.Mutex
	transcribes bool // the provider sends a transcript of each turn
	samples     int64
	turns       map[string]int64  // length of the user's turns without a transcript yet, in ms by item
	tools       map[string]string // names of called tools by item
	sounds      map[string]int64  // samples of the sound of answers by item
	said        said
	asked       time.Time // when the answer was requested
	answered    time.Time // when the speech ended that it answers; zero for an answer to text
	speech      time.Time // when the wearer's last speech ended; zero after text
	stopped     bool      // the provider has reported the end of the speech that is committed next
}

// said is an answer in progress.
type said struct {
	text    strings.Builder
	samples int64
	first   time.Time // of the first sound or text; zero before
}

const (
	samplesPerMs = 24
	maxNoted     = 1000 // entries of each map
)

// newRows returns the rows of a conversation, or nil for an app outside of a session.
func (c *Conversation) newRows() *conversationRows {
	if c.who.Session == "" {
		return nil
	}
	r := &conversationRows{now: c.s.Now, turns: map[string]int64{}, tools: map[string]string{}, sounds: map[string]int64{},
		log: func(row string, payload any) {
			c.s.Sessions.LogAssistant(context.WithoutCancel(c.ctx), c.who.Session, row, payload)
		}}
	rate := 1000 * samplesPerMs
	if c.converter != nil {
		rate = 16000
	}
	r.log(glasses.RowAssistantStarted, glasses.AssistantStarted{Model: c.model.ID, SampleRate: rate})
	return r
}

// rowEvent has the members of events that rows contain.
type rowEvent struct {
	Audio      string `json:"audio"`
	ItemID     string `json:"item_id"`
	Delta      string `json:"delta"`
	Transcript string `json:"transcript"`
	Arguments  string `json:"arguments"`
	AudioEndMs int64  `json:"audio_end_ms"`
	Item       struct {
		ID      string `json:"id"`
		Type    string `json:"type"`
		Role    string `json:"role"`
		Name    string `json:"name"`
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	} `json:"item"`
	Session struct {
		Audio struct {
			Input struct {
				Transcription json.RawMessage `json:"transcription"`
			} `json:"input"`
		} `json:"audio"`
	} `json:"session"`
}

// client notes an event of the app that the provider receives.
func (r *conversationRows) client(e wire.ClientEvent) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var v rowEvent
	if json.Unmarshal(e.Body, &v) != nil {
		return
	}
	switch e.Type {
	case "input_audio_buffer.append":
		r.samples += samplesOf(v.Audio)
	case "input_audio_buffer.clear":
		r.samples, r.stopped = 0, false
	case wire.EventSessionUpdate:
		if t := v.Session.Audio.Input.Transcription; t != nil {
			r.transcribes = string(t) != "null"
		}
	case "conversation.item.create":
		if v.Item.Type != "message" || v.Item.Role != "user" {
			return
		}
		var texts []string
		for _, p := range v.Item.Content {
			texts = append(texts, p.Text)
		}
		r.speech = time.Time{}
		r.log(glasses.RowAssistantHeard, glasses.AssistantHeard{Text: glasses.Spoken(strings.Join(texts, " "))})
	}
}

// samplesOf returns the number of samples in Base64.
func samplesOf(audio string) int64 {
	return int64(len(strings.TrimRight(audio, "="))*3/4) / 2
}

// begin notes that an answer is requested.
func (r *conversationRows) begin() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked, r.answered, r.said = r.now(), r.speech, said{}
}

// server notes an event of the provider, before the app receives it.
func (r *conversationRows) server(kind string, event []byte) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var v rowEvent
	if json.Unmarshal(event, &v) != nil {
		return
	}
	switch kind {
	case "input_audio_buffer.speech_stopped":
		r.speech, r.stopped = r.now(), true
	case wire.EventCommitted:
		r.heard(v.ItemID)
	case "conversation.item.input_audio_transcription.completed":
		if ms, ok := r.turns[v.ItemID]; ok {
			delete(r.turns, v.ItemID)
			r.log(glasses.RowAssistantHeard, glasses.AssistantHeard{Text: v.Transcript, AudioMs: ms})
		}
	case "response.output_item.added":
		if v.Item.Type == "function_call" && len(r.tools) < maxNoted {
			r.tools[v.Item.ID] = v.Item.Name
		}
	case "response.output_text.delta", "response.output_audio_transcript.delta":
		r.say(v.Delta)
	case "response.output_audio.delta":
		n := samplesOf(v.Delta)
		r.say("")
		r.said.samples += n
		if _, ok := r.sounds[v.ItemID]; ok || len(r.sounds) < maxNoted {
			r.sounds[v.ItemID] += n
		}
	case "response.output_item.done", wire.EventResponseDone:
		r.flush()
	case "response.function_call_arguments.done":
		r.flush()
		r.log(glasses.RowToolCalled, glasses.NewToolCalled(r.tools[v.ItemID], v.Arguments))
		delete(r.tools, v.ItemID)
	case "conversation.item.truncated":
		r.log(glasses.RowAssistantInterrupted,
			glasses.AssistantInterrupted{PlayedMs: v.AudioEndMs, AudioMs: r.sounds[v.ItemID] / samplesPerMs})
		if _, ok := r.sounds[v.ItemID]; ok {
			r.sounds[v.ItemID] = v.AudioEndMs * samplesPerMs
		}
	}
}

// heard ends the user's turn. Without a transcript, only its length is known.
func (r *conversationRows) heard(item string) {
	ms := r.samples / samplesPerMs
	r.samples = 0
	if !r.stopped {
		r.speech = r.now()
	}
	r.stopped = false
	if r.transcribes && len(r.turns) < maxNoted {
		r.turns[item] = ms
		return
	}
	r.log(glasses.RowAssistantHeard, glasses.AssistantHeard{AudioMs: ms})
}

// say adds to the answer in progress.
func (r *conversationRows) say(text string) {
	if r.said.first.IsZero() {
		r.said.first = r.now()
	}
	if r.said.text.Len() < glasses.MaxSpoken {
		r.said.text.WriteString(text)
	}
}

// flush writes the row about the answer in progress, if anything was said.
func (r *conversationRows) flush() {
	if r.said.first.IsZero() {
		return
	}
	row := glasses.AssistantSaid{Text: glasses.Spoken(r.said.text.String()),
		AfterMs: r.said.first.Sub(r.asked).Milliseconds(), AudioMs: r.said.samples / samplesPerMs}
	if !r.answered.IsZero() {
		after := r.said.first.Sub(r.answered).Milliseconds()
		row.AfterSpeechMs = &after
	}
	r.said = said{}
	r.log(glasses.RowAssistantSaid, row)
}

// failed notes why there is no answer.
func (r *conversationRows) failed(code, message string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log(glasses.RowAssistantFailed, glasses.AssistantFailed{Code: code, Message: glasses.Spoken(message)})
}

// ended writes the last row.
func (r *conversationRows) ended(cause error) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flush()
	r.log(glasses.RowAssistantEnded, glasses.AssistantEnded{Reason: endReason(cause)})
}
