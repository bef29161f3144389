package wire

import (
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// These stand for the provider's name of a voice, for the gateway's limits and for its notes until the event is
// complete. No allowed text contains a control character without an escape.
const (
	voiceHere  = "\x00voice"
	limitsHere = "\x00limits"
	notesHere  = "\x00notes"
)

// clientEvents has the rule for each event that an app may send.
var clientEvents = map[string]rule{
	// The gateway chooses the event_id of an update, by which the provider refuses it.
	EventSessionUpdate: object(fields{"type": text(maxName), "event_id": omitted(orNull(text(maxName))),
		"session": realtimeSession}, "type", "session"),
	EventAppend:                 clientEvent(fields{"audio": audioText, "transcript": dropped}, "audio"),
	EventCommit:                 clientEvent(nil),
	EventClear:                  clientEvent(nil),
	"output_audio_buffer.clear": clientEvent(nil),
	EventResponseCancel:         clientEvent(fields{"response_id": text(maxName)}),
	eventItemCreate: clientEvent(fields{
		"previous_item_id": orNull(text(maxName)), "item": realtimeItem}, "item"),
	"conversation.item.delete":   clientEvent(fields{"item_id": text(maxName)}, "item_id"),
	"conversation.item.retrieve": clientEvent(fields{"item_id": text(maxName)}, "item_id"),
	"conversation.item.truncate": clientEvent(fields{"item_id": text(maxName), "content_index": integer(0, maxList),
		"audio_end_ms": integer(0, 1<<31)}, "item_id", "content_index", "audio_end_ms"),
	// The gateway chooses the event_id, because an app could give another event the same one, whose failure would then
	// end the answer.
	EventResponseCreate: object(fields{"type": text(maxName), "event_id": omitted(orNull(text(maxName))),
		"response": realtimeResponse}, "type"),
}

// clientEvent accepts an event with these members.
func clientEvent(members fields, required ...string) rule {
	all := fields{"type": text(maxName), "event_id": orNull(text(maxName))}
	for name, r := range members {
		all[name] = r
	}
	return object(all, required...)
}

// limited is like r, but for an object that the gateway's limits belong in.
func limited(r rule) rule {
	return func(d *decoder, path string, v jsontext.Value) error {
		before := len(d.out)
		if err := r(d, path, v); err != nil {
			return err
		}
		if d.out = d.out[:len(d.out)-1]; len(d.out) > before+1 {
			d.out = append(d.out, ',')
		}
		d.out = append(d.out, limitsHere+"}"...)
		return nil
	}
}

// noted is like r, but for a text that the gateway's notes belong behind.
func noted(r rule) rule {
	return func(d *decoder, path string, v jsontext.Value) error {
		if err := r(d, path, v); err != nil {
			return err
		}
		d.out = append(d.out[:len(d.out)-1], notesHere+`"`...)
		return nil
	}
}

// omitted returns a rule that checks a value but leaves it out of the output.
func omitted(r rule) rule {
	return func(d *decoder, path string, v jsontext.Value) error {
		before := len(d.out)
		err := r(d, path, v)
		d.out = d.out[:before]
		return err
	}
}

var (
	realtimeTools = list(maxRealtimeTools, object(fields{"type": only(`"function"`, ""), "name": text(maxName),
		"description": text(maxTranscript), "parameters": anyObject}, "type", "name"))
	realtimeChoice = byKind(word("auto", "none", "required"), nil,
		object(fields{"type": only(`"function"`, ""), "name": text(maxName)}, "type", "name"))
	realtimeModalities = list(2, word("text", "audio"))
	realtimeFormatRule = object(fields{"type": only(`"`+realtimeAudio+`"`, ""), "rate": only(realtimeRate, "")})
)

// realtimeSession accepts the settings of a session. The gateway sets the model, the limits and who starts answers.
// A transcription of the input would cost money that no hold covers, so that only null is accepted.
var realtimeSession = limited(object(fields{
	"type": only(`"realtime"`, ""), "model": dropped, "truncation": dropped,
	"instructions": note(noted(text(maxInstructions))), "output_modalities": realtimeModalities,
	"tools": note(realtimeTools), "tool_choice": realtimeChoice, "max_output_tokens": take(outputLimit),
	"audio": object(fields{
		"input": object(fields{"format": realtimeFormatRule, "turn_detection": note(turnDetection),
			"transcription":   only("null", ": the gateway does not transcribe the input"),
			"noise_reduction": byNull(object(fields{"type": word("near_field", "far_field")}, "type"))}),
		"output": object(fields{"format": realtimeFormatRule, "voice": voiceRule, "speed": number(0.25, 1.5)}),
	}),
}, "type"))

// realtimeResponse accepts the settings of one answer. It cannot change the model, and has no input of its own, which
// no truncation would limit.
var realtimeResponse = limited(object(fields{
	"conversation": word("auto", "none"), "instructions": noted(text(maxInstructions)), "tools": realtimeTools,
	"tool_choice": realtimeChoice, "output_modalities": realtimeModalities, "metadata": orNull(anyObject),
	"max_output_tokens": take(outputLimit),
}))

var realtimeItem = variant("type", "", map[string]rule{
	"message": item(fields{"role": word("user", "system", "assistant"), "content": list(maxList, variant("type", "",
		map[string]rule{
			"input_text":  object(fields{"type": anything, "text": text(MaxBody)}, "text"),
			"output_text": object(fields{"type": anything, "text": text(MaxBody)}, "text"),
			"input_audio": object(fields{"type": anything, "audio": audioText, "transcript": dropped}, "audio"),
		}))}, "role", "content"),
	"function_call": item(fields{"call_id": text(maxName), "name": text(maxName), "arguments": text(MaxBody)}, "name",
		"arguments"),
	"function_call_output": item(fields{"call_id": text(maxName), "output": text(MaxBody)}, "call_id", "output"),
})

// item accepts an item of the conversation with these members.
func item(members fields, required ...string) rule {
	all := fields{"type": text(maxName), "id": text(maxName), "object": only(`"realtime.item"`, ""),
		"status": word("completed", "incomplete", "in_progress")}
	for name, r := range members {
		all[name] = r
	}
	return object(all, required...)
}

// byNull is like r, and also accepts null, which has a meaning here.
func byNull(r rule) rule {
	return func(d *decoder, path string, v jsontext.Value) error {
		if v.Kind() == 'n' {
			return d.raw(v)
		}
		return r(d, path, v)
	}
}

// outputLimit accepts a maximum length of an answer.
func outputLimit(d *decoder, path string, v jsontext.Value) error {
	if v.Kind() == '"' {
		return word("inf")(d, path, v)
	}
	return integer(1, maxOutput)(d, path, v)
}

// turnDetection accepts how the end of speech is detected. It forces create_response to false, and notes what the app
// has requested. It refuses idle_timeout_ms, after which a provider would start an answer by itself.
func turnDetection(d *decoder, path string, v jsontext.Value) error {
	if v.Kind() == 'n' {
		return d.raw(v)
	}
	create := func(d *decoder, path string, v jsontext.Value) error {
		d.taken["create_response"] = v.Clone()
		return omitted(boolean)(d, path, v)
	}
	milliseconds := integer(0, 60_000)
	before := len(d.out)
	err := variant("type", "", map[string]rule{
		"server_vad": object(fields{"type": anything, "threshold": number(0, 1), "prefix_padding_ms": milliseconds,
			"silence_duration_ms": milliseconds, "create_response": create, "interrupt_response": boolean}),
		"semantic_vad": object(fields{"type": anything, "eagerness": word("low", "medium", "high", "auto"),
			"create_response": create, "interrupt_response": boolean}),
	})(d, path, v)
	if err == nil && len(d.out) > before {
		d.out = append(d.out[:len(d.out)-1], `,"create_response":false}`...)
	}
	return err
}

// voiceRule keeps the voice separate, because the provider has other names.
func voiceRule(d *decoder, path string, v jsontext.Value) error {
	if _, ok := stringOf(v); !ok {
		return invalid(path, "is not a string")
	}
	d.taken[path] = v.Clone()
	return d.raw([]byte(voiceHere))
}

// encodeEvent encodes an event that the gateway sends.
func encodeEvent(event map[string]any) []byte {
	data, err := json.Marshal(event, json.Deterministic(true))
	if err != nil {
		return []byte(`{"type":"error","error":{"type":"server_error","message":` + strconv.Quote("invalid event") + `}}`)
	}
	return data
}
