package llmtest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

// Behaviours of models in realtime sessions. A model with any other name, such as Good, answers correctly; the names
// of usage reports, such as UsageHuge, apply too. WaitsInside waits for response.cancel inside its answer. Hangs sends
// nothing of its answers.
const (
	TalksUnasked   = "talks-unasked"  // starts an answer at the end of speech although it must not
	DoneTwice      = "done-twice"     // repeats response.done
	DoneFirst      = "done-first"     // sends response.done before response.created
	UnknownEvents  = "unknown-events" // sends events that do not exist
	LateReceipt    = "late-receipt"   // reports, after its answer, the usage of a transcription that was not requested
	GoesAway       = "goes-away"      // closes with 1001 at once
	ClosesWith4000 = "closes-4000"    // instead of an answer
	HalfOpen       = "half-open"      // reads and sends nothing after its first event
	RefusesLimits  = "refuses-limits" // answers the first session.update with an error
	RefusesAnswer  = "refuses-answer" // answers response.create with an error
	CutsInside     = "cuts-inside"    // breaks off the connection inside its answer
	FailedAnswer   = "failed-answer"  // ends its answer as failed, with a receipt
	RefusesUpdates = "refuses-update" // answers each session.update but the first with an error
	Speaks         = "speaks"         // answers with SpokenSound in two parts, and records the sound that it has heard
	TellsAccount   = "tells-account"  // answers response.create with an error about the operator's account
)

// SpokenSound is the number of bytes in an answer of Speaks: 200 ms.
const SpokenSound = 9600

// Account is what providers say about the operator's account in errors and as they close a connection.
const Account = "org-operator"

// Answer is the record of one answer in a realtime session, from its beginning.
type Answer struct {
	Model, ID string
	// Tokens that the provider would bill. TextIn and AudioIn include the cached ones.
	TextIn, TextCached, TextOut, AudioIn, AudioCached, AudioOut int64

	Output int64  // the maximum length that was requested
	Heard  int    // bytes of sound since the answer before
	Said   string // the last text of the user
	Told   string // the instructions of the session
	Done   bool   // the receipt was sent
}

// VoicePrices are in micro-USD per token.
type VoicePrices struct{ TextIn, TextCached, TextOut, AudioIn, AudioCached, AudioOut int64 }

// Bill returns the price of an answer in micro-USD.
func (a Answer) Bill(p VoicePrices) int64 {
	return (a.TextIn-a.TextCached)*p.TextIn + a.TextCached*p.TextCached + a.TextOut*p.TextOut +
		(a.AudioIn-a.AudioCached)*p.AudioIn + a.AudioCached*p.AudioCached + a.AudioOut*p.AudioOut
}

// Answers returns a copy of the records of all answers.
func (p *Provider) Answers() []Answer { return p.AnswersSince(0) }

// AnswersSince returns a copy of the records of all answers except the first n.
func (p *Provider) AnswersSince(n int) []Answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]Answer, len(p.spoken)-n)
	for i, a := range p.spoken[n:] {
		out[i] = *a
	}
	return out
}

// talk is one realtime session.
type talk struct {
	p       *Provider
	ctx     context.Context
	conn    *websocket.Conn
	model   string
	answers int
	heard   bool // sound has arrived since the last answer
	sound   int  // bytes of it
	detects bool // the end of speech is detected
	creates bool // and starts an answer
	said    string
	told    string  // the instructions
	open    *Answer // p.mu guards its end
	updates int
}

func (p *Provider) serveRealtime(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+Key {
		http.Error(w, `{"error":{"message":"wrong key"}}`, http.StatusUnauthorized)
		return
	}
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer conn.CloseNow()
	conn.SetReadLimit(8 << 20)
	t := &talk{p: p, ctx: r.Context(), conn: conn, model: r.URL.Query().Get("model"), detects: true, creates: true}
	if t.model == GoesAway {
		_ = conn.Close(websocket.StatusGoingAway, "restarting")
		return
	}
	t.send("session.created", map[string]any{"session": t.session()})
	if t.model == HalfOpen {
		<-p.life.Done()
		return
	}
	for {
		_, data, err := conn.Read(t.ctx)
		if err != nil {
			return
		}
		var e clientEvent
		if json.Unmarshal(data, &e) != nil {
			return
		}
		if !t.handle(e) {
			return
		}
	}
}

func (t *talk) session() map[string]any {
	session := map[string]any{"type": "realtime", "model": t.model,
		"audio": map[string]any{"output": map[string]any{"voice": "marin"}}}
	if t.told != "" {
		session["instructions"] = t.told
	}
	return session
}

type clientEvent struct {
	Type    string `json:"type"`
	EventID string `json:"event_id"`
	Audio   []byte `json:"audio"`
	Item    struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	} `json:"item"`
	Session struct {
		Instructions *string `json:"instructions"`

		Audio struct {
			Input struct {
				Turn json.RawMessage `json:"turn_detection"`
			} `json:"input"`
		} `json:"audio"`
	} `json:"session"`
	Response struct {
		Most int64 `json:"max_output_tokens"`
	} `json:"response"`
}

func (t *talk) send(kind string, members map[string]any) {
	members["type"], members["event_id"] = kind, fmt.Sprint("event_", time.Now().UnixNano())
	data, err := json.Marshal(members)
	if err == nil {
		_ = t.conn.Write(t.ctx, websocket.MessageText, data)
	}
}

// handle handles an event of the client. It returns false if the session ends.
func (t *talk) handle(e clientEvent) bool {
	switch e.Type {
	case "session.update":
		if t.updates++; t.updates == 1 && t.model == RefusesLimits {
			t.fail(e, "invalid_value")
			return true
		}
		if t.updates > 1 && t.model == RefusesUpdates {
			t.fail(e, "invalid_value")
			return true
		}
		if told := e.Session.Instructions; told != nil {
			t.told = *told
		}
		if turn := e.Session.Audio.Input.Turn; turn != nil {
			var detection *struct {
				Create *bool `json:"create_response"`
			}
			_ = json.Unmarshal(turn, &detection)
			t.detects = detection != nil
			t.creates = detection != nil && (detection.Create == nil || *detection.Create)
		}
		t.send("session.updated", map[string]any{"session": t.session()})
	case "input_audio_buffer.append":
		t.sound += len(e.Audio)
		if t.heard = true; t.detects { // each piece of sound is one whole sentence
			t.commit()
			if t.creates || t.model == TalksUnasked {
				return t.answer(0)
			}
		}
	case "input_audio_buffer.commit":
		t.commit()
	case "response.create":
		if t.model == RefusesAnswer {
			t.fail(e, "invalid_value")
			return true
		}
		if t.model == TellsAccount {
			t.fail(e, "insufficient_quota")
			return true
		}
		return t.answer(e.Response.Most)
	case "conversation.item.create":
		for _, part := range e.Item.Content {
			t.said = part.Text
		}
	case "conversation.item.delete": // it has no items
		t.fail(e, "invalid_value")
	case "response.cancel":
		if t.open != nil {
			t.done("cancelled")
		}
	}
	return true
}

func (t *talk) commit() {
	t.send("input_audio_buffer.speech_started", map[string]any{"audio_start_ms": 0})
	t.send("input_audio_buffer.committed", map[string]any{"item_id": "item"})
}

func (t *talk) fail(e clientEvent, code string) {
	t.send("error", map[string]any{"error": map[string]any{"type": "invalid_request_error", "code": code,
		"message": Account + " refused", "event_id": e.EventID}})
}

// answer begins an answer. It returns false if the session ends.
func (t *talk) answer(most int64) bool {
	if t.model == ClosesWith4000 {
		_ = t.conn.Close(4000, Account+" has no credit left")
		return false
	}
	t.answers++
	t.begin(most)
	if t.model == Hangs {
		return true
	}
	created := func() {
		t.send("response.created", map[string]any{"response": map[string]any{"id": fmt.Sprint("resp_", t.answers),
			"status": "in_progress"}})
	}
	if t.model == DoneFirst {
		t.done("completed")
		created()
		return true
	}
	created()
	if t.model == UnknownEvents {
		t.send("response.surprise.delta", map[string]any{"response_id": t.open.ID, "delta": "x"})
		t.send("rate_limits.updated", map[string]any{"rate_limits": []any{}})
	}
	t.send("response.output_text.delta", map[string]any{"response_id": t.open.ID, "delta": "Hello there"})
	switch t.model {
	case Speaks:
		part := map[string]any{"response_id": t.open.ID, "item_id": "said", "output_index": 0, "content_index": 0}
		for _, n := range []int{SpokenSound / 3, SpokenSound - SpokenSound/3} {
			delta := maps.Clone(part)
			delta["delta"] = make([]byte, n)
			t.send("response.output_audio.delta", delta)
		}
		t.send("response.output_audio.done", part)
		t.done("completed")
	case WaitsInside:
		if t.open.AudioOut > 0 {
			t.send("response.output_audio.delta", map[string]any{"response_id": t.open.ID, "item_id": "said",
				"output_index": 0, "content_index": 0, "delta": make([]byte, SpokenSound)})
		}
	case CutsInside:
		return false
	case FailedAnswer:
		t.done("failed")
	default:
		t.done("completed")
	}
	return true
}

// begin records an answer, which is billed from then on.
func (t *talk) begin(most int64) {
	a := &Answer{Model: t.model, ID: fmt.Sprint("resp_", t.answers), Output: most, Heard: t.sound, Said: t.said,
		Told: t.told}
	if t.model != UsageZero {
		a.TextIn, a.TextCached, a.TextOut = 10, 4, 3
	}
	if t.heard && t.model != UsageZero {
		a.AudioIn, a.AudioCached, a.AudioOut = 20, 8, 5
	}
	t.heard, t.sound, t.open = false, 0, a
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	t.p.spoken = append(t.p.spoken, a)
}

// done ends the answer with its receipt.
func (t *talk) done(status string) {
	a := t.open
	t.open = nil
	t.p.mu.Lock()
	a.Done = true
	t.p.mu.Unlock()
	var usage any = map[string]any{"total_tokens": a.TextIn + a.AudioIn + a.TextOut + a.AudioOut,
		"input_tokens": a.TextIn + a.AudioIn, "output_tokens": a.TextOut + a.AudioOut,
		"input_token_details": map[string]any{"text_tokens": a.TextIn, "audio_tokens": a.AudioIn,
			"cached_tokens":         a.TextCached + a.AudioCached,
			"cached_tokens_details": map[string]any{"text_tokens": a.TextCached, "audio_tokens": a.AudioCached}},
		"output_token_details": map[string]any{"text_tokens": a.TextOut, "audio_tokens": a.AudioOut}}
	switch t.model {
	case UsageNone:
		usage = nil
	case UsageHuge:
		usage = map[string]any{"input_tokens": 1e18, "output_tokens": 1}
	case UsageNegative:
		usage = map[string]any{"input_tokens": -5, "output_tokens": 1}
	}
	response := map[string]any{"id": a.ID, "status": status, "usage": usage}
	if status == "failed" {
		response["status_details"] = map[string]any{"type": "failed", "error": map[string]any{"type": "server_error",
			"code": "rate_limit_exceeded", "message": Account + " is over its limit"}}
	}
	event := map[string]any{"response": response}
	t.send("response.done", event)
	if t.model == DoneTwice {
		t.send("response.done", event)
	}
	if t.model == LateReceipt {
		t.send("conversation.item.input_audio_transcription.completed", map[string]any{"item_id": "item",
			"transcript": "hi", "usage": map[string]any{"type": "duration", "seconds": 9}})
	}
}

// UsageZero is a model that reports and bills nothing.
const UsageZero = "usage-zero"
