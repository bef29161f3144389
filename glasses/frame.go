package glasses

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/service-dev/service/internal/jsonlimit"
)

// Version is the protocol version. Every frame contains it as v.
const Version = 1

// Limits on the size of incoming frames, in bytes.
const (
	MaxFrame = 64 << 10 // one text frame; a larger one closes the connection with status 1009
	MaxHello = 4 << 10  // the first frame of an app
	MaxID    = 64
	MaxType  = 64
)

// MaxNesting is the maximum number of levels of objects and lists in a payload. The payload itself is one level.
// Without a limit, a small frame could become gigabytes of text when indented. A node of a tree has two levels. The
// limit admits trees that are slightly too deep, so that they are rejected with the error for deep trees.
const MaxNesting = 2*MaxTreeDepth + 16

// Types of frames between a peer and the service. Receivers ignore unknown types.
const (
	TypeHello   = "hello"   // app -> service, first frame
	TypeWelcome = "welcome" // service -> peer, answers hello or the attachment of a page
	TypeResult  = "result"  // glasses -> app, same id as the command
	TypeAck     = "ack"     // service -> sender, the row is durable
	TypeError   = "error"   // service -> sender, the frame was not accepted
	TypeRow     = "row"     // service -> page, a new row of the event log
	TypeCursor  = "cursor"  // service -> app, everything up to seq has been relayed
	TypePeers   = "peers"   // service -> page, who is attached
	TypeRole    = "role"    // service -> page, whether it acts as the glasses
	TypeBeat    = "beat"    // service -> page, heartbeat
	// TypeGatewayToken is a frame from the service to an app with a Gateway: a new token for the assistant's calls.
	TypeGatewayToken = "gateway.token"
)

// Frame is the envelope of every message. Payload stays raw, so that unknown fields survive.
type Frame struct {
	V    int    `json:"v"`
	Type string `json:"type"`
	// ID is unique per sender and session. A result has the ID of its command.
	ID string `json:"id,omitempty"`
	// At is the time on the session's clock in ms. For a browser session it is Unix time.
	At int64 `json:"at"`
	// Seq is set on frames replayed from the event log.
	Seq     int64           `json:"seq,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// Error explains why a frame, a payload or a command was refused. It is the payload of error frames and part of
// results.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// Part is the part of the glasses that permission_denied and disabled_by_user refer to: camera,
	// microphone or speech.
	Part string `json:"part,omitempty"`
	// By is the cause of the refusal: ByPermission or BySwitch.
	By string `json:"by,omitempty"`
}

// Error returns the message without the code.
func (e *Error) Error() string { return e.Message }

// Parse decodes one text frame from a peer. On failure it returns an *Error with code bad_frame. The returned frame
// then contains the ID if it could be read, so that the refusal can refer to it.
func Parse(data []byte) (Frame, error) {
	if len(data) > MaxFrame {
		return Frame{}, badFrame("frame is %d bytes long, over the limit of %d", len(data), MaxFrame)
	}
	if !utf8.Valid(data) {
		return Frame{}, badFrame("frame is not UTF-8")
	}
	var f Frame
	if err := json.Unmarshal(data, &f); err != nil {
		return Frame{}, badFrame("frame must be a JSON object of the form {v,type,id,at,payload}")
	}
	if !validWord(f.ID, MaxID) {
		f.ID = ""
		return f, badFrame("id must be 1 to %d printable ASCII characters without spaces", MaxID)
	}
	if f.V != Version {
		return f, badFrame("v must be %[2]d, the version that this service supports, not %[1]d", f.V, Version)
	}
	if !validWord(f.Type, MaxType) {
		return f, badFrame("type must be 1 to %d printable ASCII characters without spaces", MaxType)
	}
	if f.At < 0 {
		return f, badFrame("at is negative")
	}
	if len(f.Payload) == 0 || string(f.Payload) == "null" {
		f.Payload = json.RawMessage("{}")
	}
	if f.Payload[0] != '{' {
		return f, badFrame("payload must be an object")
	}
	if TooDeep(f.Payload) {
		return f, badFrame("payload is %s", tooDeep)
	}
	f.Seq = 0 // seq is assigned only by the owner of the log
	return f, nil
}

// Encode returns the JSON of a frame.
func (f Frame) Encode() ([]byte, error) {
	f.V = Version
	return json.Marshal(f)
}

// New returns a frame with the payload encoded as JSON.
func New(typ, id string, at int64, payload any) (Frame, error) {
	raw, err := json.Marshal(payload)
	if err != nil {
		return Frame{}, fmt.Errorf("encode %s payload: %w", typ, err)
	}
	return Frame{V: Version, Type: typ, ID: id, At: at, Payload: raw}, nil
}

// TooDeep reports whether payload has more than MaxNesting levels. payload must be valid JSON.
func TooDeep(payload []byte) bool { return jsonlimit.Deeper(payload, MaxNesting) }

var tooDeep = fmt.Sprintf("nested deeper than %d levels of objects and lists", MaxNesting)

func badFrame(format string, args ...any) *Error {
	return &Error{Code: CodeBadFrame, Message: fmt.Sprintf(format, args...)}
}

// validWord reports whether s is 1 to limit printable ASCII characters without spaces.
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
