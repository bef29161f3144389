// Package glassesapp attaches to a session as an app, for the commands of servicectl that use the glasses themselves:
// the panel check and the bench.
package glassesapp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/broker"
	"github.com/service-dev/service/internal/buildinfo"
)

const (
	maxMessage = 2 << 20
	// maxEvents is the maximum number of unread events; beyond that, the oldest are dropped.
	maxEvents    = 256
	attachTime   = 10 * time.Second
	writeTimeout = 5 * time.Second
)

// Event is a frame from the glasses or the service that is not a result. Body is the payload of a binary frame.
type Event struct {
	glasses.Frame
	Body []byte
}

// App is an attached app. Its methods may be called concurrently.
type App struct {
	// Welcome is the welcome that the service sent when the app attached.
	Welcome glasses.Welcome
	// Events delivers the events sent to the app. It is closed when the connection ends.
	Events <-chan Event

	ws     *websocket.Conn
	events chan Event
	end    context.CancelFunc
	reader sync.WaitGroup

	mu      sync.Mutex
	prefix  string
	count   int
	waiting map[string]chan glasses.Result // results by command ID; nil once the connection has ended
}

// Attach attaches to a session. secretFile is the path of the file with the session's secret.
func Attach(ctx context.Context, endpoint, secretFile, name string) (*App, error) {
	ctx, cancel := context.WithTimeout(ctx, attachTime)
	defer cancel()
	secret, err := os.ReadFile(secretFile)
	if err != nil {
		return nil, fmt.Errorf("read the session's secret: %w", err)
	}
	ws, answer, err := websocket.Dial(ctx, endpoint, nil)
	if err != nil {
		return nil, fmt.Errorf("attach to the session: %w", err)
	}
	if answer.Body != nil {
		_ = answer.Body.Close()
	}
	ws.SetReadLimit(maxMessage)
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	a := &App{ws: ws, events: make(chan Event, maxEvents), end: end, prefix: rand.Text()[:10],
		waiting: map[string]chan glasses.Result{}}
	a.Events = a.events
	hello := glasses.Hello{Secret: strings.TrimSpace(string(secret))}
	hello.App.Name, hello.App.Version = name, buildinfo.Version
	if err = a.hello(ctx, hello); err != nil {
		end()
		_ = ws.CloseNow()
		return nil, fmt.Errorf("attach to the session: %w", err)
	}
	a.reader.Go(func() { a.read(life) })
	return a, nil
}

func (a *App) hello(ctx context.Context, h glasses.Hello) error {
	if err := a.write(ctx, glasses.TypeHello, a.newID(), h); err != nil {
		return err
	}
	_, data, err := a.ws.Read(ctx)
	if err != nil {
		return err
	}
	f, err := glasses.Parse(data)
	if err != nil {
		return err
	}
	if f.Type != glasses.TypeWelcome {
		return fmt.Errorf("the response to hello is %s, not a welcome", f.Type)
	}
	return json.Unmarshal(f.Payload, &a.Welcome)
}

// Close detaches the app.
func (a *App) Close() {
	_ = a.ws.Close(websocket.StatusNormalClosure, "done")
	a.end()
	a.reader.Wait()
}

// Command sends a command and waits for its result. It returns a *glasses.Error if the glasses refuse the command.
func (a *App) Command(ctx context.Context, typ string, payload any) (glasses.Result, error) {
	id, answer := a.newID(), make(chan glasses.Result, 1)
	a.mu.Lock()
	isOpen := a.waiting != nil
	if isOpen {
		a.waiting[id] = answer
	}
	a.mu.Unlock()
	if !isOpen {
		return glasses.Result{}, errGone
	}
	if err := a.write(ctx, typ, id, payload); err != nil {
		return glasses.Result{}, fmt.Errorf("send %s: %w", typ, err)
	}
	select {
	case r, ok := <-answer:
		switch {
		case !ok:
			return r, errGone
		case r.Error != nil:
			return r, r.Error
		}
		return r, nil
	case <-ctx.Done():
		a.mu.Lock()
		delete(a.waiting, id)
		a.mu.Unlock()
		return glasses.Result{}, context.Cause(ctx)
	}
}

var errGone = errors.New("the session ended the connection")

func (a *App) newID() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count++
	return fmt.Sprintf("%s-%d", a.prefix, a.count)
}

func (a *App) write(ctx context.Context, typ, id string, payload any) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return a.ws.Write(ctx, websocket.MessageText, broker.Encode(time.Now(), typ, id, payload))
}

// read receives frames until the connection ends.
func (a *App) read(ctx context.Context) {
	defer a.gone()
	for {
		kind, data, err := a.ws.Read(ctx)
		if err != nil {
			return
		}
		var e Event
		if kind == websocket.MessageBinary {
			e.Frame, e.Body, err = glasses.ParseBinary(data)
		} else {
			e.Frame, err = glasses.Parse(data)
		}
		if err == nil {
			a.receive(e)
		}
	}
}

func (a *App) receive(e Event) {
	switch e.Type {
	case glasses.TypeResult:
		r, err := glasses.ParseResult(e.Payload)
		a.answer(e.ID, r, err)
	case glasses.TypeError:
		var refused glasses.Error
		err := json.Unmarshal(e.Payload, &refused)
		a.answer(e.ID, glasses.Result{Error: &refused}, err)
	default:
		for {
			select {
			case a.events <- e:
				return
			default:
			}
			select {
			case <-a.events:
			default:
			}
		}
	}
}

func (a *App) answer(id string, r glasses.Result, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if answer := a.waiting[id]; answer != nil {
		if err != nil {
			r = glasses.Result{Error: &glasses.Error{Code: glasses.CodePlatform, Message: err.Error()}}
		}
		delete(a.waiting, id)
		answer <- r
	}
}

func (a *App) gone() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, answer := range a.waiting {
		close(answer)
	}
	a.waiting = nil
	close(a.events)
}
