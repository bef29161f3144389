package relay

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/proto/glasses"
)

// controlPrefix starts the ids of control frames.
const controlPrefix = "ctl-"

// Control asks the page that plays a session's glasses and gives the payload of its result, also when that is an error
// of the glasses. With media the frame is a binary one. It returns sessions.ErrNoGlasses when no page is open, and
// sessions.ErrNoAnswer when it does not answer within ControlWait. Neither frame is logged; what they cause is.
func (h *Hub) Control(ctx context.Context, sessionID, typ string, payload json.RawMessage, media []byte) (json.RawMessage, error) {
	if _, err := glasses.ParseControl(typ, payload); err != nil {
		return refused(err)
	}
	id := controlPrefix + rand.Text()
	m, err := h.controlFrame(typ, id, payload, media)
	if err != nil {
		return refused(err)
	}
	r, ok := h.enter(sessionID)
	if !ok {
		return nil, sessions.ErrNoGlasses
	}
	defer h.leave(r)
	c := r.active.Load()
	if c == nil {
		return nil, sessions.ErrNoGlasses
	}
	answer := r.expect(id)
	defer r.forget(id)
	c.send(m)
	late := time.NewTimer(h.ControlWait)
	defer late.Stop()
	select {
	case result := <-answer:
		return result, nil
	case <-c.left:
		return nil, sessions.ErrNoGlasses
	case <-late.C:
		return nil, sessions.ErrNoAnswer
	case <-h.life.Done():
		return nil, sessions.ErrNoGlasses
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (h *Hub) controlFrame(typ, id string, payload json.RawMessage, media []byte) (message, error) {
	f := glasses.Frame{Type: typ, ID: id, At: h.Now().UnixMilli(), Payload: payload}
	if len(media) > 0 {
		data, err := glasses.EncodeBinary(f, media)
		return message{data: data, kind: websocket.MessageBinary}, err
	}
	data, err := f.Encode()
	if err == nil && len(data) > glasses.MaxFrame {
		err = &glasses.Error{Code: glasses.CodeBadPayload, Message: fmt.Sprintf("the frame would be longer than %d bytes", glasses.MaxFrame)}
	}
	return text(data), err
}

// refused is the result of a control frame that no glasses would take.
func refused(err error) (json.RawMessage, error) {
	var why *glasses.Error
	if !errors.As(err, &why) {
		return nil, err
	}
	return json.Marshal(glasses.Result{Error: why})
}

func (r *room) expect(id string) <-chan json.RawMessage {
	answer := make(chan json.RawMessage, 1)
	r.who.Lock()
	defer r.who.Unlock()
	if r.controls == nil {
		r.controls = map[string]chan json.RawMessage{}
	}
	r.controls[id] = answer
	return answer
}

func (r *room) forget(id string) {
	r.who.Lock()
	defer r.who.Unlock()
	delete(r.controls, id)
}

// controlled hands the result of a control frame to who waits for it; false for a result of something else. One that
// nobody waits for any more is acknowledged all the same.
func (r *room) controlled(c *conn, f glasses.Frame) bool {
	if !strings.HasPrefix(f.ID, controlPrefix) {
		return false
	}
	r.who.Lock()
	answer, waits := r.controls[f.ID]
	delete(r.controls, f.ID)
	r.who.Unlock()
	if !waits && r.isPending(f.ID) {
		return false // an app chose such an id
	}
	if waits {
		answer <- f.Payload
	}
	c.tell(r.h.frame(glasses.TypeAck, f.ID, glasses.Ack{ID: f.ID, Kind: glasses.KindResult}))
	return true
}

func (r *room) isPending(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.pending[id]
	return ok
}
