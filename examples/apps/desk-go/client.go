package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// frame is the envelope of every message on the wire.
type frame struct {
	V       int             `json:"v"`
	Type    string          `json:"type"`
	ID      string          `json:"id"`
	At      int64           `json:"at"`
	Seq     int64           `json:"seq,omitempty"`
	Payload json.RawMessage `json:"payload"`

	data []byte // payload of a binary frame
}

// event is an event from the glasses, with the fields that this app uses.
type event struct {
	typ     string
	payload struct {
		Kind, Target, Text, State, Reason, Part string
		Final, Charging, Worn, Running          bool
		Level                                   int
	}
}

// glassesError explains why the glasses refused a command or, with code closed, why the session ended.
type glassesError struct{ Code, Message string }

func (e *glassesError) Error() string { return e.Message + " (" + e.Code + ")" }

// client is one attached session. One goroutine reads and reconnects. command and next may be called by only one
// other goroutine.
type client struct {
	url, secret string
	cancel      context.CancelFunc
	reader      sync.WaitGroup

	inbox  chan frame // frames that the app has not handled yet
	ended  chan struct{}
	why    error // set before ended is closed
	events []event
	seen   map[string]bool // ids of received events, because an event may arrive twice

	mu     sync.Mutex // guards the fields below and the order of writes
	ws     *websocket.Conn
	prefix string
	count  int
	cursor *int64
	unsent []frame // sent but not acknowledged; sent again after a reconnect
}

func connect(ctx context.Context, url, secret string) *client {
	ctx, cancel := context.WithCancel(ctx)
	c := &client{url: url, secret: strings.TrimSpace(secret), cancel: cancel, inbox: make(chan frame, 256),
		ended: make(chan struct{}),
		seen:  map[string]bool{}, prefix: rand.Text()[:12]}
	c.reader.Go(func() { c.serve(ctx) })
	return c
}

func (c *client) close() {
	c.cancel()
	c.reader.Wait()
}

// next waits for the next event.
func (c *client) next() (event, error) {
	for len(c.events) == 0 {
		if err := c.look("", nil); err != nil {
			return event{}, err
		}
	}
	e := c.events[0]
	c.events = c.events[1:]
	return e, nil
}

// command waits for the result of a command; data is the picture of a camera.photo.
func (c *client) command(typ string, payload any) (data []byte, err error) {
	id := c.send(typ, payload)
	var result frame
	for result.ID == "" {
		if err := c.look(id, &result); err != nil {
			return nil, err
		}
		if result.Type == "media" {
			data, result = result.data, frame{}
		}
	}
	var p struct{ Error *glassesError }
	if err := json.Unmarshal(result.Payload, &p); err != nil {
		return nil, err
	}
	if p.Error != nil {
		return nil, p.Error
	}
	return data, nil
}

// look handles one frame. It responds to barriers here, because the app is waiting for the glasses at this point. If
// the frame is the response to command id, look stores it in answer.
func (c *client) look(id string, answer *frame) error {
	var f frame
	select {
	case f = <-c.inbox:
	default:
		select {
		case f = <-c.inbox:
		case <-c.ended:
			return c.why
		}
	}
	switch {
	case f.Type == "barrier":
		c.mu.Lock()
		defer c.mu.Unlock()
		c.write(frame{V: 1, Type: "barrier", ID: f.ID, At: now(), Payload: json.RawMessage("{}")})
	case f.Type == "result" || f.Type == "media":
		if f.ID == id {
			*answer = f
		}
	case f.Type == "error": // the service refused a frame
		if f.ID == id {
			*answer = frame{Type: "result", ID: id, Payload: json.RawMessage(`{"error":` + string(f.Payload) + `}`)}
		}
	case f.data == nil && (f.ID == "" || !c.seen[f.ID]):
		c.seen[f.ID] = true
		e := event{typ: f.Type}
		if json.Unmarshal(f.Payload, &e.payload) == nil {
			c.events = append(c.events, e)
		}
	}
	return nil
}

func now() int64 { return time.Now().UnixMilli() }

func (c *client) send(typ string, payload any) (id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.frame(typ, payload)
	c.unsent = append(c.unsent, f)
	c.write(f)
	return f.ID
}

func (c *client) frame(typ string, payload any) frame {
	c.count++
	raw, err := json.Marshal(payload)
	if err != nil {
		panic(err) // maps created by this app can always be encoded
	}
	return frame{V: 1, Type: typ, ID: fmt.Sprintf("%s-%d", c.prefix, c.count), At: now(), Payload: raw}
}

// write sends the frame if connected. The reading goroutine handles connection errors.
func (c *client) write(f frame) {
	if c.ws == nil {
		return
	}
	if data, err := json.Marshal(f); err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = c.ws.Write(ctx, websocket.MessageText, data)
	}
}

// serve keeps the app attached until ctx ends or the service reports that reconnecting is useless.
func (c *client) serve(ctx context.Context) {
	defer close(c.ended)
	for pause := 300 * time.Millisecond; ; pause = min(pause*2, 10*time.Second) {
		err := c.attach(ctx)
		switch code := websocket.CloseStatus(err); {
		case ctx.Err() != nil || code == 4410:
			c.why = &glassesError{"closed", "the session is closed"}
			return
		case code == 4400 || code == 4401:
			c.why = err
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// attach serves one connection until it ends.
func (c *client) attach(ctx context.Context) error {
	ws, _, err := websocket.Dial(ctx, c.url, nil)
	if err != nil {
		return err
	}
	defer ws.CloseNow()
	ws.SetReadLimit(4 << 20)
	c.mu.Lock()
	hello, err := json.Marshal(c.frame("hello", map[string]any{"secret": c.secret,
		"app": node{"name": "Desk", "version": "1.0"}, "barrier": true, "since": c.cursor}))
	c.mu.Unlock()
	if err == nil {
		err = ws.Write(ctx, websocket.MessageText, hello)
	}
	for err == nil {
		err = c.read(ctx, ws)
	}
	c.mu.Lock()
	c.ws = nil
	c.mu.Unlock()
	return err
}

func (c *client) read(ctx context.Context, ws *websocket.Conn) error {
	kind, data, err := ws.Read(ctx)
	if err != nil {
		return err
	}
	var f frame
	if kind == websocket.MessageBinary {
		if len(data) < 2 || len(data) < 2+int(binary.BigEndian.Uint16(data)) {
			return errors.New("binary frame without header")
		}
		end := 2 + int(binary.BigEndian.Uint16(data))
		data, f.data = data[2:end], data[end:]
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return fmt.Errorf("read frame: %w", err)
	}
	if !c.take(f, ws) {
		return nil
	}
	select {
	case c.inbox <- f:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// take updates the state of the connection and reports whether the app should handle the frame.
func (c *client) take(f frame, ws *websocket.Conn) bool {
	var p struct {
		LastSeq, Seq int64
		ID           string
	}
	_ = json.Unmarshal(f.Payload, &p) // a payload in another format does not change the state
	c.mu.Lock()
	defer c.mu.Unlock()
	c.see(f.Seq)
	switch f.Type {
	case "welcome":
		if c.cursor == nil {
			c.cursor = &p.LastSeq
		}
		c.ws = ws
		for _, again := range c.unsent {
			c.write(again)
		}
	case "ack":
		c.acknowledged(p.ID)
	case "cursor":
		c.see(p.Seq)
	default:
		if f.Type == "error" {
			c.acknowledged(f.ID)
		}
		return true
	}
	return false
}

func (c *client) see(seq int64) {
	if c.cursor != nil && seq > *c.cursor {
		*c.cursor = seq
	}
}

func (c *client) acknowledged(id string) {
	for i, f := range c.unsent {
		if f.ID == id {
			c.unsent = append(c.unsent[:i], c.unsent[i+1:]...)
			return
		}
	}
}
