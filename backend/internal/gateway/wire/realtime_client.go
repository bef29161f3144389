package wire

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/service-dev/service/internal/problem"
)

// The events of a realtime session that the gateway sends or reacts to.
const (
	EventAppend          = "input_audio_buffer.append"
	eventItemCreate      = "conversation.item.create"
	EventClear           = "input_audio_buffer.clear"
	EventCommit          = "input_audio_buffer.commit"
	EventCommitted       = "input_audio_buffer.committed"
	EventSessionUpdate   = "session.update"
	EventSessionCreated  = "session.created"
	EventSessionUpdated  = "session.updated"
	EventResponseCreate  = "response.create"
	EventResponseCancel  = "response.cancel"
	EventResponseCreated = "response.created"
	EventResponseDone    = "response.done"
	EventError           = "error"
	realtimeAudio        = "audio/pcm"
	realtimeRate         = "24000"
	maxInstructions      = 256 << 10 // bytes
	maxTranscript        = 64 << 10  // bytes
	maxRealtimeTools     = 128
	charactersPerSecond  = 64_000 // of Base64 for sound at realtimeRate
)

// RealtimeRules decode the events that an app sends in one realtime session. They have the settings of the session that
// the gateway sets, whatever the app requests.
type RealtimeRules struct {
	Output  int64             // maximum length of an answer in tokens
	History int64             // tokens of the conversation that the provider reads again for an answer
	InRate  int64             // tokens of a second of sound that the provider hears
	Voices  map[string]string // the provider's names of the voices, by ours

	// NoItemSound refuses items with sound, which the gateway does not convert.
	NoItemSound bool

	// Notes are placed behind the instructions of the session, and behind those of an answer. They may be empty.
	Notes string

	// Responds is set if the gateway has to start an answer when the provider has detected the end of speech.
	Responds bool

	asked   int64            // the session's maximum length of an answer, if the app has requested one
	fixed   map[string]int64 // bytes of the session's instructions and tools, by field
	pending []update         // not yet confirmed or refused by the provider, the oldest first
}

// update is what a session.update of the app changes once the provider confirms it.
type update struct {
	event, id string // the event_id that the provider knows, and the app's
	asked     int64  // 0 if unchanged
	responds  *bool  // nil if unchanged
	fixed     map[string]int64
}

// NewRealtimeRules returns rules with the defaults of a session.
func NewRealtimeRules(output, history, inRate int64, voices map[string]string) *RealtimeRules {
	return &RealtimeRules{Output: output, History: history, InRate: inRate, Voices: voices, Responds: true,
		asked: output, fixed: map[string]int64{}}
}

// Input is what an app adds to a conversation.
type Input struct {
	Text  int64 // bound on the tokens of text, and of what surrounds the sound
	Sound int64 // length of the sound, in characters of Base64
}

// Plus returns the sum of two inputs.
func (i Input) Plus(more Input) Input { return Input{i.Text + more.Text, i.Sound + more.Sound} }

// SoundTokens returns the number of tokens of sound, in characters of Base64, at rate tokens a second.
func SoundTokens(characters, rate int64) int64 {
	return (characters*rate + charactersPerSecond - 1) / charactersPerSecond
}

// ClientEvent is an event that may be sent to the provider.
type ClientEvent struct {
	Type, ID string
	Body     []byte
	Input    Input // what the event adds to the conversation
}

// maxUpdates is the maximum number of updates of a session that the provider has not confirmed.
const maxUpdates = 100

// BeginEvent is the event_id of the event that Begin returns.
const BeginEvent = "gateway_limits"

// Begin returns the first event for the provider, with the gateway's own settings. voice is one of ours, or "".
func (r *RealtimeRules) Begin(voice string) []byte {
	out := []byte(`{"type":"session.update","event_id":"` + BeginEvent + `","session":{"type":"realtime",` +
		`"audio":{"input":{"format":` + realtimeFormat +
		`,"turn_detection":{"type":"server_vad","create_response":false,"interrupt_response":true}},"output":{"format":` +
		realtimeFormat)
	if theirs := r.Voices[voice]; theirs != "" {
		out = append(out, `,"voice":`...)
		out, _ = jsontext.AppendQuote(out, theirs) // the catalogue allows only valid text
	}
	out = append(out, "}},"...)
	if r.Notes != "" {
		out = append(append(append(out, `"instructions":"`...), r.notes()...), `",`...)
	}
	return append(out, (r.limits(r.asked) + "}}")...)
}

// notes returns the notes as they are behind instructions, within a JSON string.
func (r *RealtimeRules) notes() []byte {
	if r.Notes == "" {
		return nil
	}
	quoted, err := jsontext.AppendQuote(nil, "\n\n"+r.Notes)
	if err != nil {
		return nil // not UTF-8
	}
	return quoted[1 : len(quoted)-1]
}

// HideNotes removes the notes from an event about the session.
func (r *RealtimeRules) HideNotes(data []byte) []byte {
	if r.Notes == "" {
		return data
	}
	return edit(data, func(v jsontext.Value) jsontext.Value {
		text, _ := stringOf(v)
		quoted, _ := jsontext.AppendQuote(nil, strings.TrimSuffix(text, "\n\n"+r.Notes))
		return quoted
	}, "session", "instructions")
}

const realtimeFormat = `{"type":"` + realtimeAudio + `","rate":` + realtimeRate + `}`

// limits returns the members of a session that limit the cost of an answer.
func (r *RealtimeRules) limits(output int64) string {
	return maxOutputTokens(output) + `,"truncation":{"type":"retention_ratio","retention_ratio":0.8,` +
		`"token_limits":{"post_instructions":` +
		strconv.FormatInt(r.History, 10) + `}}`
}

// InputBound returns a bound on the input of an answer, which never exceeds the model's context. added is the input
// since the last answer. A provider may count twice as many tokens of sound as the catalogue says.
func (r *RealtimeRules) InputBound(added Input, context int64) int64 {
	bound := r.History + added.Text + 2*SoundTokens(added.Sound, r.InRate) + perTools + perRequest +
		int64(len(r.notes()))
	for _, name := range fixedFields {
		most := r.fixed[name]
		for _, u := range r.pending {
			most = max(most, u.fixed[name])
		}
		bound += most
	}
	return min(bound, context)
}

// fixedFields are the fields of a session that the provider reads again for each answer.
var fixedFields = [...]string{"session.instructions", "session.tools"}

// Client decodes an event of the app. It returns a *FieldError for an event that must not be sent to the provider. The
// result has Type and ID even then, if they are known.
func (r *RealtimeRules) Client(data []byte) (ClientEvent, error) {
	if e, ok := appendEvent(data); ok {
		return e, nil
	}
	e := ClientEvent{}
	if err := checkText(data); err != nil {
		return e, err
	}
	_ = each(bytes.TrimSpace(data), func(name string, v jsontext.Value) error {
		switch name {
		case "type":
			e.Type, _ = stringOf(v)
		case "event_id":
			e.ID, _ = stringOf(v)
		}
		return nil
	})
	e.ID = e.ID[:min(len(e.ID), maxName)]
	allowed, ok := clientEvents[e.Type]
	if !ok {
		return e, unsupported("type", " with the value "+strconv.Quote(clip(e.Type)))
	}
	d := &decoder{out: make([]byte, 0, len(data)+256), taken: map[string]jsontext.Value{}}
	if err := allowed(d, "", bytes.TrimSpace(data)); err != nil {
		return e, err
	}
	d.out = bytes.Replace(d.out, []byte(notesHere), r.notes(), 1)
	e.Input = Input{int64(len(d.out)-d.audio) + perMessage, int64(d.audio)}
	e.Body = d.out
	switch e.Type {
	case EventSessionUpdate:
		return r.update(e, d)
	case eventItemCreate:
		if d.audio > 0 && r.NoItemSound {
			return e, unsupported("item.content", " with sound at this sample rate: append the sound instead")
		}
	case EventResponseCreate:
		return r.create(e, d), nil
	case EventAppend:
		e.Input.Text = 0
	}
	return e, nil
}

// update adds the gateway's settings to a session.update, and notes what changes if the provider confirms it.
func (r *RealtimeRules) update(e ClientEvent, d *decoder) (ClientEvent, error) {
	voice := d.taken["session.audio.output.voice"]
	if ours, _ := stringOf(voice); voice != nil {
		theirs, ok := r.Voices[ours]
		if !ok {
			return e, invalid("session.audio.output.voice", "is not a voice of this model")
		}
		quoted, _ := jsontext.AppendQuote(nil, theirs)
		e.Body = bytes.Replace(e.Body, []byte(voiceHere), quoted, 1)
	}
	if len(r.pending) >= maxUpdates {
		return e, &FieldError{Param: "session", Code: problem.CodeInvalidValue,
			Message: "too many updates are unconfirmed: wait for session.updated"}
	}
	// An app that could predict the ID could let another of its events fail with it, and the update would be forgotten.
	u := update{event: "update_" + rand.Text(), id: e.ID, fixed: map[string]int64{}}
	if most, ok := d.taken["session.max_output_tokens"]; ok {
		u.asked = r.outputOf(most)
	}
	if turn, ok := d.taken["session.audio.input.turn_detection"]; ok {
		responds := turn.Kind() == '{' && string(d.taken["create_response"]) != "false"
		u.responds = &responds
	}
	for _, name := range fixedFields {
		if v, ok := d.taken[name]; ok {
			u.fixed[name] = int64(len(v))
		}
	}
	r.pending = append(r.pending, u)
	e.Body = bytes.Replace(e.Body, []byte(limitsHere), []byte(r.limits(r.output())), 1)
	e.Body = slices.Concat(e.Body[:len(e.Body)-1], []byte(`,"event_id":"`+u.event+`"}`))
	e.Input = Input{} // counted by InputBound
	return e, nil
}

// Updated applies the oldest session.update of the app that the provider has not answered.
func (r *RealtimeRules) Updated() {
	if len(r.pending) == 0 {
		return
	}
	u := r.pending[0]
	r.pending = r.pending[1:]
	r.asked = cmp.Or(u.asked, r.asked)
	if u.responds != nil {
		r.Responds = *u.responds
	}
	maps.Copy(r.fixed, u.fixed)
}

// Refused forgets the session.update that the provider knows by this event_id. It returns the event_id that the app
// chose, or false if there is no such update.
func (r *RealtimeRules) Refused(event string) (id string, ok bool) {
	i := slices.IndexFunc(r.pending, func(u update) bool { return u.event == event })
	if i < 0 {
		return "", false
	}
	id = r.pending[i].id
	r.pending = slices.Delete(r.pending, i, i+1)
	return id, true
}

// output returns the maximum length of an answer once the provider has confirmed all updates.
func (r *RealtimeRules) output() int64 {
	most := r.asked
	for _, u := range r.pending {
		most = cmp.Or(u.asked, most)
	}
	return most
}

// create adds the limit on the length of the answer to a response.create.
func (r *RealtimeRules) create(e ClientEvent, d *decoder) ClientEvent {
	output := r.output()
	if most, ok := d.taken["response.max_output_tokens"]; ok {
		output = r.outputOf(most)
	}
	if !bytes.Contains(e.Body, []byte(limitsHere)) { // without response
		e.Body = r.Respond()
		return e
	}
	e.Body = bytes.Replace(e.Body, []byte(limitsHere), []byte(maxOutputTokens(output)), 1)
	return e
}

func maxOutputTokens(n int64) string { return `"max_output_tokens":` + strconv.FormatInt(n, 10) }

// Respond returns the event that starts an answer at the end of speech.
func (r *RealtimeRules) Respond() []byte {
	return []byte(`{"type":"response.create","response":{` + maxOutputTokens(r.output()) + `}}`)
}

// outputOf returns the maximum length of an answer for a requested one, which may be "inf".
func (r *RealtimeRules) outputOf(v jsontext.Value) int64 {
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil {
		return r.Output
	}
	return min(n, r.Output)
}

// appendEvent decodes the most frequent event without copying its sound twice. It accepts exactly the members that the
// event has and, from a simulated microphone, transcript, which it omits. It returns false for any other text.
func appendEvent(data []byte) (e ClientEvent, ok bool) {
	if !bytes.Contains(data[:min(len(data), 512)], []byte(EventAppend)) {
		return e, false
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(data))
	if token, err := d.ReadToken(); err != nil || token.Kind() != '{' {
		return e, false
	}
	var audio []byte
	isAppend := false
	for d.PeekKind() == '"' {
		token, err := d.ReadToken()
		if err != nil {
			return e, false
		}
		name := token.String()
		v, err := d.ReadValue()
		if err != nil || v.Kind() != '"' {
			return e, false
		}
		switch name {
		case "type":
			isAppend = string(v) == `"`+EventAppend+`"`
		case "event_id":
			e.ID, _ = stringOf(v)
		case "audio":
			audio = bytes.Clone(v)
		case "transcript":
		default:
			return e, false
		}
	}
	end, err := d.ReadToken()
	if err != nil || end.Kind() != '}' || len(bytes.TrimSpace(data[d.InputOffset():])) > 0 || !isAppend ||
		len(e.ID) > maxName || !isBase64(audio) {
		return e, false
	}
	e.Type, e.Input.Sound = EventAppend, int64(len(audio)-len(`""`))
	e.Body = append(append(make([]byte, 0, len(audio)+512), `{"type":"`+EventAppend+`","audio":`...), audio...)
	if e.ID != "" {
		quoted, err := jsontext.AppendQuote([]byte(`,"event_id":`), e.ID)
		if err != nil {
			return e, false
		}
		e.Body = append(e.Body, quoted...)
	}
	e.Body = append(e.Body, '}')
	return e, true
}

// Audio returns the sound in an event that appends some, as Base64, or nil.
func (e ClientEvent) Audio() []byte {
	if e.Type != EventAppend {
		return nil
	}
	return member(e.Body, "audio")
}

// WithAudio returns an event that appends other sound, in Base64.
func (e ClientEvent) WithAudio(audio []byte) ClientEvent {
	e.Input.Sound = int64(len(audio))
	e.Body = appendAudio(audio)
	if e.ID != "" {
		id, _ := jsontext.AppendQuote([]byte(`,"event_id":`), e.ID)
		e.Body = slices.Concat(e.Body[:len(e.Body)-1], id, []byte("}"))
	}
	return e
}

// AppendAudio returns an event that appends sound, in Base64.
func AppendAudio(audio []byte) ClientEvent {
	return ClientEvent{Type: EventAppend}.WithAudio(audio)
}

func appendAudio(audio []byte) []byte {
	return slices.Concat([]byte(`{"type":"`+EventAppend+`","audio":"`), audio, []byte(`"}`))
}

// member returns the value of a member that is a string without escapes, or nil.
func member(object []byte, name string) (value []byte) {
	_ = each(object, func(n string, v jsontext.Value) error {
		if n == name && v.Kind() == '"' {
			value = bytes.Clone(v[1 : len(v)-1])
		}
		return nil
	}, lenient...)
	return value
}

// isBase64 reports whether a JSON string without escapes contains only characters of Base64.
func isBase64(quoted []byte) bool {
	if len(quoted) < 2 {
		return false
	}
	return !slices.ContainsFunc(quoted[1:len(quoted)-1], func(b byte) bool {
		return (b < 'a' || b > 'z') && (b < 'A' || b > 'Z') && (b < '0' || b > '9') && b != '+' && b != '/' && b != '='
	})
}

// RealtimeError returns an error event for the app. id is the event_id of the app's event, or "".
func RealtimeError(id, kind, code, message, param string, more map[string]any) []byte {
	detail := map[string]any{"type": kind, "code": code, "message": message, "param": nil, "event_id": nil}
	if id != "" {
		detail["event_id"] = id
	}
	if param != "" {
		detail["param"] = param
	}
	maps.Copy(detail, more)
	return encodeEvent(map[string]any{"type": EventError, "event_id": "event_" + rand.Text(), "error": detail})
}

// audioText accepts sound in Base64 and counts it.
func audioText(d *decoder, path string, v jsontext.Value) error {
	if v.Kind() != '"' || !isBase64(v) {
		return &FieldError{problem.CodeInvalidValue, path, path + " is not Base64"}
	}
	d.audio += len(v) - len(`""`)
	return d.raw(v)
}
