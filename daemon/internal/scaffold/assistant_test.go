package scaffold

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/glasses"
)

// The first answer calls a tool, the next one is text. Virtual time stops during both answers and advances only while
// the tool runs.
func TestAssistant_AnswersAfterToolCalls(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, start func(env ...string) *app) {
		app, p, g := startAssistant(t, start)
		p.barrier("b-1")
		p.input("g-1", "ask Wie warm ist es in Köln?")
		call := g.next()
		if call.token != "Bearer "+gatewayToken || call.body.Model != "assistant" || !call.body.Stream ||
			len(call.body.Messages) != 2 || call.body.Messages[0].Content != "Be brief." ||
			call.body.Messages[1].Content != "Wie warm ist es in Köln?" {
			t.Errorf("%s %s", call.token, call.raw)
		}
		if !sameJSON(call.body.Tools, `[{"type":"function","function":{"name":"weather","description":"Tells the weather.",`+
			`"parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}},`+
			`{"type":"function","function":{"name":"photo","description":"Takes a photo.",`+
			`"parameters":{"type":"object","properties":{}}}}]`) {
			t.Errorf("%s", call.body.Tools)
		}
		p.barrierDuring(1, "b-2")
		call.tool(0, "weather", `{"city":"Köln"}`)
		p.barrierDuring(1, "b-3")
		call.end()
		sleep := p.expectSleep(500)
		p.barrier("b-4")
		p.ok(sleep)

		call = g.next()
		last := call.body.Messages[len(call.body.Messages)-1]
		if last.Role != "tool" || last.ToolCallID != "call_1" ||
			!sameJSON(json.RawMessage(last.Content), `{"celsius":21,"city":"Köln"}`) {
			t.Errorf("%s", call.raw)
		}
		p.barrierDuring(1, "b-5")
		call.text("Grüße: ")
		p.expect("com.example.text", `{"text":"Grüße: "}`)
		call.text("21 Grad.")
		p.expect("com.example.text", `{"text":"Grüße: 21 Grad."}`)
		call.end()
		p.expect("com.example.answer",
			`{"text":"Grüße: 21 Grad.","roles":["user","assistant","tool","assistant"]}`)
		p.barrier("b-6")
		p.leave(app)
	})
}

// The model receives error messages for its own mistakes and for refusals by the glasses. Several calls run one after
// the other.
func TestAssistant_TellsTheModelWhatFailed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, start func(env ...string) *app) {
		app, p, g := startAssistant(t, start)
		p.input("g-1", "ask me")
		call := g.next()
		call.tool(0, "photo", "")
		call.tool(1, "taxi", "{}")
		call.tool(2, "weather", "[1]")
		call.tool(3, "weather", `{"city`)
		call.end()
		p.send(glasses.TypeResult, p.expect(glasses.TypeCameraPhoto, "").ID, glasses.Result{Error: &glasses.Error{
			Code: glasses.CodePermissionDenied, Message: "refused by the person"}})
		call = g.next()
		results := call.body.Messages[len(call.body.Messages)-4:]
		for i, want := range []string{`{"error":{"code":"permission_denied","message":"refused by the person"}}`,
			`{"error":"there is no tool with this name"}`, `{"error":"the arguments are not a JSON object"}`,
			`{"error":"the arguments are not a JSON object"}`} {
			if !sameJSON(json.RawMessage(results[i].Content), want) {
				t.Errorf("result %d: %s, want %s", i, results[i].Content, want)
			}
		}
		call.text("Sorry.")
		p.expect("com.example.text", `{"text":"Sorry."}`)
		call.end()
		p.expect("com.example.answer", "")
		p.leave(app)
	})
}

func TestAssistant_AsksOn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, start func(env ...string) *app) {
		app, p, g := startAssistant(t, start)
		p.input("g-1", "converse")
		call := g.next()
		if call.body.Tools != nil {
			t.Errorf("%s", call.raw)
		}
		call.text("Hi.")
		call.end()
		call = g.next()
		if m := call.body.Messages; len(m) != 3 || m[1].Content != "Hi." || m[2].Content != "Bye" {
			t.Errorf("%s", call.raw)
		}
		call.send("data: {\"choices\":[{\"delta\":{\"content\":\"B\"},\"finish_reason\":\"stop\"}]}\r\n\r\n: comment\r\n\r\n")
		call.send("data: {\"choices\":null,\"usage\":{}}\r\n\r\n")
		call.ended <- false // without [DONE], like some servers
		p.expect("com.example.answer", `{"text":"B","roles":["user","assistant","user","assistant"]}`)
		p.leave(app)
	})
}

// refusals lists failed answers, and the error that the app gets for each.
var refusals = []struct {
	name       string
	answer     func(c *gatewayCall)
	code, hint string
	retry      float64
}{
	{"no credit", func(c *gatewayCall) { c.refuse(402, "no_credit", "too little credit", "") },
		"no_credit", "credit page", 0},
	{"cap", func(c *gatewayCall) { c.refuse(402, "cap_reached", "the cap is reached", "") },
		"cap_reached", "raise the cap", 0},
	{"reserved", func(c *gatewayCall) { c.refuse(429, "credit_reserved", "reserved", "2") },
		"credit_reserved", "Ask again", 2000},
	{"busy", func(c *gatewayCall) { c.refuse(503, "provider_busy", "busy", "5") }, "provider_busy", "Ask again", 5000},
	{"new code", func(c *gatewayCall) { c.refuse(400, "odd_request", "odd", "Wed, 21 Oct") },
		"odd_request", "Change the request", 0},
	{"revoked", func(c *gatewayCall) { c.refuse(401, "invalid_key", "over", "") }, "invalid_key", "session", 0},
	{"no envelope", func(c *gatewayCall) {
		c.w.WriteHeader(502)
		c.send("<html>")
		c.ended <- false
	}, "gateway_error", "Ask again", 0},
	{"error inside", func(c *gatewayCall) {
		c.text("Gr")
		c.send("data: {\"error\":{\"code\":\"provider_error\",\"message\":\"the answer broke off\"}}\n\n")
		c.ended <- true
	}, "provider_error", "Ask again", 0},
	{"cut", func(c *gatewayCall) {
		c.text("Gr")
		c.ended <- true
	}, "answer_broken", "Ask again", 0},
	{"early end", func(c *gatewayCall) {
		c.text("Gr")
		c.ended <- false
	}, "answer_broken", "Ask again", 0},
	{"not JSON", func(c *gatewayCall) {
		c.send("data: {\"choices\":[\n\n")
		c.ended <- false
	}, "bad_answer", "Ask again", 0},
	{"other shape", func(c *gatewayCall) {
		c.delta(`{"tool_calls":[{"index":7,"function":{"name":"weather"}}]}`)
		c.ended <- false
	}, "bad_answer", "Ask again", 0},
	{"too long", func(c *gatewayCall) {
		_, _ = io.WriteString(c.w, "data: "+strings.Repeat("x", 2<<20)+"\n\n") // fails if the app disconnects in the middle
	}, "bad_answer", "Ask again", 0},
}

func TestAssistant_NamesRefusals(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, start func(env ...string) *app) {
		app, p, g := startAssistant(t, start)
		for _, r := range refusals {
			p.input("g-"+r.name, "ask me")
			r.answer(g.next())
			p.expectRefusal(r.name, r.code, r.hint, r.retry)
		}
		p.barrier("b-1")
		p.leave(app)
	})
}

// expectRefusal expects the app to report an error of ask after the text that arrived before it.
func (p *peer) expectRefusal(name, code, hint string, retry float64) {
	p.t.Helper()
	f, _ := p.next()
	for p.ack(f); f.Type == "com.example.text"; p.ack(f) {
		f, _ = p.next()
	}
	var got struct {
		Code, Message, FixHint string
		RetryAfterMs           float64
	}
	if err := json.Unmarshal(f.Payload, &got); err != nil || f.Type != "com.example.error" || got.Code != code ||
		!strings.Contains(got.FixHint, hint) || got.Message == "" || got.RetryAfterMs != retry ||
		strings.Contains(string(f.Payload), "sgt_") {
		p.t.Errorf("%s: %s %s, want %s and %q", name, f.Type, f.Payload, code, hint)
	}
}

func TestAssistant_RefusesWithoutGateway(t *testing.T) {
	t.Parallel()
	// Another server must never see the token.
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the app followed the redirect to %s with %q", r.URL, r.Header.Get("Authorization"))
	}))
	defer other.Close()
	moved := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer moved.Close()
	for _, test := range []struct {
		gateway    *glasses.Gateway
		code, hint string
	}{
		{nil, "no_gateway", "assistantScript"},
		{&glasses.Gateway{URL: "http://" + unusedAddress(t) + "/v1", Token: gatewayToken}, "gateway_unreachable",
			"Ask again"},
		{&glasses.Gateway{URL: moved.URL + "/v1", Token: gatewayToken}, "gateway_", ""},
	} {
		t.Run(test.code, func(t *testing.T) {
			each(t, func(t *testing.T, start func(env ...string) *app) {
				app, p := startProbeWith(t, start, test.gateway)
				p.input("g-1", "ask me")
				f := p.expect("com.example.error", "")
				if payload := string(f.Payload); !strings.Contains(payload, test.code) || !strings.Contains(payload, test.hint) ||
					strings.Contains(payload, "sgt_") {
					t.Errorf("%s", payload)
				}
				p.leave(app)
			})
		})
	}
}

func TestAssistant_BoundsTheRounds(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, start func(env ...string) *app) {
		app, p, g := startAssistant(t, start)
		p.input("g-1", "ask me")
		for range 8 {
			call := g.next()
			call.tool(0, "taxi", "{}")
			call.end()
		}
		p.expectRefusal("rounds", "too_many_rounds", "tools", 0)
		p.leave(app)
	})
}

// A token that expires during a call is replaced once. The frame with the new token is not an event for the app.
func TestAssistant_RenewsItsToken(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, start func(env ...string) *app) {
		app, p, g := startAssistant(t, start)
		p.input("g-1", "ask me")
		call := g.next()
		p.send(glasses.TypeGatewayToken, "gateway-1", glasses.Gateway{URL: g.url, Token: "sgt_second"})
		p.barrierDuring(1, "b-1")
		call.refuse(401, "invalid_key", "over", "")
		if call = g.next(); call.token != "Bearer sgt_second" {
			t.Errorf("the second request used %q, want the new token", call.token)
		}
		call.refuse(401, "invalid_key", "over", "")
		p.expectRefusal("second", "invalid_key", "session", 0)

		p.input("g-2", "wait")
		sleep := p.expectSleep(400)
		p.send(glasses.TypeGatewayToken, "gateway-2", glasses.Gateway{URL: g.url, Token: "sgt_third"})
		p.ok(sleep)
		p.expect("com.example.next", `{"target":"none"}`)
		p.leave(app)
	})
}

// stopAsking ends the request, even while a tool runs. The end of the session does the same.
func TestAssistant_Stops(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, start func(env ...string) *app) {
		app, p, g := startAssistant(t, start)
		stop := func(id string) { p.send(glasses.TypeBattery, id, glasses.Battery{Level: 4}) }
		p.input("g-1", "ask me")
		call := g.next()
		stop("g-2")
		p.expectRefusal("before the answer", "cancelled", "", 0)
		<-call.gone
		p.barrier("b-1")

		p.input("g-3", "ask me")
		call = g.next()
		call.text("Gr")
		p.expect("com.example.text", "")
		stop("g-4")
		p.expectRefusal("inside the answer", "cancelled", "", 0)
		<-call.gone

		p.input("g-5", "ask me")
		call = g.next()
		call.tool(0, "weather", `{"city":"Rome"}`)
		call.end()
		sleep := p.expectSleep(500)
		stop("g-6")
		p.barrier("b-2")
		p.ok(sleep)
		p.expectRefusal("inside a tool", "cancelled", "", 0)

		p.input("g-7", "ask me")
		call = g.next()
		p.leave(app)
		<-call.gone
	})
}

// Without a realtime model an app converses with transcripts. When the wearer speaks again, the answer in progress is
// dropped.
func TestAssistant_ConversesWithText(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, start func(env ...string) *app) {
		app, p, g := startAssistant(t, start)
		hear := func(id, text string, final bool) {
			p.send(glasses.TypeTranscript, id, glasses.Transcript{Text: text, Final: final})
			p.ok(p.expect(glasses.TypeSpeechStop, ""))
		}
		p.input("g-1", "talk")
		p.ok(p.expect(glasses.TypeTranscriptionStart, ""))
		p.barrier("b-1")
		hear("g-2", "We need", false)
		p.barrier("b-2")
		hear("g-3", "We need milk", true)
		p.expect("com.example.heard", `{"text":"We need milk"}`)
		call := g.next()
		call.text("So")
		p.expect("com.example.said", `{"text":"So"}`)
		p.barrierDuring(1, "b-3")

		hear("g-4", "No", false)
		<-call.gone
		p.barrier("b-4")
		hear("g-5", "No, bread", true)
		p.expect("com.example.heard", `{"text":"No, bread"}`)
		call = g.next()
		if m := call.body.Messages; len(m) != 2 || m[0].Content != "Be brief." || m[1].Content != "No, bread" {
			t.Errorf("got %s, want only the instructions and the last text", call.raw)
		}
		call.text("Bread it is.")
		p.expect("com.example.said", `{"text":"Bread it is."}`)
		call.end()
		p.ok(p.expect(glasses.TypeSpeechSay, `{"text":"Bread it is."}`))
		p.barrier("b-5")

		p.send(glasses.TypeBattery, "g-6", glasses.Battery{Level: 4})
		p.ok(p.expect(glasses.TypeTranscriptionStop, ""))
		p.expect("com.example.ended", `{"mode":"text","reason":"stopped"}`)
		p.leave(app)
	})
}

// An error of the app's own code ends the conversation, which stops listening. In TypeScript it ends the app.
func TestAssistant_ConversationEndsWithTheAppsError(t *testing.T) {
	t.Parallel()
	blocking := slices.DeleteFunc(newestVariants(t), func(v variant) bool {
		return v.language != Python && v.language != Kotlin
	})
	eachOf(t, blocking, func(t *testing.T, start func(env ...string) *app) {
		app, p, _ := startAssistant(t, start)
		p.input("g-1", "talk")
		p.ok(p.expect(glasses.TypeTranscriptionStart, ""))
		p.send(glasses.TypeTranscript, "g-2", glasses.Transcript{Text: "Break", Final: true})
		p.ok(p.expect(glasses.TypeSpeechStop, ""))
		p.ok(p.expect(glasses.TypeTranscriptionStop, ""))
		p.expect("com.example.ended", `{"reason":"own"}`)
		p.leave(app)
	})
}

// A gateway that accepts conversations but ends them before they begin is given up.
func TestAssistant_GivesUpOnABrokenGateway(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			w.WriteHeader(http.StatusUpgradeRequired)
			return
		}
		if ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"realtime"}}); err == nil {
			_ = ws.Close(websocket.StatusInternalError, "broken")
		}
	}))
	t.Cleanup(server.Close)
	eachOf(t, newestVariants(t), func(t *testing.T, start func(env ...string) *app) {
		app, p := startProbeWith(t, start, &glasses.Gateway{URL: server.URL + "/v1", Token: gatewayToken})
		p.input("g-1", "talk")
		p.ok(p.expect(glasses.TypeAudioStart, ""))
		ctx, cancel := context.WithCancel(context.Background())
		var pings sync.WaitGroup
		pings.Go(func() {
			for every := time.NewTicker(5 * time.Second); ; { // the app expects something within 30 s
				select {
				case <-every.C:
					_ = p.ws.Ping(ctx)
				case <-ctx.Done():
					return
				}
			}
		})
		defer func() {
			cancel()
			pings.Wait()
		}()
		p.ok(p.expect(glasses.TypeAudioStop, "")) // after 30 attempts, one a second
		p.expect("com.example.ended", `{"mode":"realtime","reason":"gateway_unreachable"}`)
		p.leave(app)
	})
}
