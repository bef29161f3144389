//go:build unix

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/proto/backendapi"
	"github.com/service-dev/service/test/llmtest"
)

// upstream is a third-party model server in its own process.
type upstream struct {
	t   *testing.T
	url string
	out *bufio.Scanner // its output after the address
}

// startUpstream starts an npm program that prints its address on the first line.
func startUpstream(t *testing.T, program string, args ...string) *upstream {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("npm", program))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(nodeTool(t, "node/bin/node"), append([]string{path}, args...)...)
	cmd.Env, cmd.Stderr = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	u := &upstream{t: t, out: bufio.NewScanner(out)}
	u.url = u.line()
	return u
}

func (u *upstream) line() string {
	u.t.Helper()
	if !u.out.Scan() {
		u.t.Fatalf("the model server exited: %v", u.out.Err())
	}
	return u.out.Text()
}

// gatewayTo starts a gateway to an upstream. models contains one line of the catalogue per model.
func gatewayTo(t *testing.T, provider, models string) (*remoteBackend, *modelApp) {
	t.Helper()
	dir := t.TempDir()
	catalogue, key := filepath.Join(dir, "gateway.yaml"), filepath.Join(dir, "provider.key")
	text := "providers:\n  - {id: upstream, " + strings.ReplaceAll(provider, "KEY", key) + "}\nmodels:\n"
	for model := range strings.Lines(models) {
		text += "  - {provider: upstream, context_tokens: 400, output_tokens: 100, " + strings.TrimSpace(model) + "}\n"
	}
	for path, text := range map[string]string{catalogue: text, key: llmtest.Key} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return startGatewayOf(t, catalogue, "")
}

// usageOf reads the usage of the app's project once it includes the given number of calls, because a stream can reach
// the app before it is counted.
func (a *modelApp) usageOf(calls int64) (u backendapi.GatewayUsage) {
	a.t.Helper()
	must(a.t, "every call is counted", func() bool {
		if err := a.owner.Get(backendapi.PathProjects+"/"+app+backendapi.PathGatewayUsage, &u); err != nil {
			a.t.Fatal(err)
		}
		return u.Totals.Calls >= calls
	})
	return u
}

// tokens returns the token counts of an answer, which have different field names in the two kinds of interface.
func tokens(answer map[string]any) (in, out int64) {
	usage, _ := answer["usage"].(map[string]any)
	for name, n := range usage {
		count, _ := n.(float64)
		switch name {
		case "prompt_tokens", "input_tokens":
			in = int64(count)
		case "completion_tokens", "output_tokens":
			out = int64(count)
		}
	}
	return in, out
}

// A third-party provider serves all three interfaces, whole and streamed, with text and with tools. The usage and the
// ledger match the token counts of the provider.
func TestUpstreams_AimockIsChargedAsItCounts(t *testing.T) {
	t.Parallel()
	nodeTool(t, "@copilotkit/aimock")
	mock := startUpstream(t, "aimock.mjs")
	const prices = "prices_micro_usd_per_million: {text_in: 2000000, text_cached: 1000000, text_cache_write: 3000000, " +
		"text_out: 10000000}"
	b, a := gatewayTo(t, "base_url: '"+mock.url+"/v1', key_file: 'KEY'", "id: good, api: chat, "+prices+
		"\nid: resp-good, api: responses, "+prices+"\nid: msg-good, api: messages, "+prices)
	var in, out, calls int64
	for _, how := range []string{"", "helper"} {
		for api, tool := range modelTools {
			for _, c := range []struct {
				said, want string
				in, out    int64 // token counts returned by aimock.mjs
			}{{"Hello", modelText, 17, 11}, {"How is the weather?", "Berlin", 31, 5}} {
				body := askBody(api, llmtest.Good, map[string]any{"tools": []any{tool}})
				if api == "chat" && how == "helper" {
					body["stream_options"] = map[string]any{"include_usage": true}
				}
				list := "messages"
				if api == "responses" {
					list = "input"
				}
				body[list] = []any{map[string]any{"role": "user", "content": c.said}}
				r := a.do(modelRequest{API: api, Body: body, How: how})
				answer, err := json.Marshal(r.Answer)
				read, wrote := tokens(r.Answer)
				if r.Error != nil || err != nil || !strings.Contains(string(answer), c.want) || read != c.in || wrote != c.out {
					t.Errorf("%s %s %q: got error %+v, answer %s; want the text and the tokens", api, how, c.said, r.Error, answer)
				}
				in, out, calls = in+c.in, out+c.out, calls+1
			}
		}
	}
	u, l, bill := a.usageOf(calls).Totals, b.ledger(), 2*in+10*out
	if u.Calls != calls || u.Failed+u.Estimated+u.Refused != 0 || u.TextIn != in || u.TextOut != out ||
		u.MicroUSD != bill {
		t.Errorf("got usage %+[5]v, want %[1]d calls, %[2]d and %[3]d tokens, %[4]d micro-USD", calls, in, out, bill, u)
	}
	if !l.OK || l.Used != bill || l.OpenHolds != 0 || l.Balances != 2_000_000-bill {
		t.Errorf("ledger: got %+v, want %d micro-USD used", l, bill)
	}
	if n := mock.journal(); n != int(calls) {
		t.Errorf("the provider received %d requests for %d calls, want one for each", n, calls)
	}
}

// journal returns the number of requests that aimock received.
func (u *upstream) journal() int {
	u.t.Helper()
	res, err := http.Get(u.url + "/__aimock/journal")
	if err != nil {
		u.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	var entries []any
	if err != nil || json.Unmarshal(text, &entries) != nil {
		u.t.Fatalf("read aimock's journal: %v: %.300s", err, text)
	}
	return len(entries)
}

// A real model runs on this machine: the gateway uses llama.cpp's token counts and charges nothing.
func TestUpstreams_LlamaCountsAndCostsNothing(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(filepath.Join("npm", "llama", "node_modules", "node-llama-cpp")); err != nil {
		missing(t, "node-llama-cpp", "make npm")
	}
	llama := startUpstream(t, filepath.Join("llama", "server.mjs"), randomModel(t))
	b, a := gatewayTo(t, "base_url: '"+llama.url+"/v1', local: true", "id: good, api: chat")
	before := b.ledger()
	var in, out, calls int64
	for _, how := range []string{"", "helper"} {
		for said, most := range map[string]int64{"Hello": 7, strings.Repeat("Grüße ", 20): 12} {
			r := a.do(modelRequest{API: "chat", How: how, Options: map[string]any{"maxRetries": 0}, Body: map[string]any{
				"model": llmtest.Good, "max_tokens": most, "stream_options": map[string]any{"include_usage": true},
				"messages": []any{map[string]any{"role": "user", "content": said}}}})
			if r.Error != nil {
				t.Fatalf("ask %q: got error %+v, want an answer", said, r.Error)
			}
			var counted struct{ In, Out int64 }
			if err := json.Unmarshal([]byte(llama.line()), &counted); err != nil {
				t.Fatal(err)
			}
			read, wrote := tokens(r.Answer)
			// The vocabulary of the model has one token per byte.
			if want := int64(len("user: " + said)); counted.In < want || counted.Out < 1 || counted.Out > most ||
				read != counted.In || wrote != counted.Out {
				t.Errorf("%.10q: the model counted %+v, the app got %d and %d, want the same and at least %d of input", said,
					counted, read, wrote, want)
			}
			in, out, calls = in+counted.In, out+counted.Out, calls+1
		}
	}
	u := a.usageOf(calls)
	if s := u.Totals; s.Calls != calls || s.Failed+s.Estimated != 0 || s.TextIn != in || s.TextOut != out ||
		s.MicroUSD != 0 {
		t.Errorf("got usage %+[4]v, want %[1]d free calls with %[2]d and %[3]d tokens", calls, in, out, s)
	}
	if len(u.BySource) != 1 || u.BySource[0].Source != "local" || u.BySource[0].Calls != calls {
		t.Errorf("usage by source: got %+v, want only local", u.BySource)
	}
	if l := b.ledger(); fmt.Sprint(l) != fmt.Sprint(before) {
		t.Errorf("the ledger changed from %+v to %+v, want no change", before, l)
	}
}
