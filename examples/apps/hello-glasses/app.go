package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"strings"
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
}

// app is the state that survives a lost connection.
type app struct {
	endpoint, tokenFile string

	prefix string // makes ids unique to this run, because an id can be used only once per session
	count  int
	taps   int
	cursor *int64          // seq of the last row received; nil before the first welcome
	unsent []frame         // sent but not acknowledged; sent again after a reconnect
	seen   map[string]bool // handled taps; a frame may arrive twice
	shown  string          // id of the last display.show
}

func newApp(endpoint, tokenFile string) *app {
	return &app{endpoint: endpoint, tokenFile: tokenFile, prefix: rand.Text()[:10], seen: map[string]bool{}}
}

// connect attaches once and serves the connection until it ends.
func (a *app) connect(ctx context.Context) error {
	secret, err := os.ReadFile(a.tokenFile)
	if err != nil {
		return err
	}
	ws, _, err := websocket.Dial(ctx, a.endpoint, nil)
	if err != nil {
		return err
	}
	defer ws.CloseNow()
	ws.SetReadLimit(1 << 20)
	hello := map[string]any{"secret": strings.TrimSpace(string(secret)),
		"app": map[string]string{"name": "Hello Glasses", "version": "1.0"}, "barrier": true}
	if a.cursor != nil {
		hello["since"] = *a.cursor
	}
	if err := write(ctx, ws, a.frame("hello", hello)); err != nil {
		return err
	}
	alive, cancel := context.WithCancel(ctx)
	defer cancel()
	go heartbeat(alive, ws)
	go func() { // on Ctrl-C, close the connection properly
		<-alive.Done()
		if ctx.Err() != nil {
			ws.Close(websocket.StatusNormalClosure, "done")
		}
	}()
	for {
		_, data, err := ws.Read(context.WithoutCancel(ctx))
		if err != nil {
			return err
		}
		var f frame
		if err := json.Unmarshal(data, &f); err != nil {
			return fmt.Errorf("read frame: %w", err)
		}
		if err := a.handle(ctx, ws, f); err != nil {
			return err
		}
	}
}

// heartbeat pings the service to detect a dead connection.
func heartbeat(ctx context.Context, ws *websocket.Conn) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(8 * time.Second):
		}
		once, cancel := context.WithTimeout(ctx, 8*time.Second)
		err := ws.Ping(once)
		cancel()
		if err != nil && ctx.Err() == nil {
			ws.CloseNow()
			return
		}
	}
}

// isReachable reports whether glasses with this connection state can show anything.
func isReachable(link string) bool { return link == "connected" || link == "lossy" }

func (a *app) handle(ctx context.Context, ws *websocket.Conn, f frame) error {
	var p struct {
		SessionID   string
		Link, State string
		LastSeq     int64
		ID          string
		Seq         int64
		OK          bool
		Kind        string
		X, Y        int
		Error       *struct{ Code, Message string }
		Message     string
	}
	if err := json.Unmarshal(f.Payload, &p); err != nil {
		return fmt.Errorf("read %s: %w", f.Type, err)
	}
	if f.Seq > 0 {
		a.see(f.Seq)
	}
	switch f.Type {
	case "welcome":
		fmt.Printf("connected to %s, glasses %s\n", p.SessionID, p.Link)
		if a.cursor == nil {
			a.cursor = &p.LastSeq
		}
		for _, again := range a.unsent {
			if err := write(ctx, ws, again); err != nil {
				return err
			}
		}
		if isReachable(p.Link) && len(a.unsent) == 0 {
			return a.show(ctx, ws)
		}
	case "barrier": // all earlier frames have been handled
		return write(ctx, ws, frame{V: 1, Type: f.Type, ID: f.ID, At: f.At, Payload: json.RawMessage("{}")})
	case "link":
		fmt.Printf("glasses %s\n", p.State)
		if isReachable(p.State) {
			return a.show(ctx, ws)
		}
	case "device": // the model changed, and its panel is clear
		return a.show(ctx, ws)
	case "input":
		if p.Kind != "tap" || a.seen[f.ID] {
			return nil
		}
		a.seen[f.ID] = true
		a.taps++
		fmt.Printf("tap %d at %d,%d\n", a.taps, p.X, p.Y)
		return a.show(ctx, ws)
	case "result":
		if f.ID == a.shown && p.Error != nil {
			fmt.Printf("not shown: %s (%s)\n", p.Error.Message, p.Error.Code)
		}
	case "ack":
		a.acknowledged(p.ID)
	case "cursor":
		a.see(p.Seq)
	case "error":
		fmt.Printf("refused: %s\n", p.Message)
		a.acknowledged(f.ID)
	}
	return nil // unknown types are ignored
}

func (a *app) see(seq int64) {
	if a.cursor != nil && seq > *a.cursor {
		*a.cursor = seq
	}
}

// show displays the text on the panel.
func (a *app) show(ctx context.Context, ws *websocket.Conn) error {
	text := map[string]any{"type": "text", "text": "Hello, glasses", "style": "title"}
	count := map[string]any{"type": "text", "text": "Tap me"}
	if a.taps > 0 {
		count["text"] = fmt.Sprintf("Taps: %d", a.taps)
	}
	f := a.frame("display.show", map[string]any{"tree": map[string]any{"type": "column",
		"padding": 16, "gap": 8, "children": []any{text, count}}})
	a.shown = f.ID
	a.unsent = append(a.unsent, f)
	return write(ctx, ws, f)
}

func (a *app) acknowledged(id string) {
	for i, f := range a.unsent {
		if f.ID == id {
			a.unsent = append(a.unsent[:i], a.unsent[i+1:]...)
			return
		}
	}
}

func (a *app) frame(typ string, payload any) frame {
	a.count++
	raw, err := json.Marshal(payload)
	if err != nil {
		panic(err) // maps of strings can always be encoded
	}
	return frame{V: 1, Type: typ, ID: fmt.Sprintf("%s-%d", a.prefix, a.count), At: time.Now().UnixMilli(), Payload: raw}
}

func write(ctx context.Context, ws *websocket.Conn, f frame) error {
	data, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return ws.Write(ctx, websocket.MessageText, data)
}
