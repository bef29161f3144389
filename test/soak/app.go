//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/glasses"
)

// app is an app under development that is attached to the browser session of an agent's project. That session has no
// open page, so the backend refuses the app's commands and logs them.
type app struct {
	*soak
	name string

	mu        sync.Mutex
	endpoint  string
	tokenFile string
	acked     map[string]bool // ids of acknowledged commands, which must be in the log
	sent      int
	reattach  int
}

// take stores the URL and the token file from a result of createSimulatorSession.
func (p *app) take(endpoint, tokenFile string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endpoint, p.tokenFile = endpoint, tokenFile
}

// work sends commands until ctx ends. It repeats an unacknowledged command on the next connection with the same id.
func (p *app) work(ctx context.Context) {
	pending := ""
	for ctx.Err() == nil {
		conn, err := p.attach(ctx)
		if err != nil {
			pause(ctx, 200*time.Millisecond)
			continue
		}
		p.reattach++
		pending = p.talk(ctx, conn, pending)
		_ = conn.CloseNow()
	}
}

// attach connects and sends hello. It fails while the backend is down.
func (p *app) attach(ctx context.Context) (*websocket.Conn, error) {
	p.mu.Lock()
	endpoint, file := p.endpoint, p.tokenFile
	p.mu.Unlock()
	if endpoint == "" {
		return nil, fmt.Errorf("no session yet")
	}
	secret, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, endpoint, nil) //nolint:bodyclose // the body need not be closed
	if err != nil {
		return nil, err
	}
	hello := glasses.Hello{Secret: strings.TrimSpace(string(secret)), App: glasses.AppInfo{Name: p.name}}
	if err = send(ctx, conn, glasses.TypeHello, "hello", hello); err == nil {
		var f glasses.Frame
		if f, err = receive(ctx, conn); err == nil && f.Type != glasses.TypeWelcome {
			p.results.report("%s: hello was answered by %s %s", p.name, f.Type, f.Payload)
		}
	}
	if err != nil {
		_ = conn.CloseNow()
		return nil, err
	}
	return conn, nil
}

// talk sends commands until the connection breaks, and returns the id of the unacknowledged command.
func (p *app) talk(ctx context.Context, conn *websocket.Conn, pending string) string {
	for ctx.Err() == nil {
		if pending == "" {
			p.sent++
			pending = fmt.Sprintf("%s-%d", strings.ReplaceAll(p.name, " ", "-"), p.sent)
		}
		since := time.Now()
		if !p.say(ctx, conn, pending) {
			return pending
		}
		p.mu.Lock()
		p.acked[pending] = true
		p.mu.Unlock()
		p.checkOutcome(p.name, "app's frame acknowledged", ok, since, "")
		pending = ""
		pause(ctx, 50*time.Millisecond)
	}
	return pending
}

// say sends one command and waits for its acknowledgement.
func (p *app) say(ctx context.Context, conn *websocket.Conn, id string) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if send(ctx, conn, glasses.TypeSpeechSay, id, map[string]string{"text": id}) != nil {
		return false
	}
	for {
		f, err := receive(ctx, conn)
		if err != nil {
			return false
		}
		if f.Type == glasses.TypeAck && f.ID == id {
			return true
		}
	}
}

func send(ctx context.Context, conn *websocket.Conn, typ, id string, payload any) error {
	f, err := glasses.New(typ, id, time.Now().UnixMilli(), payload)
	if err != nil {
		return err
	}
	data, err := f.Encode()
	if err != nil {
		return err
	}
	return conn.Write(ctx, websocket.MessageText, data)
}

func receive(ctx context.Context, conn *websocket.Conn) (glasses.Frame, error) {
	for {
		kind, data, err := conn.Read(ctx)
		if err != nil {
			return glasses.Frame{}, err
		}
		if kind != websocket.MessageText {
			continue
		}
		var f glasses.Frame // glasses.Parse is only for frames from peers; frames from the service may lack an id
		return f, json.Unmarshal(data, &f)
	}
}

// check compares the complete log of the app's session with the acknowledged commands.
func (p *app) check(id string, requests map[string]int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for frame := range p.acked {
		if n := requests[frame]; n != 1 {
			p.results.report("%s: %s was acknowledged and is in the log of %s %d times", p.name, frame, id, n)
		}
	}
	p.results.note(p.name+": frames acknowledged and found in the log, connections",
		fmt.Sprintf("%d, %d", len(p.acked), p.reattach))
}
