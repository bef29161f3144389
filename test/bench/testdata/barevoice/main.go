// Command barevoice is the provider and the baseline of the benchmark of voice. Without an argument it is a provider
// for realtime sessions, which reports that speech has started for each piece of sound. With the URL of such a provider
// it relays realtime sessions to it, using only net/http and coder/websocket. It prints its address, and exits when its
// standard input closes.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/coder/websocket"
)

func main() {
	session := provide
	if len(os.Args) > 1 {
		session = relay
	}
	fmt.Println(httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		c.SetReadLimit(4 << 20)
		session(r.Context(), c)
	})).URL)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func provide(ctx context.Context, c *websocket.Conn) {
	answer := []byte(`{"type":"session.created","event_id":"e1","session":{"type":"realtime","model":"m"}}`)
	for {
		if answer != nil && c.Write(ctx, websocket.MessageText, answer) != nil {
			return
		}
		_, event, err := c.Read(ctx)
		switch {
		case err != nil:
			return
		case bytes.Contains(event[:min(len(event), 60)], []byte(`"input_audio_buffer.append"`)):
			answer = []byte(`{"type":"input_audio_buffer.speech_started","event_id":"e2","audio_start_ms":0,"item_id":"i"}`)
		case bytes.Contains(event, []byte(`"session.update"`)):
			answer = []byte(`{"type":"session.updated","event_id":"e3","session":{"type":"realtime","model":"m"}}`)
		default:
			answer = nil
		}
	}
}

func relay(ctx context.Context, app *websocket.Conn) {
	url := "ws" + strings.TrimPrefix(os.Args[1], "http")
	provider, _, err := websocket.Dial(ctx, url, nil) //nolint:bodyclose // the body need not be closed
	if err != nil {
		return
	}
	defer provider.CloseNow()
	provider.SetReadLimit(4 << 20)
	copied := make(chan struct{})
	go func() {
		pass(ctx, provider, app)
		_ = app.CloseNow()
		close(copied)
	}()
	pass(ctx, app, provider)
	_ = provider.CloseNow()
	<-copied
}

func pass(ctx context.Context, from, to *websocket.Conn) {
	for {
		kind, data, err := from.Read(ctx)
		if err != nil || to.Write(ctx, kind, data) != nil {
			return
		}
	}
}
