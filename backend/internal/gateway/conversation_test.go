package gateway

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	ws "github.com/coder/websocket"

	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/gateway/wire"
	"github.com/service-dev/service/glasses/host/websocket"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/test/llmtest"
)

// voicePrices equal llmtest.CatalogueVoicePrices.
var voicePrices = wire.RealtimePrices{TextIn: 4_000_000, TextCached: 1_000_000, TextOut: 16_000_000,
	AudioIn: 32_000_000, AudioCached: 2_000_000, AudioOut: 64_000_000}

// serveTalk serves one conversation. Its refusal has the code as body.
func serveTalk(rw http.ResponseWriter, r *http.Request, s *Service, who Caller, model string, rate int) {
	c, err := s.Converse(r.Context(), who, model, rate)
	if err != nil {
		http.Error(rw, codeOf(err), http.StatusTeapot)
		return
	}
	app, err := websocket.Accept(rw, r, websocket.AnyOrigin)
	if err != nil {
		c.End()
		return
	}
	c.Serve(app)
}

// addVoice offers a model of the fake provider for realtime sessions.
func (w *world) addVoice(id string, session time.Duration) { w.addVoiceAt(id, w.provider.URL, session) }

func (s *Service) addVoiceAt(id, base string, session time.Duration) {
	p := &Provider{ID: "fake", base: base, key: newKey(llmtest.Key), header: "Authorization", prefix: "Bearer "}
	m := &Model{ID: "voice-" + id, Provider: p, API: wire.Realtime, upstream: id, context: 2000, output: 500,
		voice: &voice{prices: voicePrices, voices: map[string]string{"ember": "marin"}, history: 1000,
			session: session, inRate: defaultInRate, outRate: defaultOutRate}}
	s.Catalogue.Realtime, s.Catalogue.byID[m.ID] = append(s.Catalogue.Realtime, m), m
}

// talker is an app in a conversation.
type talker struct {
	t    *testing.T
	conn *ws.Conn
}

// talk opens a conversation with a model of the fake provider.
func (w *world) talk(t *testing.T, id string, session time.Duration) *talker {
	t.Helper()
	return w.talkAs(t, id, session, Caller{Account: "acc", Project: "com.example.app", Key: "key"})
}

func (w *world) talkAs(t *testing.T, id string, session time.Duration, who Caller) *talker {
	t.Helper()
	return w.talkAt(t, id, session, who, 24000)
}

// talkAt opens a conversation at a sample rate.
func (w *world) talkAt(t *testing.T, id string, session time.Duration, who Caller, rate int) *talker {
	t.Helper()
	w.addVoice(id, session)
	served := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		defer close(served)
		serveTalk(rw, r, w.Service, who, "voice-"+id, rate)
	}))
	conn, _, err := ws.Dial(t.Context(), server.URL, nil)
	t.Cleanup(func() {
		if conn != nil {
			_ = conn.CloseNow()
		}
		<-served
		server.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadLimit(8 << 20)
	return &talker{t, conn}
}

func (a *talker) send(events ...string) {
	a.t.Helper()
	for _, e := range events {
		if err := a.conn.Write(a.t.Context(), ws.MessageText, []byte(e)); err != nil {
			a.t.Fatal(err)
		}
	}
}

// until reads events up to one of these types. It returns the types, with the code of an error, and the last event.
func (a *talker) until(last ...string) (types []string, event map[string]any) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), 20*time.Second)
	defer cancel()
	for len(types) == 0 || !slices.Contains(last, types[len(types)-1]) {
		_, data, err := a.conn.Read(ctx)
		if err != nil {
			a.t.Fatalf("waiting for %v after %v: %v", last, types, err)
		}
		event = nil
		if err := json.Unmarshal(data, &event); err != nil {
			a.t.Fatal(err)
		}
		kind, _ := event["type"].(string)
		if detail, ok := event["error"].(map[string]any); ok {
			kind += " " + detail["code"].(string)
		}
		types = append(types, kind)
	}
	return types, event
}

// closed reads until the connection is closed, and returns the types of the events before, the code and the reason.
func (a *talker) closed() (types []string, code ws.StatusCode, reason string) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), 20*time.Second)
	defer cancel()
	for {
		_, data, err := a.conn.Read(ctx)
		var closed ws.CloseError
		if errors.As(err, &closed) {
			return types, closed.Code, closed.Reason
		}
		if err != nil {
			a.t.Fatalf("waiting for the close after %v: %v", types, err)
		}
		var e struct{ Type string }
		_ = json.Unmarshal(data, &e)
		types = append(types, e.Type)
	}
}

const (
	askText    = `{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]}}`
	askAnswer  = `{"type":"response.create"}`
	appendOnce = `{"type":"input_audio_buffer.append","audio":"AAAA"}`
)

// Prices of the fake's answers: 6 text_in, 4 text_cached, 3 text_out; with sound also 12 audio_in, 8 audio_cached and
// 5 audio_out.
const (
	textTurn  = 6*4 + 4*1 + 3*16
	audioTurn = textTurn + 12*32 + 8*2 + 5*64
)

var talkLimits = Limits{KeyCheck: 20 * time.Millisecond}

func TestConversation_TextTurn(t *testing.T) {
	w := newWorld(t, credit.USD, talkLimits)
	a := w.talk(t, llmtest.Good, time.Minute)
	_, created := a.until("session.created")
	const want = `{"audio":{"output":{"voice":"ember"}},"model":"voice-good","type":"realtime"}`
	if session, _ := json.Marshal(created["session"]); string(session) != want {
		t.Errorf("the app sees the session %s, want %s", session, want)
	}
	a.send(askText, askAnswer)
	types, _ := a.until("response.done")
	if want := []string{"response.created", "response.output_text.delta", "response.done"}; !slices.Equal(types, want) {
		t.Errorf("got %v, want %v", types, want)
	}
	row, charged, holds := w.purse.last()
	if charged != textTurn || holds != 0 || row.Kind != "realtime" || row.TextIn != 6 || row.TextCached != 4 ||
		row.TextOut != 3 || row.Outcome != "ok" || row.Estimated {
		t.Errorf("charged %v for %+v, %d holds left", charged, row, holds)
	}
	if book := w.provider.Answers(); len(book) != 1 || book[0].Output != 500 {
		t.Errorf("the provider answered %+v", book)
	}
}

// An answer to speech is requested by the gateway, once per sentence, and costs its sound.
func TestConversation_Speech(t *testing.T) {
	w := newWorld(t, credit.USD, talkLimits)
	a := w.talk(t, llmtest.Good, time.Minute)
	a.send(appendOnce)
	types, _ := a.until("response.done")
	if !slices.Contains(types, "input_audio_buffer.committed") || slices.Contains(types, "session.updated") {
		t.Errorf("got %v", types)
	}
	row, charged, _ := w.purse.last()
	if charged != audioTurn || row.AudioIn != 12 || row.AudioCached != 8 || row.AudioOut != 5 {
		t.Errorf("charged %v for %+v", charged, row)
	}
	// An app that turns detection off commits and asks itself.
	a.send(`{"type":"session.update","session":{"type":"realtime","audio":{"input":{"turn_detection":null}}}}`, appendOnce,
		`{"type":"input_audio_buffer.commit"}`, askAnswer)
	a.until("response.done")
	if book := w.provider.Answers(); len(book) != 2 {
		t.Errorf("%d answers, want 2", len(book))
	}
}

// TestConversation_Misbehaviour names the outcome of each way in which a provider misbehaves, after one request.
func TestConversation_Misbehaviour(t *testing.T) {
	for _, c := range []struct {
		model, ask string
		last       string // the event that ends the answer, or "" if the connection is closed
		code       ws.StatusCode
		outcome    string
		charged    credit.Amount
		estimated  bool
	}{
		{llmtest.DoneTwice, askAnswer, "response.done", 0, "ok", textTurn, false},
		{llmtest.DoneFirst, askAnswer, "response.done", 0, "ok", textTurn, false},
		{llmtest.UnknownEvents, askAnswer, "response.done", 0, "ok", textTurn, false},
		{llmtest.LateReceipt, askAnswer, "response.done", 0, "ok", textTurn, false},
		{llmtest.UsageZero, askAnswer, "response.done", 0, "ok", 0, false},
		{llmtest.FailedAnswer, askAnswer, "response.done", 0, "failed", textTurn, false},
		// Estimates: 3 tokens of text for "Hello there", and the app's event as input.
		{llmtest.UsageNone, askAnswer, "response.done", 0, "ok", 0, true},
		{llmtest.UsageHuge, askAnswer, "response.done", 0, "ok", 0, true},
		{llmtest.UsageNegative, askAnswer, "response.done", 0, "ok", 0, true},
		{llmtest.CutsInside, askAnswer, "", closeProvider, "failed", 0, true},
		{llmtest.RefusesAnswer, askAnswer, "error invalid_value", 0, "failed", 0, false},
		{llmtest.ClosesWith4000, askAnswer, "", closeProvider, "failed", 0, true},
		{llmtest.RefusesLimits, "", "", closeProvider, "", 0, false},
	} {
		t.Run(c.model, func(t *testing.T) {
			w := newWorld(t, credit.USD, talkLimits)
			a := w.talk(t, c.model, time.Minute)
			a.until("session.created")
			if c.ask != "" {
				a.send(c.ask)
			}
			if c.last != "" {
				a.until(c.last)
			} else if types, code, reason := a.closed(); code != c.code {
				t.Errorf("closed with %d %q after %v, want %d", code, reason, types, c.code)
			}
			if c.outcome == "" {
				return
			}
			row, charged, holds := w.purse.last()
			isPriced := c.charged > 0 || !c.estimated || c.model == llmtest.ClosesWith4000
			if row.Outcome != c.outcome || holds != 0 || row.Estimated != c.estimated || isPriced && charged != c.charged ||
				!isPriced && (charged <= 0 || charged > 1000) {
				t.Errorf("charged %v for %+v, %d holds left", charged, row, holds)
			}
			if c.last == "response.done" { // the conversation continues
				a.send(askAnswer)
				if types, _ := a.until("response.done"); slices.Contains(types, "response.surprise.delta") {
					t.Errorf("the app got %v", types)
				}
			}
		})
	}
}

// If a provider starts an answer by itself, the gateway cancels it and ends the conversation without a charge.
func TestConversation_AnswersUnasked(t *testing.T) {
	w := newWorld(t, credit.USD, talkLimits)
	a := w.talk(t, llmtest.TalksUnasked, time.Minute)
	a.send(`{"type":"session.update","session":{"type":"realtime","audio":{"input":{"turn_detection":{"type":"server_vad",`+
		`"create_response":false}}}}}`, appendOnce)
	if types, code, reason := a.closed(); code != closeProvider || reason != errUnasked.Error() ||
		slices.Contains(types, "response.created") {
		t.Errorf("closed with %d %q after %v", code, reason, types)
	}
	if len(w.purse.charged) != 0 {
		t.Errorf("charged %v", w.purse.charged)
	}
}

func TestConversation_ProviderGoesAwayAtOnce(t *testing.T) {
	w := newWorld(t, credit.USD, talkLimits)
	w.addVoice(llmtest.GoesAway, time.Minute)
	_, err := w.Converse(t.Context(), Caller{Account: "acc", Project: "com.example.app", Key: "key"}, "voice-goes-away", 24000)
	if codeOf(err) != problem.CodeProviderUnavailable {
		t.Errorf("got %v", err)
	}
}

func TestConversation_HalfOpenProvider(t *testing.T) {
	limits := talkLimits
	limits.Ping = 50 * time.Millisecond
	w := newWorld(t, credit.USD, limits)
	a := w.talk(t, llmtest.HalfOpen, time.Minute)
	if _, code, reason := a.closed(); code != closeProvider || reason != errHalfOpen.Error() {
		t.Errorf("closed with %d %q", code, reason)
	}
}

// Without credit, the app gets an error and some time in which to tell the wearer.
func TestConversation_NoCredit(t *testing.T) {
	limits := talkLimits
	limits.Unpaid = 50 * time.Millisecond
	w := newWorld(t, 1, limits)
	a := w.talk(t, llmtest.Good, time.Minute)
	a.send(askAnswer)
	_, event := a.until("error no_credit")
	if detail := event["error"].(map[string]any); detail["needed"] == nil || detail["type"] != "insufficient_quota" {
		t.Errorf("got %v", detail)
	}
	if _, code, _ := a.closed(); code != closeNoCredit {
		t.Errorf("closed with %d", code)
	}
	if row, charged, _ := w.purse.last(); row.Outcome != problem.CodeNoCredit || charged != 0 || len(w.provider.Answers()) != 0 {
		t.Errorf("charged %v for %+v", charged, row)
	}
}

// TestConversation_Ends names how the gateway ends a conversation during an answer, and who pays.
func TestConversation_Ends(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(l *Limits)
		session time.Duration
		during  func(w *world, a *talker)
		code    ws.StatusCode
		carried bool
		receipt bool // the answer is cancelled, and the provider reports its usage
	}{
		"key revoked": {nil, time.Minute, func(w *world, _ *talker) {
			w.keys.live.Delete("key")
		}, closeInvalidKey, false, false},
		"hold ended": {func(l *Limits) { l.Renew = 20 * time.Millisecond }, time.Minute, func(w *world, _ *talker) {
			w.purse.mu.Lock()
			w.purse.renew = credit.ErrHoldEnded
			w.purse.mu.Unlock()
		}, closeNoCredit, true, false},
		"too long": {nil, 3 * time.Second, nil, closeOver, false, true},
		"quiet":    {func(l *Limits) { l.Quiet = 300 * time.Millisecond }, time.Minute, nil, closeOver, false, true},
		"frame above": {nil, time.Minute, func(_ *world, a *talker) {
			_ = a.conn.Write(a.t.Context(), ws.MessageText, []byte(`{"type":"`+strings.Repeat("x", maxEvent)))
		}, closeTooLarge, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			limits := talkLimits
			if c.change != nil {
				c.change(&limits)
			}
			w := newWorld(t, credit.USD, limits)
			a := w.talk(t, llmtest.WaitsInside, c.session)
			a.send(askText, askAnswer)
			a.until("response.output_text.delta")
			held := w.purse.held()
			if c.during != nil {
				c.during(w, a)
			}
			if _, code, reason := a.closed(); code != c.code {
				t.Errorf("closed with %d %q, want %d", code, reason, c.code)
			}
			row, charged, holds := w.purse.last()
			if holds != 0 || row.Estimated == c.receipt || (charged == 0) != c.carried || c.receipt && charged != textTurn {
				t.Errorf("charged %v for %+v, %d holds left", charged, row, holds)
			}
			if byApp := c.code == closeInvalidKey || c.code == closeTooLarge; byApp && charged != held {
				t.Errorf("charged %v, want the whole hold %v, because the app ended the answer", charged, held)
			}
		})
	}
}

// When the app leaves during an answer, the answer is cancelled and charged by its receipt.
func TestConversation_AppLeaves(t *testing.T) {
	w := newWorld(t, credit.USD, talkLimits)
	a := w.talk(t, llmtest.WaitsInside, time.Minute)
	a.send(askAnswer)
	a.until("response.output_text.delta")
	_ = a.conn.CloseNow()
	if row, charged, holds := w.purse.last(); charged != textTurn || row.Outcome != "cancelled" || row.Estimated || holds != 0 {
		t.Errorf("charged %v for %+v, %d holds left", charged, row, holds)
	}
}

// The failure of another event with the same ID does not release the hold of an answer.
func TestConversation_RepeatedEventID(t *testing.T) {
	w := newWorld(t, credit.USD, talkLimits)
	a := w.talk(t, llmtest.Good, time.Minute)
	a.send(`{"type":"conversation.item.delete","item_id":"nope","event_id":"mine"}`, askText,
		`{"type":"response.create","event_id":"mine","response":{"instructions":"Be brief."}}`)
	a.until("error invalid_value")
	a.until("response.done")
	if row, charged, holds := w.purse.last(); charged != textTurn || row.Outcome != "ok" || holds != 0 {
		t.Errorf("charged %v for %+v, %d holds left", charged, row, holds)
	}
}

// An answer that the provider refuses ends, and the error has the ID that the app chose.
func TestConversation_RefusedAnswerHasItsEventID(t *testing.T) {
	for _, ask := range []string{`{"type":"response.create","event_id":"mine"}`,
		`{"type":"response.create","event_id":"mine","response":{"instructions":"Be brief."}}`} {
		w := newWorld(t, credit.USD, talkLimits)
		a := w.talk(t, llmtest.RefusesAnswer, time.Minute)
		for range 2 { // the second shows that the first has ended
			a.send(ask)
			_, event := a.until("error invalid_value")
			if detail, _ := event["error"].(map[string]any); detail["event_id"] != "mine" {
				t.Errorf("%s: got %v, want the ID of the event", ask, detail)
			}
		}
	}
}

// Frames that could spend without a hold do not reach the provider.
func TestConversation_AdversarialFrames(t *testing.T) {
	w := newWorld(t, credit.USD, talkLimits)
	a := w.talk(t, llmtest.WaitsInside, time.Minute)
	a.send(`{"type":"response.done","response":{"id":"resp_1","usage":{"input_tokens":0,"output_tokens":0}}}`)
	a.until("error unsupported_parameter")
	if err := a.conn.Write(t.Context(), ws.MessageBinary, []byte(askAnswer)); err != nil {
		t.Fatal(err)
	}
	a.until("error invalid_json")
	a.send(askAnswer, askAnswer)
	a.until("error conversation_already_has_active_response")
	a.send(`{"type":"response.cancel"}`)
	a.until("response.done")
	if row, charged, holds := w.purse.last(); charged != textTurn || row.Outcome != "cancelled" || holds != 0 {
		t.Errorf("charged %v for %+v, %d holds left", charged, row, holds)
	}
}

// An event of exactly 4 MiB is the largest.
func TestConversation_LargestEvent(t *testing.T) {
	w := newWorld(t, credit.USD, talkLimits)
	a := w.talk(t, llmtest.Good, time.Minute)
	const frame = `{"type":"input_audio_buffer.append","audio":""}`
	sound := strings.Repeat("AAAA", (maxEvent-len(frame))/4)
	event := strings.Replace(frame, `""`, `"`+sound+`"`, 1)
	event += strings.Repeat(" ", maxEvent-len(event))
	a.send(event)
	a.until("response.done")
	if book := w.provider.Answers(); len(book) != 1 || book[0].Heard != len(sound)/4*3 {
		t.Errorf("the provider heard %+v, want one answer to %d bytes", book, len(sound)/4*3)
	}
	a.send(event + " ")
	if _, code, reason := a.closed(); code != closeTooLarge || reason != errTooBig.Error() {
		t.Errorf("an event of %d bytes: closed with %d %q", len(event)+1, code, reason)
	}
}

// A project can hold a number of conversations at the same time.
func TestConversation_Limit(t *testing.T) {
	w := newWorld(t, credit.USD, talkLimits)
	w.addVoice(llmtest.Good, time.Minute)
	who := Caller{Account: "acc", Project: "com.example.app", Key: "key"}
	for range projectConversations {
		c, err := w.Converse(t.Context(), who, "voice-good", 24000)
		if err != nil {
			t.Fatal(err)
		}
		defer c.End()
	}
	if _, err := w.Converse(t.Context(), who, "voice-good", 24000); codeOf(err) != problem.CodeTooManyCalls {
		t.Errorf("got %v", err)
	}
}

// A panic while an answer is requested ends only that conversation, and the next one works.
func TestConversation_SurvivesPanic(t *testing.T) {
	w := newWorld(t, credit.USD, talkLimits)
	a := w.talk(t, llmtest.Good, time.Minute)
	a.until("session.created")
	w.purse.panics.Store(true)
	a.send(askText, askAnswer)
	if _, code, reason := a.closed(); code != closeProvider || !strings.Contains(reason, "gateway failed") {
		t.Errorf("closed with %d %q, want %d and the failure of the gateway", code, reason, closeProvider)
	}
	w.purse.panics.Store(false)
	b := w.talk(t, llmtest.Good, time.Minute)
	b.send(askText, askAnswer)
	b.until("response.done")
}

// An app receives nothing that a provider says about the operator's account, whether in an error, in a failed answer or
// as it closes the connection.
func TestConversation_HidesTheOperatorsAccount(t *testing.T) {
	for _, model := range []string{llmtest.TellsAccount, llmtest.FailedAnswer, llmtest.ClosesWith4000} {
		w := newWorld(t, credit.USD, talkLimits)
		a := w.talk(t, model, time.Minute)
		a.send(askAnswer)
		switch model {
		case llmtest.TellsAccount:
			_, event := a.until("error provider_error")
			if text := fmt.Sprint(event); strings.Contains(text, llmtest.Account) {
				t.Errorf("the app got %s", text)
			}
		case llmtest.FailedAnswer:
			_, event := a.until("response.done")
			if text := fmt.Sprint(event); strings.Contains(text, llmtest.Account) || !strings.Contains(text, "provider_error") {
				t.Errorf("the app got %s", text)
			}
		default:
			if _, code, reason := a.closed(); code != closeProvider || strings.Contains(reason, llmtest.Account) {
				t.Errorf("closed with %d %q", code, reason)
			}
		}
	}
}

// A session.update that the provider refuses changes no rule of the gateway, and its error has the app's event_id.
func TestConversation_RefusedUpdate(t *testing.T) {
	w := newWorld(t, credit.USD, talkLimits)
	a := w.talk(t, llmtest.RefusesUpdates, time.Minute)
	a.send(`{"type":"session.update","event_id":"mine","session":{"type":"realtime","audio":{"input":{"turn_detection":null}}}}`)
	_, event := a.until("error invalid_value")
	if detail, _ := event["error"].(map[string]any); detail["event_id"] != "mine" {
		t.Errorf("got %v, want the ID of the event", detail)
	}
	a.send(appendOnce) // the provider still detects the end of speech, so that the gateway still asks for answers
	a.until("response.done")
}

// The provider of an app with 16 kHz receives as much sound as the app sent, at 24 kHz, and the other way round.
func TestConversation_Rate16000(t *testing.T) {
	w := newWorld(t, credit.USD, talkLimits)
	a := w.talkAt(t, llmtest.Speaks, time.Minute, Caller{Account: "acc", Project: "com.example.app", Key: "key"}, 16000)
	a.send(`{"type":"session.update","session":{"type":"realtime","audio":{"input":{"turn_detection":null}}}}`)
	sound := base64.StdEncoding.EncodeToString(make([]byte, 3200))
	for range 3 {
		a.send(`{"type":"input_audio_buffer.append","event_id":"e","audio":"` + sound + `"}`)
	}
	a.send(`{"type":"input_audio_buffer.append","audio":"A"}`)
	a.until("error invalid_value")
	a.send(`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_audio",` +
		`"audio":"AAAA"}]}}`)
	a.until("error unsupported_parameter")
	a.send(`{"type":"input_audio_buffer.commit"}`, askAnswer)
	heard, types := 0, []string{}
	for event := map[string]any(nil); event["type"] != "response.done"; {
		_, data, err := a.conn.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var part struct{ Delta []byte }
		event = nil
		if err := json.Unmarshal(data, &event); err != nil {
			t.Fatal(err)
		}
		if types = append(types, event["type"].(string)); event["type"] == wire.EventAudioDelta {
			if err := json.Unmarshal(data, &part); err != nil {
				t.Fatal(err)
			}
			heard += len(part.Delta)
		}
	}
	if book := w.provider.Answers(); len(book) != 1 || book[0].Heard != 3*4800 || heard != llmtest.SpokenSound*2/3 {
		t.Errorf("the provider heard %+v, the app %d bytes in %v", book, heard, types)
	}
}

// Without a receipt, the sound that the app sent is estimated as sound, at the rate of the model.
func TestConversation_EstimatesSound(t *testing.T) {
	w := newWorld(t, credit.USD, talkLimits)
	a := w.talk(t, llmtest.UsageNone, time.Minute)
	second := base64.StdEncoding.EncodeToString(make([]byte, 48_000))
	a.send(`{"type":"input_audio_buffer.append","audio":"` + second + `"}`)
	a.until("response.done")
	if row, _, _ := w.purse.last(); !row.Estimated || row.AudioIn != defaultInRate {
		t.Errorf("estimated %+v, want %d tokens of sound", row, defaultInRate)
	}
}

// A backend with realtime models alone has models for apps.
func TestHasModels_RealtimeAlone(t *testing.T) {
	w := newWorld(t, credit.USD, talkLimits)
	w.Catalogue.Models = nil
	who := Caller{Account: "acc", Project: "com.example.app"}
	if has, err := w.HasModels(t.Context(), who); has || err != nil {
		t.Errorf("an empty catalogue: %v, %v", has, err)
	}
	w.addVoice(llmtest.Good, time.Minute)
	if has, err := w.HasModels(t.Context(), who); !has || err != nil {
		t.Errorf("a realtime model: %v, %v", has, err)
	}
}
