// Package conformance checks glasses against the protocol (PROTOCOL.md). Here, glasses are any program that acts as the
// glasses of a session, such as a phone app or an adapter. The package sends commands and control frames like apps and
// the service, and checks the answers rule by rule.
package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/broker"
)

// answerTime is how long an answer may take. It exceeds the limit of 10 s for the glasses (PROTOCOL.md, Errors).
const answerTime = 11 * time.Second

// maxBytes is the maximum number of bytes that the glasses may send in one run, because most of them are kept in
// memory. Sound and a picture need 2 MB.
const maxBytes = 64 << 20

// messageCost is the number of bytes charged for each message in addition to its size.
const messageCost = 256

// Line is the outcome of one rule.
type Line struct {
	Name string `json:"name"`
	// Section is the section of PROTOCOL.md that contains the rule.
	Section string `json:"section"`
	// Problem describes the violation; empty if the glasses passed.
	Problem string `json:"problem,omitempty"`
}

// Passed reports whether the glasses obeyed the rule.
func (l Line) Passed() bool { return l.Problem == "" }

// Message is one message from the glasses.
type Message struct {
	Data   []byte
	Binary bool
}

// Conn is the connection to the glasses.
type Conn interface {
	// Send sends one text frame.
	Send(ctx context.Context, frame []byte) error
	// Messages returns the channel of received messages. It is closed when the glasses disconnect.
	Messages() <-chan Message
}

// Errors after which no further rules can be checked.
var (
	errGone    = errors.New("the glasses closed the connection")
	errTooMuch = fmt.Errorf("the glasses sent more than %d MB", maxBytes>>20)
)

// rule is one rule of the protocol.
type rule struct {
	name, section string
	check         func(ctx context.Context, c *checker) error
}

// Check checks glasses of a model, one rule after another, and calls tell with each outcome. If ctx ends or the
// connection is lost, Check returns the error and the outcomes so far.
func Check(ctx context.Context, conn Conn, model glasses.DeviceModel, tell func(Line)) ([]Line, error) {
	c := &checker{
		conn: conn, model: model, sent: map[string]string{}, results: map[string]int{}, events: map[string]bool{},
	}
	var lines []Line
	for _, r := range rules(model) {
		line := Line{Name: r.name, Section: r.section}
		if err := r.check(ctx, c); errors.Is(err, errGone) || errors.Is(err, errTooMuch) || ctx.Err() != nil {
			return lines, errors.Join(err, ctx.Err())
		} else if err != nil {
			line.Problem = err.Error()
		}
		lines = append(lines, line)
		tell(line)
	}
	return lines, nil
}

// checker is the state of one run.
type checker struct {
	conn    Conn
	model   glasses.DeviceModel
	count   int
	bytes   int               // received so far
	sent    map[string]string // types of commands and control frames, by id
	results map[string]int    // number of results, by id
	events  map[string]bool   // ids of events
	broken  []string          // problems of frames, of any type
	doubled []string          // problems of results, of any command
}

// received is a frame from the glasses.
type received struct {
	glasses.Frame
	body   []byte
	result glasses.Result
}

func (c *checker) send(ctx context.Context, typ string, payload any) (id string, err error) {
	c.count++
	id = fmt.Sprintf("check-%d", c.count)
	c.sent[id] = typ
	if err := c.conn.Send(ctx, broker.Encode(time.Now(), typ, id, payload)); err != nil {
		return id, fmt.Errorf("%w: send %s: %w", errGone, typ, err)
	}
	return id, nil
}

// receive waits for the next valid frame. ok is false when the time limit has passed.
func (c *checker) receive(ctx context.Context, limit <-chan time.Time) (r received, ok bool, err error) {
	for {
		select {
		case m, isOpen := <-c.conn.Messages():
			if !isOpen {
				return r, false, errGone
			}
			if c.bytes += len(m.Data) + messageCost; c.bytes > maxBytes {
				return r, false, errTooMuch
			}
			if r, ok = c.admit(m); ok {
				return r, true, nil
			}
		case <-limit:
			return r, false, nil
		case <-ctx.Done():
			return r, false, ctx.Err()
		}
	}
}

// admit parses a message and checks the rules that apply to every frame.
func (c *checker) admit(m Message) (r received, ok bool) {
	var err error
	if m.Binary {
		r.Frame, r.body, err = glasses.ParseBinary(m.Data)
	} else {
		r.Frame, err = glasses.Parse(m.Data)
	}
	if err != nil {
		c.broken = append(c.broken, err.Error())
		return r, false
	}
	switch {
	case r.Type == glasses.TypeResult:
		if r.result, err = glasses.ParseResult(r.Payload); err != nil {
			c.broken = append(c.broken, err.Error())
		}
		if c.results[r.ID]++; c.sent[r.ID] == "" {
			c.doubled = append(c.doubled, fmt.Sprintf("result %q answers no command", r.ID))
		} else if c.results[r.ID] == 2 {
			c.doubled = append(c.doubled, c.sent[r.ID]+" was answered twice")
		}
		return r, err == nil
	case m.Binary && r.Type == glasses.TypeMedia:
	case c.events[r.ID] || c.sent[r.ID] != "":
		c.broken = append(c.broken, fmt.Sprintf("the id %q of %s was used before", r.ID, r.Type))
	default:
		c.events[r.ID] = true
	}
	return r, true
}

// ask sends a frame. It returns the frame's result and the frames received before the result.
func (c *checker) ask(ctx context.Context, typ string, payload any) (glasses.Result, []received, error) {
	id, err := c.send(ctx, typ, payload)
	if err != nil {
		return glasses.Result{}, nil, err
	}
	return c.await(ctx, id)
}

// await waits for the result of the frame with this ID.
func (c *checker) await(ctx context.Context, id string) (glasses.Result, []received, error) {
	var before []received
	limit := time.After(answerTime)
	for {
		r, ok, err := c.receive(ctx, limit)
		switch {
		case err != nil:
			return r.result, before, err
		case !ok:
			return r.result, before, fmt.Errorf("%s was not answered within %v", c.sent[id], answerTime)
		case r.Type == glasses.TypeResult && r.ID == id:
			return r.result, before, nil
		}
		before = append(before, r)
	}
}

// wantOK sends a frame and checks that its result is ok.
func (c *checker) wantOK(ctx context.Context, typ string, payload any) (glasses.Result, []received, error) {
	r, before, err := c.ask(ctx, typ, payload)
	if err == nil && (!r.OK || r.Error != nil) {
		err = fmt.Errorf("%s returned %s, want ok", typ, outcome(r))
	}
	return r, before, err
}

// wantRefusal sends a frame and checks that it is refused with code.
func (c *checker) wantRefusal(ctx context.Context, typ string, payload any, code string) error {
	r, _, err := c.ask(ctx, typ, payload)
	if err == nil && (r.Error == nil || r.Error.Code != code) {
		text, _ := json.Marshal(payload)
		err = fmt.Errorf("%s %.60s returned %s, want %s", typ, text, outcome(r), code)
	}
	return err
}

func outcome(r glasses.Result) string {
	if r.Error != nil {
		return fmt.Sprintf("%.40s (%.100s)", r.Error.Code, r.Error.Message)
	}
	if r.OK {
		return "ok"
	}
	return "neither ok nor an error"
}

// envelope returns an error for the problems of all received frames.
func envelope(_ context.Context, c *checker) error { return listed(c.broken) }

func oneResult(_ context.Context, c *checker) error {
	for id, typ := range c.sent {
		if c.results[id] == 0 && typ != strange {
			c.doubled = append(c.doubled, typ+" was never answered")
		}
	}
	return listed(c.doubled)
}

// listed returns an error with the first problem and the number of other problems, or nil if there are none.
func listed(problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	slices.Sort(problems)
	more := ""
	if n := len(problems) - 1; n > 0 {
		more = fmt.Sprintf(", and %d more", n)
	}
	return errors.New(strings.ToValidUTF8(problems[0], "?") + more)
}
