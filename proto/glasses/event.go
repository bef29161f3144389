package glasses

import (
	"encoding/json"
	"strings"
)

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
	SenderPage    = "page"
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
	RowAppAttached   = "app.attached"
	RowAppDetached   = "app.detached"
	RowPageAttached  = "page.attached"
	RowPageDetached  = "page.detached"
	RowDeviceChanged = "device.changed"
	RowSessionClosed = "session.closed"
)

// IsCommand tells whether a frame type is a command that must be answered by a result.
func IsCommand(typ string) bool { return typ == TypeDisplayShow || typ == TypeDisplayClear }

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
	switch {
	case strings.HasPrefix(typ, "display."), typ == TypeInput:
		return ChipDisplay
	case typ == RowAppAttached, typ == RowAppDetached, typ == RowPageAttached, typ == RowPageDetached,
		typ == RowDeviceChanged, typ == RowSessionClosed, typ == TypeLink:
		return ChipLifecycle
	case typ == TypeError:
		return ChipErrors
	}
	return ChipCustom
}
