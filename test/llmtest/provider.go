// Package llmtest is a model provider for tests. It serves the chat completions, responses and messages interfaces and
// realtime sessions on its own port, and records the tokens of each call and answer. The model's name selects how it
// misbehaves. Each word of its answers is one token. Use it only in tests.
package llmtest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Key is the provider's API key; calls with any other key are refused.
const Key = "canary-provider-key-3f9d2c"

// Behaviours are model names. A model with any other name behaves correctly, like Good.
const (
	Good             = "good"
	SlowFirstByte    = "slow-first-byte" // waits for Continue before it answers
	WaitsInside      = "waits-inside"    // waits for Continue after its first event
	Hangs            = "hangs"           // never answers
	HangsInside      = "hangs-inside"    // sends nothing after its first event
	OneByte          = "one-byte"        // writes byte by byte
	LongLine         = "long-line"       // sends a line of more than 1 MB
	CRLF             = "crlf"
	UsageNull        = "usage-null-choices"
	UsageNoChoices   = "usage-no-choices"
	UsageWithDelta   = "usage-with-delta"
	UsageNone        = "usage-none"
	UsageTwice       = "usage-twice"
	UsageStrings     = "usage-strings"
	UsageNegative    = "usage-negative"
	UsageHuge        = "usage-huge"
	UsageIsNull      = "usage-null"
	CachedAbove      = "cached-above-input"
	CutBeforeUsage   = "cut-before-usage"
	CutAfterUsage    = "cut-after-usage"
	EndsEarly        = "ends-early" // omits its last event but ends the stream normally
	HangsAtEnd       = "hangs-at-end"
	Status401        = "status-401"
	Status404        = "status-404"
	Status400EchoKey = "status-400-echo-key"
	Status429        = "status-429"
	Status429Retry   = "status-429-retry" // with Retry-After: 7
	Status429Spent   = "status-429-spent" // the account has no quota left
	Status500        = "status-500"
	Status500Retry   = "status-500-retry" // with Retry-After as a date
	Status529        = "status-529"
	Status529Retry   = "status-529-retry" // with Retry-After: 9
	FailsOnce        = "fails-once"       // with 503 and Retry-After: 1; later calls succeed
	ErrorFrame       = "error-frame"      // 200, then an error instead of the first event
	ErrorInside      = "error-inside"
	HTML502          = "html-502"
	HTML200          = "html-200"
	Redirects        = "redirects"
	WrongLength      = "wrong-length"      // declares more bytes than it sends
	Gzip             = "gzip"              // compresses although the client does not accept it
	EchoesKey        = "echoes-key"        // repeats the API key in its answer
	HangsAfterUsage  = "hangs-after-usage" // sends nothing after its usage report
	AboveMax         = "above-max"         // sends more tokens than allowed
	DropsAfterRead   = "drops-after-read"
	Reasons          = "reasons" // reasons invisibly for Reasoning after its first word, and bills its maximum of tokens
)

// Call is the record of one call to the provider.
type Call struct {
	Path, Model string
	Header      http.Header
	Body        map[string]any
	In, Out     int64 // tokens that the provider would bill
	Done        bool  // the answer was sent completely
}

// Provider is a running provider. Create one with Start.
type Provider struct {
	URL string // base address, with /v1
	// Reasoning is how long the model Reasons reasons. Patience is how long a model hangs before it breaks off the
	// connection; 0 means until the client disconnects. Set both before the first call.
	Reasoning, Patience time.Duration

	server *httptest.Server
	gate   chan struct{}
	life   context.Context // ends with Close
	end    context.CancelFunc
	once   atomic.Bool // FailsOnce has already failed
	mu     sync.Mutex
	book   []*Call
	spoken []*Answer
}

// Start starts a provider. Call Close to stop it.
func Start() *Provider {
	p := &Provider{gate: make(chan struct{}, 1000)}
	p.life, p.end = context.WithCancel(context.Background())
	p.server = httptest.NewServer(http.HandlerFunc(p.serve))
	p.URL = p.server.URL + "/v1"
	return p
}

// Close closes every connection and stops the provider.
func (p *Provider) Close() {
	p.end()
	p.server.CloseClientConnections()
	p.server.Close()
}

// Continue releases one waiting call.
func (p *Provider) Continue() { p.gate <- struct{}{} }

// Book returns a copy of all recorded calls.
func (p *Provider) Book() []Call { return p.Since(0) }

// Since returns a copy of the recorded calls except the first n.
func (p *Provider) Since(n int) []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]Call, len(p.book)-n)
	for i, c := range p.book[n:] {
		out[i] = *c
	}
	return out
}

// Len returns how many calls are recorded.
func (p *Provider) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.book)
}

// CloseIdle closes the connections that have no request in progress.
func (p *Provider) CloseIdle() {
	p.server.Config.SetKeepAlivesEnabled(false)
	p.server.Config.SetKeepAlivesEnabled(true)
}

// Billed returns the sum of the tokens of all recorded calls.
func (p *Provider) Billed() (in, out int64) {
	for _, c := range p.Book() {
		in, out = in+c.In, out+c.Out
	}
	return in, out
}

func (p *Provider) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v1/realtime" {
		p.serveRealtime(w, r)
		return
	}
	text, err := io.ReadAll(r.Body)
	c := &Call{Path: r.URL.Path, Header: r.Header.Clone(), Body: map[string]any{}}
	if err == nil {
		err = json.Unmarshal(text, &c.Body)
	}
	c.Model, _ = c.Body["model"].(string)
	p.mu.Lock()
	p.book = append(p.book, c)
	p.mu.Unlock()
	switch {
	case err != nil:
		http.Error(w, "the body is not JSON", http.StatusBadRequest)
	case r.Header.Get("Authorization") != "Bearer "+Key && r.Header.Get("X-Api-Key") != Key:
		writeError(w, http.StatusUnauthorized, "Incorrect API key provided: "+r.Header.Get("Authorization"))
	case !p.fails(w, r, c.Model):
		p.answer(w, r, c, text)
	}
}

// fails sends the error response of a failing model, and reports whether it sent one.
func (p *Provider) fails(w http.ResponseWriter, r *http.Request, model string) bool {
	switch model {
	case Hangs:
		p.hang(r)
	case SlowFirstByte:
		p.wait(r)
		return false
	case Status401:
		writeError(w, http.StatusUnauthorized, "Incorrect API key provided: "+Key)
	case Status404:
		writeError(w, http.StatusNotFound, "The model does not exist")
	case Status400EchoKey:
		writeError(w, http.StatusBadRequest, "Unsupported value with key "+Key)
	case Status429Retry:
		w.Header().Set("Retry-After", "7")
		writeError(w, http.StatusTooManyRequests, "Rate limit reached")
	case Status429:
		writeError(w, http.StatusTooManyRequests, "Rate limit reached")
	case Status429Spent:
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`)
	case Status500:
		writeError(w, http.StatusInternalServerError, "The server had an error")
	case Status500Retry:
		w.Header().Set("Retry-After", "Fri, 01 Jan 2100 00:00:00 GMT")
		writeError(w, http.StatusInternalServerError, "The server had an error")
	case Status529:
		writeError(w, 529, "Overloaded")
	case Status529Retry:
		w.Header().Set("Retry-After", "9")
		writeError(w, 529, "Overloaded")
	case FailsOnce:
		if p.once.Swap(true) {
			return false
		}
		w.Header().Set("Retry-After", "1")
		writeError(w, http.StatusServiceUnavailable, "Try again")
	case HTML502:
		w.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(w, "<html>Bad gateway</html>")
	case HTML200:
		_, _ = io.WriteString(w, "<html>Welcome</html>")
	case Redirects:
		http.Redirect(w, r, "/v1/elsewhere", http.StatusTemporaryRedirect)
	case DropsAfterRead:
		panic(http.ErrAbortHandler)
	default:
		return false
	}
	return true
}

func writeError(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": message}})
}

func (p *Provider) wait(r *http.Request) {
	select {
	case <-p.gate:
	case <-r.Context().Done():
	}
}

// hang waits until the client disconnects, or breaks off the connection when Patience is over.
func (p *Provider) hang(r *http.Request) {
	if p.Patience > 0 && sleep(r, p.Patience) {
		panic(http.ErrAbortHandler)
	}
	<-r.Context().Done()
}

// sleep waits for d. It returns false if the client disconnects earlier.
func sleep(r *http.Request, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
		return false
	}
}

// words lists the words of an answer. Some contain multi-byte characters.
var words = []string{"Grüße", " to", " the", " world", " of", " small", " glasses", " 你好", "!"}

// output returns the number of words in a call's answer, and the number of its tokens. Most models bill one token per
// word and shorten the answer to the call's limit.
func output(body map[string]any, model string) (n, tokens int) {
	n = len(words)
	most := n
	for _, field := range []string{"max_tokens", "max_completion_tokens", "max_output_tokens"} {
		if limit, ok := body[field].(float64); ok {
			most = int(limit)
			n = min(n, most)
		}
	}
	switch model {
	case AboveMax:
		n = most * 50
	case Reasons:
		return n, most
	}
	return n, n
}

func text(n int, model string) []string {
	if model == EchoesKey {
		return []string{"Your key is ", Key, "."}
	}
	var out []string
	for i := range n {
		out = append(out, words[i%len(words)])
	}
	return out
}

// answer sends a whole or streamed answer.
func (p *Provider) answer(w http.ResponseWriter, r *http.Request, c *Call, body []byte) {
	s := &stream{p: p, w: w, r: r, c: c, api: strings.TrimPrefix(c.Path, "/v1/"), in: int64(len(body)/4 + 1)}
	n, billed := output(c.Body, c.Model)
	tokens := text(n, c.Model)
	if s.tool = s.toolToCall(); s.tool != "" {
		tokens = arguments
	}
	if s.out = int64(len(tokens)); c.Model == Reasons {
		s.out = int64(billed)
	}
	s.usage = usage(s.api, c.Model, s.in, s.out)
	if streamed, _ := c.Body["stream"].(bool); !streamed {
		s.whole(tokens)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	s.send(tokens)
}

// enter records the number of delivered tokens. A call is billed only once its first token is sent; from then on, a
// model that reasons bills everything.
func (s *stream) enter(out int, done bool) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.c.In, s.c.Out, s.c.Done = s.in, int64(out), done
	if s.c.Model == Reasons {
		s.c.Out = s.out
	}
}

// usage returns a call's usage report in the format of its interface, with the error that the model's name selects.
func usage(api, model string, in, out int64) any {
	names := [3]string{"input_tokens", "output_tokens", "input_tokens_details"}
	if api == "chat/completions" {
		names = [3]string{"prompt_tokens", "completion_tokens", "prompt_tokens_details"}
	}
	u := map[string]any{names[0]: in, names[1]: out}
	if api != "messages" {
		u["total_tokens"] = in + out
		u[names[2]] = map[string]any{"cached_tokens": in / 2}
	}
	switch model {
	case UsageStrings:
		u[names[0]] = "12"
	case UsageNegative:
		u[names[2]] = map[string]any{"cached_tokens": -1}
		u["cache_read_input_tokens"] = -1
	case UsageHuge:
		u[names[1]] = json.Number("1000000000000000000")
	case CachedAbove:
		u[names[2]] = map[string]any{"cached_tokens": in + 1}
	case UsageIsNull:
		return nil
	}
	return u
}

// Cached returns the number of input tokens that a call's report counts as cached.
func Cached(in int64) int64 { return in / 2 }

// Prices are in micro-USD per token.
type Prices struct{ In, Cached, Out int64 }

// Bill returns the price of a call in micro-USD.
func (c Call) Bill(p Prices) int64 {
	cached := Cached(c.In)
	if c.Path == "/v1/messages" {
		cached = 0
	}
	return (c.In-cached)*p.In + cached*p.Cached + c.Out*p.Out
}

// hides reports whether a model sends no usage report.
func hides(model string) bool { return slices.Contains([]string{UsageNone, CutBeforeUsage}, model) }
