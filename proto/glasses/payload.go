package glasses

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
)

// Hello is the payload of an app's first frame. Secret is a secret: never log it.
type Hello struct {
	Secret string  `json:"secret"`
	App    AppInfo `json:"app"`
	// Since asks for the events and results after this cursor; nil for none.
	Since *int64 `json:"since,omitempty"`
}

// AppInfo is what an app says of itself. Both are shown to people, at most 100 characters each.
type AppInfo struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

const (
	maxSecret  = 200
	maxAppWord = 100
)

// ParseHello reads an app's first frame. The error is an *Error with code bad_frame and never holds the secret.
func ParseHello(data []byte) (Hello, Frame, error) {
	if len(data) > MaxHello {
		return Hello{}, Frame{}, badFrame("hello is %d bytes, the limit is %d", len(data), MaxHello)
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
		return Hello{}, f, badFrame("hello payload is not {secret,app:{name,version},since}")
	}
	if h.Secret == "" || len(h.Secret) > maxSecret {
		return Hello{}, f, badFrame("hello has no secret")
	}
	if h.Since != nil && *h.Since < 0 {
		return Hello{}, f, badFrame("hello since is negative")
	}
	h.App.Name = printable(h.App.Name, maxAppWord)
	h.App.Version = printable(h.App.Version, maxAppWord)
	if h.App.Name == "" {
		return Hello{}, f, badFrame("hello has no app name")
	}
	return h, f, nil
}

// printable drops what cannot be shown and cuts to limit characters.
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

// Link states, in welcome and link.
const (
	LinkConnected    = "connected"    // glasses (a page) are attached
	LinkDisconnected = "disconnected" // none is
)

// Welcome is the payload of the answer to an app's hello.
type Welcome struct {
	SessionID   string      `json:"sessionId"`
	DeviceModel DeviceModel `json:"deviceModel"`
	Link        string      `json:"link"`
	LastSeq     int64       `json:"lastSeq"`
}

// PageWelcome is the payload of the first frame that a page gets.
type PageWelcome struct {
	SessionID   string      `json:"sessionId"`
	DeviceModel DeviceModel `json:"deviceModel"`
	LastSeq     int64       `json:"lastSeq"`
	// Display is the payload of the display.show on the panel now; null when it is clear.
	Display json.RawMessage `json:"display"`
}

// LinkState is the payload of link.
type LinkState struct {
	State string `json:"state"`
}

// DeviceChange is the payload of device.
type DeviceChange struct {
	DeviceModel DeviceModel `json:"deviceModel"`
}

// Ack is the payload of ack: the frame of this id and kind is row Seq of the log.
type Ack struct {
	ID   string `json:"id"`
	Kind string `json:"kind"`
	Seq  int64  `json:"seq"`
}

// Cursor is the payload of cursor.
type Cursor struct {
	Seq int64 `json:"seq"`
}

// Peers is the payload of peers.
type Peers struct {
	Apps  []AppInfo `json:"apps"`
	Pages int       `json:"pages"`
}

// Result is the payload of result: either OK, or Error.
type Result struct {
	OK    bool   `json:"ok,omitempty"`
	Error *Error `json:"error,omitempty"`
}

// ParseResult reads a result's payload. The error is an *Error with code bad_payload.
func ParseResult(payload []byte) (Result, error) {
	var r Result
	if err := json.Unmarshal(payload, &r); err != nil {
		return Result{}, badPayload("result payload is neither {ok:true} nor {error:{code,message}}")
	}
	if r.OK == (r.Error != nil) || (r.Error != nil && r.Error.Code == "") {
		return Result{}, badPayload("result payload needs either ok:true or an error with a code")
	}
	return r, nil
}

// Input is the payload of input. X and Y are panel pixels from the top left.
type Input struct {
	Kind string `json:"kind"`
	X    int    `json:"x"`
	Y    int    `json:"y"`
}

// Show is the payload of display.show.
type Show struct {
	Tree Node `json:"tree"`
}

// Node is one node of a display tree. This version draws text and column; a node of another type is kept, not drawn.
type Node struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	Children []Node `json:"children,omitempty"`
}

// Limits of a display tree.
const (
	MaxNodes     = 500
	MaxTreeDepth = 32
)

// ParseShow reads a display.show payload. The error is an *Error with code bad_payload.
func ParseShow(payload []byte) (Show, error) {
	var s Show
	if err := json.Unmarshal(payload, &s); err != nil {
		return Show{}, badPayload("display.show payload is not {tree:{type,text,children}}")
	}
	nodes := 0
	if err := checkNode(s.Tree, 1, &nodes); err != nil {
		return Show{}, err
	}
	return s, nil
}

func checkNode(n Node, depth int, nodes *int) error {
	*nodes++
	switch {
	case !validWord(n.Type, MaxType):
		return badPayload("a node of the tree has no type")
	case depth > MaxTreeDepth:
		return badPayload("the tree is deeper than %d", MaxTreeDepth)
	case *nodes > MaxNodes:
		return badPayload("the tree has more than %d nodes", MaxNodes)
	}
	for _, c := range n.Children {
		if err := checkNode(c, depth+1, nodes); err != nil {
			return err
		}
	}
	return nil
}

func badPayload(format string, args ...any) *Error {
	return &Error{Code: CodeBadPayload, Message: fmt.Sprintf(format, args...)}
}
