package glassespage

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/service-dev/service/glasses/driver"
)

// Limits of messages from a page.
const (
	maxValue   = 512 // bytes of one value in the ATT protocol
	maxText    = 2048
	maxMessage = max(maxText, 1+maxValue)
	maxName    = 248 // bytes of an advertised name
)

// The types of text messages. A binary message from the page is a notification, which consists of the link's index
// and the value. A binary message to the page is a write, which consists of the link's index, 1 if the peripheral has
// to respond and 0 otherwise, and the value.
const (
	typeChosen  = "chosen"  // from the page: the user chose a peripheral for Link, which advertises Name
	typeProblem = "problem" // from the page: no peripheral could be chosen for Link, or for any link if it is empty
	typeCheck   = "check"   // from the page: the user starts a check of the panel
	typeSeen    = "seen"    // from the page: the user's answers about the test picture
	typeCancel  = "cancel"  // from the page: the user cancels the check
	typeUp      = driver.LinkUp
	typeDown    = driver.LinkDown
	typeWritten = driver.Written

	typeSetup  = "setup"  // to the page: the first message
	typeState  = "state"  // to the page: the state changed
	typeOpen   = "open"   // to the page: open Link
	typeDrop   = "drop"   // to the page: close Link
	typeForget = "forget" // to the page: close Link and forget its peripheral
	typeOver   = "over"   // to the page: the session has ended
)

// fromPage is a message from the page.
type fromPage struct {
	Type    string `json:"type"`
	Link    string `json:"link"`
	Name    string `json:"name"`
	Problem string `json:"problem"`
	Upright bool   `json:"upright"`
	Border  bool   `json:"border"`
	data    []byte // value of a notification
}

func (m fromPage) isAboutPanel() bool {
	return m.Type == typeCheck || m.Type == typeSeen || m.Type == typeCancel
}

// toPage is a text message to the page.
type toPage struct {
	Type  string            `json:"type"`
	Link  string            `json:"link,omitempty"`
	Title string            `json:"title,omitempty"`
	Steps []string          `json:"steps,omitempty"`
	Specs []driver.LinkSpec `json:"specs,omitempty"`
	State *view             `json:"state,omitempty"`
}

// message is a WebSocket message to the page.
type message struct {
	typ  websocket.MessageType
	data []byte
}

func textMessage(m toPage) message {
	data, err := json.Marshal(m)
	if err != nil {
		panic(err) // it contains only text, numbers and booleans
	}
	return message{websocket.MessageText, data}
}

func writeMessage(index byte, data []byte, withResponse bool) message {
	head := []byte{index, 0}
	if withResponse {
		head[1] = 1
	}
	return message{websocket.MessageBinary, append(head, data...)}
}

// parse parses a message from a page with these links.
func parse(typ websocket.MessageType, data []byte, links []driver.LinkSpec) (fromPage, error) {
	if typ == websocket.MessageBinary {
		switch {
		case len(data) == 0 || int(data[0]) >= len(links):
			return fromPage{}, errors.New("the notification is for an unknown link")
		case len(data) > 1+maxValue:
			return fromPage{}, fmt.Errorf("the notification is %d bytes long, over the limit of %d", len(data)-1, maxValue)
		}
		return fromPage{Type: driver.Notified, Link: links[data[0]].Key, data: data[1:]}, nil
	}
	var m fromPage
	if err := json.Unmarshal(data, &m); err != nil {
		return m, errors.New("the message is not a JSON object")
	}
	if m.isAboutPanel() {
		return m, nil
	}
	known := slices.ContainsFunc(links, func(s driver.LinkSpec) bool { return s.Key == m.Link })
	switch {
	case !slices.Contains([]string{typeChosen, typeProblem, typeUp, typeDown, typeWritten}, m.Type):
		return m, errors.New("the message type is unknown")
	case !known && (m.Type != typeProblem || m.Link != ""):
		return m, errors.New("the message is for an unknown link")
	case m.Problem != "" && !slices.Contains(driver.Problems(), m.Problem):
		return m, errors.New("the problem is unknown")
	case m.Type == typeProblem && m.Problem == "" || m.Type == typeChosen && m.Name == "":
		return m, errors.New("the message has no problem or name")
	case len(m.Name) > maxName || !utf8.ValidString(m.Name) ||
		strings.ContainsFunc(m.Name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return m, fmt.Errorf("the name must be printable and at most %d bytes long", maxName)
	}
	return m, nil
}
