package wire

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestAnswer_ReadsUsageInEveryShape(t *testing.T) {
	chat := `{"id":"1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Hi"}}],"usage":null}`
	for name, c := range map[string]struct {
		api    API
		events []string
		want   Usage
		flags  string
	}{
		"empty choices": {Chat, []string{chat, `{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5,
			"prompt_tokens_details":{"cached_tokens":2},"completion_tokens_details":{"reasoning_tokens":3}}}`},
			Usage{In: 7, Cached: 2, Out: 5}, "final"},
		"null choices":    {Chat, []string{`{"choices":null,"usage":{"prompt_tokens":7,"completion_tokens":5}}`}, Usage{In: 7, Out: 5}, "final"},
		"no choices":      {Chat, []string{`{"usage" : {"prompt_tokens":7,"completion_tokens":5}}`}, Usage{In: 7, Out: 5}, "final"},
		"with a delta":    {Chat, []string{`{"choices":[{"delta":{}}],"usage":{"prompt_tokens":7,"completion_tokens":5}}`}, Usage{In: 7, Out: 5}, "final"},
		"last one counts": {Chat, []string{`{"usage":{"prompt_tokens":7,"completion_tokens":1}}`, `{"usage":{"prompt_tokens":7,"completion_tokens":5}}`, chat}, Usage{In: 7, Out: 5}, "final"},
		"hits":            {Chat, []string{`{"usage":{"prompt_tokens":7,"completion_tokens":5,"prompt_cache_hit_tokens":4}}`}, Usage{In: 7, Cached: 4, Out: 5}, "final"},
		"hidden thoughts": {Chat, []string{`{"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":20}}`}, Usage{In: 7, Out: 13}, "final unequal"},
		"strings":         {Chat, []string{`{"usage":{"prompt_tokens":"7","completion_tokens":5}}`}, Usage{}, "malformed"},
		"negative":        {Chat, []string{`{"usage":{"prompt_tokens":7,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":-1}}}`}, Usage{}, "malformed"},
		"too many":        {Chat, []string{`{"usage":{"prompt_tokens":7,"completion_tokens":1000000000000000000}}`}, Usage{}, "malformed"},
		"1e18":            {Chat, []string{`{"usage":{"prompt_tokens":1e18,"completion_tokens":1}}`}, Usage{}, "malformed"},
		"cached above":    {Chat, []string{`{"usage":{"prompt_tokens":1,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":2}}}`}, Usage{}, "malformed"},
		"not an object":   {Chat, []string{`{"usage":[1]}`}, Usage{}, "malformed"},
		"none":            {Chat, []string{chat}, Usage{}, ""},
		"completed": {Responses, []string{`{"type":"response.completed","response":{"error":null,"usage":{"input_tokens":9,
			"input_tokens_details":{"cached_tokens":3},"output_tokens":4,"output_tokens_details":{"reasoning_tokens":1}}}}`},
			Usage{In: 9, Cached: 3, Out: 4}, "final ended"},
		"failed": {Responses, []string{`{"type":"response.failed","response":{"error":{"code":"x"},"usage":{"input_tokens":9,"output_tokens":4}}}`},
			Usage{In: 9, Out: 4}, "final ended"},
		"incomplete": {Responses, []string{`{"type":"response.incomplete","response":{"usage":{"input_tokens":9,"output_tokens":4}}}`},
			Usage{In: 9, Out: 4}, "final ended"},
		"messages": {Messages, []string{
			`{"type":"message_start","message":{"usage":{"input_tokens":10,"cache_creation_input_tokens":20,"cache_read_input_tokens":30,"output_tokens":1}}}`,
			`{"type":"message_delta","delta":{},"usage":{"output_tokens":15}}`, `{"type":"message_stop"}`},
			Usage{In: 60, Cached: 30, CacheWrite: 20, Out: 15}, "final ended"},
		"messages cut": {Messages, []string{`{"type":"message_start","message":{"usage":{"input_tokens":10,"output_tokens":1}}}`},
			Usage{In: 10, Out: 1}, "seen"},
		"error frame": {Chat, []string{`{"error":{"message":"overloaded"}}`}, Usage{}, "failed"},
		"error event": {Messages, []string{`{"type":"error","error":{"type":"overloaded_error"}}`}, Usage{}, "failed"},
	} {
		for _, end := range []string{"\n", "\r\n"} {
			a := NewAnswer(&Request{API: c.api}, 10_000)
			var text string
			for _, e := range c.events {
				text += "data: " + strings.ReplaceAll(e, "\n", "") + end + end
			}
			for i := range len(text) { // one byte at a time
				if _, err := a.Feed(nil, []byte(text[i:i+1])); err != nil {
					t.Fatal(err)
				}
			}
			a.Finish(nil)
			flags := map[string]bool{"final": a.Final, "seen": a.Seen && !a.Final, "malformed": a.Malformed,
				"unequal": a.Unequal, "failed": a.Failed, "ended": a.Ended}
			for flag, set := range flags {
				if set != strings.Contains(" "+c.flags+" ", " "+flag+" ") {
					t.Errorf("%s: %s is %t", name, flag, set)
				}
			}
			if a.Usage != c.want {
				t.Errorf("%s: got usage %+v, want %+v", name, a.Usage, c.want)
			}
		}
	}
}

func TestAnswer_DropsTheUsageThatNobodyAskedFor(t *testing.T) {
	text := "data: {\"choices\":[{\"delta\":{\"content\":\"\u00e9\"}}],\"usage\":null}\n\n: comment\n\n" +
		"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n"
	for _, wants := range []bool{false, true} {
		a := NewAnswer(&Request{API: Chat, WantsUsage: wants}, 100)
		out, err := a.Feed(nil, []byte(text))
		if got := strings.Contains(string(out), "prompt_tokens"); err != nil || got != wants || !a.Ended ||
			!strings.Contains(string(out), "comment") || !strings.HasSuffix(string(out), "[DONE]\n\n") {
			t.Errorf("usage requested %t: got error %v, output %q; want the usage only if requested", wants, err, out)
		}
	}
	a := NewAnswer(&Request{API: Chat}, 100)
	if _, err := a.Feed(nil, []byte("data: "+strings.Repeat("x", MaxEvent))); !errors.Is(err, ErrEventTooLarge) {
		t.Error(err)
	}
}

func TestAnswer_EstimatesFromTheTextSeen(t *testing.T) {
	a := NewAnswer(&Request{API: Chat}, 1000)
	for range 10 {
		_, _ = a.Feed(nil, []byte(`data: {"choices":[{"delta":{"content":"four and \"eight\""}}]}`+"\n\n"))
	}
	if got := a.Estimate(33); got.In != 33 || got.Out != 45 || !a.HasText() {
		t.Errorf("%+v", got)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(0, 3, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}\r\n\r\ndata: [DONE]\n\n")
	f.Add(2, 1, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3}}}\n\n")
	f.Fuzz(func(t *testing.T, api, size int, text string) {
		r := &Request{API: APIs[((api%3)+3)%3], WantsUsage: true}
		size = max(1, size)
		a, whole := NewAnswer(r, 1000), NewAnswer(r, 1000)
		var out []byte
		for rest := []byte(text); len(rest) > 0 && !a.Failed; {
			n := min(size, len(rest))
			out, _ = a.Feed(out, rest[:n])
			rest = rest[n:]
		}
		want, _ := whole.Feed(nil, []byte(text))
		if a.Usage != whole.Usage || string(out) != string(want) || !strings.HasPrefix(text, string(out)) {
			t.Fatalf("got %+v and %q in parts, %+v and %q as a whole; want the same", a.Usage, out, whole.Usage, want)
		}
		a.Finish(nil)
		u := a.Estimate(5)
		for _, n := range []int64{u.In, u.Cached, u.CacheWrite, u.Out, u.In - u.Cached - u.CacheWrite} {
			if n < 0 || n > 3000 {
				t.Fatal(fmt.Sprint(u))
			}
		}
		NewAnswer(r, 1000).Whole([]byte(text))
	})
}

// A stream ends even if its provider reports no usage.
func TestAnswer_EndsWithoutUsage(t *testing.T) {
	for api, last := range map[API]string{
		Responses: "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":null}}\n\n",
		Messages:  "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
		Chat:      "data: [DONE]\n\n",
	} {
		a := NewAnswer(&Request{API: api}, 1000)
		if out, err := a.Feed(nil, []byte(last)); err != nil || string(out) != last || !a.Ended || a.Final {
			t.Errorf("%s: got %q, error %v, ended %v, want a complete stream without final usage", api, out, err, a.Ended)
		}
	}
}

// Providers repeat a request's instructions and tools in events of the responses interface.
func TestAnswer_AllowsEventsThatRepeatTheRequest(t *testing.T) {
	text := strings.Repeat("é", MaxEvent)
	r := decode(t, Responses, `{"model":"m","input":"x","instructions":"`+text+`"}`)
	r.Encode("m", "max_output_tokens", 100)
	event := `data: {"type":"response.completed","response":{"instructions":"` + strings.Repeat(`\u00e9`, MaxEvent) +
		`","usage":{"input_tokens":9,"output_tokens":4}}}` + "\n\n"
	a := NewAnswer(r, 10_000_000)
	for i := 0; i < len(event); i += 32 << 10 {
		if _, err := a.Feed(nil, []byte(event[i:min(i+32<<10, len(event))])); err != nil {
			t.Fatal(err)
		}
	}
	if !a.Final || a.Usage.Out != 4 || int64(len(event)) > r.MaxAnswer() {
		t.Errorf("usage %+v, final %t; want the report of the last event", a.Usage, a.Final)
	}
}
