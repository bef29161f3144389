package glasses

import "encoding/json"

// Event is one row of a session's event log, as tools, pages and the HTTP interface show it.
type Event struct {
	// Seq is the durable cursor: it grows by one a row within a session, from 1.
	Seq int64 `json:"seq"`
	// At is when the log's owner took the frame, integer milliseconds of the session's clock.
	At      int64           `json:"at"`
	Kind    string          `json:"kind"`
	Chip    string          `json:"chip"`
	Type    string          `json:"type"`
	ID      string          `json:"id"`
	Sender  string          `json:"sender"`
	Payload json.RawMessage `json:"payload"`
}

// Kinds of a row. A request and its result share an id.
const (
	KindRequest = "request"
	KindResult  = "result"
	KindEvent   = "event"
)

// Senders of a row.
const (
	SenderApp     = "app"
	SenderGlasses = "glasses" // a simulator page, a local simulator, a real pair
	SenderService = "service"
)

// Chips sort rows for people.
const (
	ChipErrors    = "errors"
	ChipVoice     = "voice"
	ChipCamera    = "camera"
	ChipDisplay   = "display"
	ChipLifecycle = "lifecycle"
	ChipCustom    = "custom"
)

// Types of rows that the service itself writes.
const (
	RowAppAttached     = "app.attached"
	RowAppDetached     = "app.detached"
	RowGlassesAttached = "glasses.attached"
	RowGlassesDetached = "glasses.detached"
	RowStreamCounted   = "stream.counted" // {type, frames, bytes}: a stream that ended, or a second's worth of it
	RowSessionClosed   = "session.closed"
)

// KindOf gives the row kind of a frame type.
func KindOf(typ string) string {
	switch {
	case typ == TypeResult:
		return KindResult
	case IsCommand(typ):
		return KindRequest
	}
	return KindEvent
}

// ChipOf gives the chip of a frame type. A result takes errors or the chip of its command instead.
func ChipOf(typ string) string {
	if chip, ok := commandChips[typ]; ok {
		return chip
	}
	switch typ {
	case TypeInput:
		return ChipDisplay
	case TypeTranscript, TypeSpeech, TypeAudioChunk:
		return ChipVoice
	case TypeMedia, TypeVideoFrame:
		return ChipCamera
	case RowAppAttached, RowAppDetached, RowGlassesAttached, RowGlassesDetached, RowSessionClosed, RowStreamCounted, TypeMotion,
		TypeBattery, TypeWear, TypeHinge, TypeThermal, TypeLink, TypeRoute, TypeCall, TypePermission, TypeDisabled, TypeDevice:
		return ChipLifecycle
	case TypeError, TypeFault:
		return ChipErrors
	}
	return ChipCustom
}

// MaySend refuses types that a sender has no business with: what only the service says, an app's commands from the
// glasses, and the reverse. sender is SenderApp or SenderGlasses.
func MaySend(sender, typ string) *Error {
	switch typ {
	case TypeHello, TypeWelcome, TypeAck, TypeError, TypeRow, TypeCursor, TypePeers, TypeRole, TypeBeat:
		return badFrame("%s is not a frame to send here", typ)
	}
	switch {
	case IsControl(typ):
		return badFrame("%s comes from the service, not from a peer", typ)
	case sender == SenderApp && (typ == TypeResult || FromGlasses(typ)):
		return badFrame("%s comes from the glasses, not from an app", typ)
	case sender != SenderApp && (IsCommand(typ) || typ == TypeBarrier):
		return badFrame("%s comes from an app, not from the glasses", typ)
	}
	return nil
}
