package host

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/service-dev/service/glasses"
)

// controlPrefix is the prefix of the IDs of control frames.
const controlPrefix = "ctl-"

// NewControlID returns a new ID for a control frame.
func NewControlID() string { return controlPrefix + rand.Text() }

// IsControlID reports whether an ID has the form of NewControlID. Apps may also choose such IDs.
func IsControlID(id string) bool { return strings.HasPrefix(id, controlPrefix) }

// ControlFrame returns a control frame, which is binary unless media is nil. It returns a *glasses.Error if the frame
// would be too long.
func ControlFrame(typ, id string, at int64, payload json.RawMessage, media []byte) (Message, error) {
	f := glasses.Frame{Type: typ, ID: id, At: at, Payload: payload}
	if media != nil {
		data, err := glasses.EncodeBinary(f, media)
		return Binary(data), err
	}
	data, err := f.Encode()
	if err == nil && len(data) > glasses.MaxFrame {
		err = &glasses.Error{
			Code: glasses.CodeBadPayload, Message: fmt.Sprintf("the frame would be longer than %d bytes", glasses.MaxFrame),
		}
	}
	return Text(data), err
}

// Controls tracks pending control frames by ID and delivers each result to the caller that waits for it. T is the type
// of a result.
type Controls[T any] struct {
	mu      sync.Mutex
	answers map[string]chan T // nil until there is one
}

// Expect returns the channel for the result of a control frame. Call it before the frame is sent, and call Take when
// the result is no longer needed.
func (c *Controls[T]) Expect(id string) <-chan T {
	answer := make(chan T, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answers == nil {
		c.answers = map[string]chan T{}
	}
	c.answers[id] = answer
	return answer
}

// Take removes and returns the channel for a result. Sending to it never blocks. Take returns nil if no caller is
// waiting.
func (c *Controls[T]) Take(id string) chan<- T {
	c.mu.Lock()
	defer c.mu.Unlock()
	answer := c.answers[id]
	delete(c.answers, id)
	return answer
}

// Close closes every channel after the glasses have disconnected.
func (c *Controls[T]) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, answer := range c.answers {
		close(answer)
	}
	clear(c.answers)
}
