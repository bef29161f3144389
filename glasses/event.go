package glasses

import "encoding/json"

// Event is one row of a session's event log, as returned by tools, pages and the HTTP interface.
type Event struct {
	// Seq is the durable cursor. It starts at 1 and grows by one with each row of the session.
	Seq int64 `json:"seq"`
	// At is when the owner of the log received the frame, in milliseconds on the session's clock.
	At      int64           `json:"at"`
	Kind    string          `json:"kind"`
	Chip    string          `json:"chip"`
	Type    string          `json:"type"`
	ID      string          `json:"id"`
	Sender  string          `json:"sender"`
	Payload json.RawMessage `json:"payload"`
}

// Kinds of rows. A request and its result have the same ID.
const (
	KindRequest = "request"
	KindResult  = "result"
	KindEvent   = "event"
)

// Senders of rows.
const (
	SenderApp     = "app"
	SenderGlasses = "glasses" // a simulator page, a local simulator, a real pair
	SenderService = "service"
)

// Chips are user-visible categories of rows.
const (
	ChipErrors    = "errors"
	ChipVoice     = "voice"
	ChipCamera    = "camera"
	ChipDisplay   = "display"
	ChipLifecycle = "lifecycle"
	ChipCustom    = "custom"
)

// Chips returns every chip.
func Chips() []string {
	return []string{ChipErrors, ChipVoice, ChipCamera, ChipDisplay, ChipLifecycle, ChipCustom}
}

// Types of rows written by the service itself.
const (
	RowAppAttached     = "app.attached"
	RowAppDetached     = "app.detached"
	RowGlassesAttached = "glasses.attached"
	RowGlassesDetached = "glasses.detached"
	RowStreamCounted   = "stream.counted" // StreamCount: a stream that ended, or one second of it
	RowSessionClosed   = "session.closed"
	// RowToolCalled has the payload ToolCalled. It is logged when the app's assistant calls one of the app's tools in
	// an answer.
	RowToolCalled = "assistant.tool_called"
	// Rows of a realtime conversation of the app's assistant.
	RowAssistantStarted     = "assistant.started"     // AssistantStarted
	RowAssistantHeard       = "assistant.heard"       // AssistantHeard: what the wearer or the app said
	RowAssistantSaid        = "assistant.said"        // AssistantSaid: an answer, complete or interrupted
	RowAssistantInterrupted = "assistant.interrupted" // AssistantInterrupted: what the wearer did not hear
	RowAssistantFailed      = "assistant.failed"      // AssistantFailed: why there is no answer
	RowAssistantEnded       = "assistant.ended"       // AssistantEnded
)

// KindOf returns the row kind of a frame type.
func KindOf(typ string) string {
	switch {
	case typ == TypeResult:
		return KindResult
	case IsCommand(typ):
		return KindRequest
	}
	return KindEvent
}

// ChipOf returns the chip of a frame type. A result uses errors or the chip of its command instead.
func ChipOf(typ string) string {
	if chip, ok := commandChips[typ]; ok {
		return chip
	}
	switch typ {
	case TypeInput:
		return ChipDisplay
	case TypeTranscript, TypeTranscription, TypeSpeech, TypePlayback, TypePlaybackChunk, TypeAudioChunk, RowToolCalled,
		RowAssistantStarted, RowAssistantHeard, RowAssistantSaid, RowAssistantInterrupted, RowAssistantEnded:
		return ChipVoice
	case TypeMedia, TypeVideoFrame:
		return ChipCamera
	case RowAppAttached, RowAppDetached, RowGlassesAttached, RowGlassesDetached, RowSessionClosed, RowStreamCounted,
		TypeMotion, TypeBattery, TypeWear, TypeHinge, TypeThermal, TypeLink, TypeRoute, TypeCall, TypePermission,
		TypeDisabled, TypeDevice:
		return ChipLifecycle
	case TypeError, TypeFault, RowAssistantFailed:
		return ChipErrors
	}
	return ChipCustom
}

// MaySend returns an error if sender, either SenderApp or SenderGlasses, may not send frames of this type. Neither may
// send the service's frames. Apps may not send events of the glasses, and glasses may not send commands. As an
// exception, apps may send transcription and playback, because they may have used these names for custom events before
// the glasses did.
func MaySend(sender, typ string) *Error {
	switch typ {
	case TypeHello, TypeWelcome, TypeAck, TypeError, TypeRow, TypeCursor, TypePeers, TypeRole, TypeBeat,
		TypeGatewayToken:
		return badFrame("a peer must not send %s", typ)
	}
	switch {
	case IsControl(typ):
		return badFrame("%s comes from the service, not from a peer", typ)
	case sender == SenderApp && (typ == TypeResult || FromGlasses(typ) && typ != TypeTranscription && typ != TypePlayback):
		return badFrame("%s comes from the glasses, not from an app", typ)
	case sender != SenderApp && (IsCommand(typ) || typ == TypeBarrier || typ == TypePlaybackChunk):
		return badFrame("%s comes from an app, not from the glasses", typ)
	}
	return nil
}
