package glasses

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
	"unicode"
)

// Hello is the payload of an app's first frame. Never log Secret.
type Hello struct {
	Secret string  `json:"secret"`
	App    AppInfo `json:"app"`
	// Barrier declares that the app answers barrier frames.
	Barrier bool `json:"barrier,omitempty"`
	// Gateway declares that the app handles gateway.token frames. The service sends none to other apps, because older
	// modules would pass the token to the app as an event.
	Gateway bool `json:"gateway,omitempty"`
	// Since requests the events and results after this cursor; nil requests none.
	Since *int64 `json:"since,omitempty"`
}

// AppInfo is an app's description of itself, shown to users. Each field is cut to 100 characters.
type AppInfo struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

const (
	maxSecret  = 200
	maxAppWord = 100
)

// ParseHello decodes an app's first frame. On failure it returns an *Error with code bad_frame, which never contains
// the secret.
func ParseHello(data []byte) (Hello, Frame, error) {
	if len(data) > MaxHello {
		return Hello{}, Frame{}, badFrame("hello is %d bytes long, over the limit of %d", len(data), MaxHello)
	}
	f, err := Parse(data)
	if err != nil {
		return Hello{}, f, err
	}
	if f.Type != TypeHello {
		return Hello{}, f, badFrame("the first frame must be hello, not %s", f.Type)
	}
	var h Hello
	if err := json.Unmarshal(f.Payload, &h); err != nil {
		return Hello{}, f, badFrame("hello payload must be {secret,app:{name,version},since}")
	}
	if h.Secret == "" || len(h.Secret) > maxSecret {
		return Hello{}, f, badFrame("hello has no secret")
	}
	if h.Since != nil && *h.Since < 0 {
		return Hello{}, f, badFrame("hello since must not be negative")
	}
	h.App.Name = printable(h.App.Name, maxAppWord)
	h.App.Version = printable(h.App.Version, maxAppWord)
	if h.App.Name == "" {
		return Hello{}, f, badFrame("hello must contain an app name")
	}
	return h, f, nil
}

// printable drops unprintable characters and truncates s to limit characters.
func printable(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
	if r := []rune(s); len(r) > limit {
		s = string(r[:limit])
	}
	return strings.TrimSpace(s)
}

// Welcome is the payload of the answer to an app's hello.
type Welcome struct {
	SessionID   string      `json:"sessionId"`
	DeviceModel DeviceModel `json:"deviceModel"`
	Link        string      `json:"link"`
	LastSeq     int64       `json:"lastSeq"`
	// Glasses is the current state of the glasses. Without attached glasses, it is the state of the last glasses, or
	// the initial state.
	Glasses AppState `json:"glasses"`
	// Truncated reports that rows after the hello's since are no longer stored. The event log keeps a limited number of
	// rows for a limited time.
	Truncated bool `json:"truncated,omitempty"`
	// Gateway is the AI gateway for the app's assistant; nil if it has none.
	Gateway *Gateway `json:"gateway,omitempty"`
}

// Gateway is an AI gateway that an app calls. Never log Token.
type Gateway struct {
	// URL is the base URL of an OpenAI-compatible interface. It ends in /v1.
	URL string `json:"url"`
	// Token is sent as a bearer token in each call to URL. It is valid for GatewayTokenLife, but not beyond the end of
	// the session.
	Token string `json:"token"`
}

// GatewayTokenLife is how long a token of a Gateway is valid. GatewayTokenRenew is how long before its expiry an
// attached app receives a new one.
const (
	GatewayTokenLife  = time.Hour
	GatewayTokenRenew = 10 * time.Minute
)

// ToolCalled is the payload of assistant.tool_called.
type ToolCalled struct {
	Name string `json:"name"`
	// Arguments are the arguments of the call if they are an object within MaxToolArguments and MaxNesting; otherwise
	// null.
	Arguments json.RawMessage `json:"arguments"`
}

// MaxToolArguments is the maximum length of the arguments in a row, in bytes.
const MaxToolArguments = 4 << 10

// NewToolCalled returns the payload for a call. arguments is JSON.
func NewToolCalled(name, arguments string) ToolCalled {
	var kept bytes.Buffer
	if len(arguments) > MaxToolArguments || !strings.HasPrefix(strings.TrimSpace(arguments), "{") ||
		json.Compact(&kept, []byte(arguments)) != nil || TooDeep(kept.Bytes()) {
		return ToolCalled{Name: name}
	}
	return ToolCalled{Name: name, Arguments: kept.Bytes()}
}

// AssistantStarted is the payload of assistant.started.
type AssistantStarted struct {
	Model      string `json:"model"`
	SampleRate int    `json:"sampleRate"`
}

// AssistantHeard is the payload of assistant.heard. AudioMs is 0 for text that the app sent.
type AssistantHeard struct {
	Text    string `json:"text"`
	AudioMs int64  `json:"audioMs"`
}

// AssistantSaid is the payload of assistant.said. AfterMs is the time from the request to the first sound or text.
// AudioMs is the length of the sound that was sent to the app. AfterSpeechMs is the time from the end of the wearer's
// speech to the first sound or text, including calls of tools in between; nil if the app sent text instead.
type AssistantSaid struct {
	Text          string `json:"text"`
	AfterMs       int64  `json:"afterMs"`
	AudioMs       int64  `json:"audioMs"`
	AfterSpeechMs *int64 `json:"afterSpeechMs,omitempty"`
}

// MaxSpoken limits a text in AssistantHeard and AssistantSaid, in bytes, so that a row fits in a response of the HTTP
// API.
const MaxSpoken = 16 << 10

// Spoken returns the beginning of a text that fits in AssistantHeard and AssistantSaid.
func Spoken(text string) string { return strings.ToValidUTF8(text[:min(len(text), MaxSpoken)], "") }

// AssistantInterrupted is the payload of assistant.interrupted. The app has truncated an answer of AudioMs to the
// PlayedMs that the wearer heard.
type AssistantInterrupted struct {
	PlayedMs int64 `json:"playedMs"`
	AudioMs  int64 `json:"audioMs"`
}

// AssistantFailed is the payload of assistant.failed, which tells why there is no answer.
type AssistantFailed struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// AssistantEnded is the payload of assistant.ended.
type AssistantEnded struct {
	Reason string `json:"reason"`
}

// BarrierAnswer is the payload of an app's answer to a barrier.
type BarrierAnswer struct {
	// Calls is the number of gateway calls for which the app is waiting; nil if the app does not count them.
	Calls *int `json:"calls,omitempty"`
}

// PageWelcome is the payload of the first frame to a page.
type PageWelcome struct {
	SessionID   string      `json:"sessionId"`
	DeviceModel DeviceModel `json:"deviceModel"`
	LastSeq     int64       `json:"lastSeq"`
	// Display is the payload of the display.show in effect; null if the panel is clear.
	Display json.RawMessage `json:"display"`
	// Glasses is the initial state of the page's glasses. It is null if the service does not know the state, and the
	// page then keeps its own.
	Glasses *AppState `json:"glasses"`
	// Truncated reports that rows after the page's cursor are no longer stored.
	Truncated bool `json:"truncated,omitempty"`
}

// Role is the payload of role. If a session has several pages, the newest acts as the glasses. The others show what the
// app sends, but do not answer. When the newest page detaches, the newest of the remaining pages takes over.
type Role struct {
	Active bool `json:"active"`
}

// StreamCount is the payload of stream.counted rows.
type StreamCount struct {
	Type   string `json:"type"`
	Frames int64  `json:"frames"`
	Bytes  int64  `json:"bytes"`
}

// DeviceChange is the payload of device.
type DeviceChange struct {
	DeviceModel DeviceModel `json:"deviceModel"`
}

// Ack is the payload of ack. The frame with this ID and kind is row Seq of the log.
type Ack struct {
	ID   string `json:"id"`
	Kind string `json:"kind"`
	Seq  int64  `json:"seq"`
}

// Cursor is the payload of cursor.
type Cursor struct {
	Seq int64 `json:"seq"`
}

// Peers is the payload of a frame of type peers.
type Peers struct {
	Apps  []AppInfo `json:"apps"`
	Pages int       `json:"pages"`
}
