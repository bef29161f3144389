package glasses

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Version is the protocol version that every frame carries as v.
const Version = 1

// Limits on what a peer may send. All are bytes unless said otherwise.
const (
	MaxFrame = 64 << 10 // one text frame; a bigger one ends the connection (1009)
	MaxHello = 4 << 10  // the first frame of an app
	MaxID    = 64
	MaxType  = 64
)

// Frames between a peer and the service. Commands, events and control frames have files of their own. A type that is not
// known is ignored by its receiver.
const (
	TypeHello   = "hello"   // app -> service, first frame
	TypeWelcome = "welcome" // service -> peer, answer to hello or to a page's attach
	TypeResult  = "result"  // glasses -> app, same id as the command
	TypeAck     = "ack"     // service -> sender, the row is durable
	TypeError   = "error"   // service -> sender, the frame was not accepted
	TypeRow     = "row"     // service -> page, a new row of the event log
	TypeCursor  = "cursor"  // service -> app, everything up to seq was relayed
	TypePeers   = "peers"   // service -> page, who is attached
	TypeRole    = "role"    // service -> page, whether it plays the glasses
	TypeBeat    = "beat"    // service -> page, the socket lives
)

// Frame is the envelope of everything on the wire. Payload stays raw, so that fields this build does not know survive.
type Frame struct {
	V    int    `json:"v"`
	Type string `json:"type"`
	// ID is chosen by the sender and never used twice by it in a session; a result reuses the command's.
	ID string `json:"id,omitempty"`
	// At is the session's clock in integer milliseconds; for a browser session that is Unix time.
	At int64 `json:"at"`
	// Seq is set on frames replayed from the event log.
	Seq     int64           `json:"seq,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// Error is why a frame, a payload or a command was refused. It travels as the payload of error, and inside result.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Error gives the message without the code.
func (e *Error) Error() string { return e.Message }

// Parse reads one text frame of a peer. The error is an *Error with code bad_frame; the frame then holds whatever id
// could be read, so that the refusal can name it.
func Parse(data []byte) (Frame, error) {
	if len(data) > MaxFrame {
		return Frame{}, badFrame("frame is %d bytes, the limit is %d", len(data), MaxFrame)
	}
	if !utf8.Valid(data) {
		return Frame{}, badFrame("frame is not UTF-8")
	}
	var f Frame
	if err := json.Unmarshal(data, &f); err != nil {
		return Frame{}, badFrame("frame is not a JSON object of the form {v,type,id,at,payload}")
	}
	if !validWord(f.ID, MaxID) {
		f.ID = ""
		return f, badFrame("id is missing or not 1 to %d printable ASCII characters without spaces", MaxID)
	}
	if f.V != Version {
		return f, badFrame("v is %d, this service speaks %d", f.V, Version)
	}
	if !validWord(f.Type, MaxType) {
		return f, badFrame("type is missing or not 1 to %d printable ASCII characters without spaces", MaxType)
	}
	if f.At < 0 {
		return f, badFrame("at is negative")
	}
	if len(f.Payload) == 0 || string(f.Payload) == "null" {
		f.Payload = json.RawMessage("{}")
	}
	if f.Payload[0] != '{' {
		return f, badFrame("payload is not an object")
	}
	f.Seq = 0 // only the log's owner assigns it
	return f, nil
}

// Encode gives the bytes of a frame that this side composed itself.
func (f Frame) Encode() ([]byte, error) {
	f.V = Version
	return json.Marshal(f)
}

// New composes a frame around a payload.
func New(typ, id string, at int64, payload any) (Frame, error) {
	raw, err := json.Marshal(payload)
	if err != nil {
		return Frame{}, fmt.Errorf("encoding %s payload: %w", typ, err)
	}
	return Frame{V: Version, Type: typ, ID: id, At: at, Payload: raw}, nil
}

func badFrame(format string, args ...any) *Error {
	return &Error{Code: CodeBadFrame, Message: fmt.Sprintf(format, args...)}
}

// validWord tells whether s is 1 to limit printable ASCII characters without spaces.
func validWord(s string, limit int) bool {
	if len(s) == 0 || len(s) > limit {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
