//go:build linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/test/llmtest"
)

// honestVoices lists the realtime models whose provider reports exactly what it bills. All other models report
// something else, or fail.
var honestVoices = []string{llmtest.Good, llmtest.Speaks, llmtest.DoneTwice, llmtest.DoneFirst, llmtest.UnknownEvents,
	llmtest.LateReceipt, llmtest.UsageZero, llmtest.FailedAnswer, llmtest.WaitsInside}

// dishonestVoices lists the others. The apps leave Hangs.
var dishonestVoices = []string{llmtest.UsageNone, llmtest.UsageNegative, llmtest.UsageHuge, llmtest.CutsInside,
	llmtest.RefusesAnswer, llmtest.TellsAccount, llmtest.ClosesWith4000, llmtest.GoesAway, llmtest.Hangs}

// longestAnswer is the maximum time until an app interrupts an answer.
const longestAnswer = 2 * time.Second

// maxTurn is the maximum cost of a turn in micro-USD: the whole context and the longest answer, all of it sound.
var maxTurn = llmtest.CatalogueVoicePrices.AudioIn*llmtest.VoiceContext +
	llmtest.CatalogueVoicePrices.AudioOut*llmtest.VoiceOutput

// conversation is an app's realtime session with a model. Its first turn opens it.
type conversation struct {
	app   *modelApp
	model string
	conn  *websocket.Conn // nil before the first turn and after the last one
	kills int64           // of the backend, before the conversation began
	broke error           // how the connection broke, if it did
}

func (t *conversation) honest() bool { return slices.Contains(honestVoices, t.model) }

// drawConversation returns a random conversation. The provider responds correctly in most of them.
func (a *modelApp) drawConversation() *conversation {
	t := &conversation{app: a, model: llmtest.Good}
	switch d := a.rng.IntN(10); {
	case d < 6:
		t.model = honestVoices[a.rng.IntN(len(honestVoices))]
	case d < 8:
		t.model = dishonestVoices[a.rng.IntN(len(dishonestVoices))]
	}
	return t
}

// drawTurn returns the next turn of a conversation.
func (t *conversation) drawTurn() *modelCall {
	a := t.app
	a.n++
	return &modelCall{id: fmt.Sprintf("%s/%d", a.project, a.n), api: "realtime", model: t.model, talk: t,
		sound: a.rng.IntN(3) == 0, leaves: a.rng.IntN(6) == 0 || t.model == llmtest.Hangs,
		listens: time.Duration(a.rng.Int64N(int64(longestAnswer)))}
}

// converse holds a conversation or several concurrent ones, and compares the cost of each turn with the provider's
// records.
func (a *modelApp) converse() {
	talks := []*conversation{a.drawConversation()}
	for a.rng.IntN(3) == 0 && talks[0].honest() {
		if t := a.drawConversation(); t.honest() {
			talks = append(talks, t)
		}
	}
	for range 1 + a.rng.IntN(4) {
		var calls []*modelCall
		for _, t := range talks {
			calls = append(calls, t.drawTurn())
		}
		a.makeCalls(calls)
		a.raiseReachedCap(calls)
		talks = slices.DeleteFunc(talks, func(t *conversation) bool { return t.conn == nil })
		if len(talks) == 0 {
			return
		}
	}
	for _, t := range talks {
		t.end()
	}
}

// end ends the conversation without a farewell.
func (t *conversation) end() {
	if t.conn != nil {
		_ = t.conn.CloseNow()
		t.conn = nil
	}
}

// turn asks for an answer and reads it. Unless the outcome is ok, it ends the conversation.
func (t *conversation) turn(ctx context.Context, c *modelCall, kills int64) (outcome string) {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	defer func() {
		if outcome != ok {
			c.cause = t.broke
			t.end()
		}
	}()
	if t.conn == nil {
		t.kills = kills
		if outcome := t.open(limited); outcome != ok {
			return outcome
		}
	} else if t.kills != kills { // the process is dead
		return notSent
	}
	said, err := json.Marshal(c.id)
	if err != nil {
		return err.Error()
	}
	ask := []string{`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[` +
		`{"type":"input_text","text":` + string(said) + `}]}}`, `{"type":"response.create"}`}
	if c.sound { // the gateway asks for the answer
		ask[1] = `{"type":"input_audio_buffer.append","audio":"AAAA"}`
	}
	for _, event := range ask {
		if err := t.conn.Write(limited, websocket.MessageText, []byte(event)); err != nil {
			return t.lost(ctx, err)
		}
	}
	return t.answer(ctx, limited, c.listens)
}

// open opens the conversation. A refusal counts as a call.
func (t *conversation) open(ctx context.Context) (outcome string) {
	conn, response, err := websocket.Dial(ctx, t.app.backend.url+"/v1/realtime?model=v-"+t.model,
		&websocket.DialOptions{HTTPClient: t.app.client,
			HTTPHeader: http.Header{"Authorization": {"Bearer " + t.app.key}}})
	if err == nil {
		t.conn = conn
		return ok
	}
	if response == nil {
		return t.lost(ctx, err)
	}
	defer response.Body.Close()
	return cmp.Or(response.Header.Get("X-Service-Reason"), response.Status)
}

// lost returns the outcome of a turn whose connection broke.
func (t *conversation) lost(ctx context.Context, err error) (outcome string) {
	t.broke = err
	return callError(ctx, err)
}

// answer reads events until the answer ends. The app listens for a while before it interrupts a model that waits for
// it. The context left ends when the app leaves, and limited also when the answer takes too long.
func (t *conversation) answer(left, limited context.Context, listens time.Duration) (outcome string) {
	for {
		_, data, err := t.conn.Read(limited)
		var closed websocket.CloseError
		switch {
		case errors.As(err, &closed) && closed.Code == 4502:
			return brokeOff
		case errors.As(err, &closed) && left.Err() == nil:
			return fmt.Sprintf("closed with %d %s", closed.Code, closed.Reason)
		case err != nil && limited.Err() != nil && left.Err() == nil:
			return errHangs.Error()
		case err != nil:
			return t.lost(left, err)
		}
		if bytes.Contains(data, []byte(llmtest.Key)) || bytes.Contains(data, []byte(llmtest.Account)) {
			t.app.results.report("%s: the provider's key or account is in an event of %s", t.app.name, t.model)
		}
		var e struct {
			Type  string
			Error struct{ Code string }
		}
		if err := json.Unmarshal(data, &e); err != nil {
			return err.Error()
		}
		switch e.Type {
		case "error":
			return e.Error.Code
		case "response.done":
			return ok
		case "response.output_text.delta":
			if t.model == llmtest.WaitsInside {
				pause(limited, listens)
				if err := t.conn.Write(limited, websocket.MessageText, []byte(`{"type":"response.cancel"}`)); err != nil {
					return t.lost(left, err)
				}
			}
		}
	}
}
