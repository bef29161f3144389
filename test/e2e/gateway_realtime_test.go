//go:build unix

package e2e

import (
	"encoding/pem"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/service-dev/service/test/llmtest"
)

// writeVoices writes a catalogue with a chat model and with realtime models of one provider.
func writeVoices(t *testing.T, providerURL string, models ...string) string {
	t.Helper()
	file, err := llmtest.WriteCatalogue(t.TempDir(), providerURL, "chat")
	if err == nil {
		err = llmtest.AddVoices(file, models...)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// startVoiceApp starts an app that reaches the backend only over TLS, without which the official client opens no
// realtime sessions.
func startVoiceApp(t *testing.T, backend *remoteBackend, with *modelApp) *modelApp {
	t.Helper()
	target, err := url.Parse(backend.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }})
	t.Cleanup(proxy.Close)
	file := filepath.Join(t.TempDir(), "ca.pem")
	writeInto(t, file, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: proxy.Certificate().Raw})))
	key, err := with.owner.ProjectKey(app)
	if err != nil {
		t.Fatal(err)
	}
	return startModelApp(t, proxy.URL, key, "NODE_EXTRA_CA_CERTS="+file)
}

// What the account pays for a turn.
const (
	byBook     = iota // what the provider bills
	byEstimate        // the provider's report is missing or impossible
	byOperator        // nothing: the app did not request the answer
	byEither          // the connection broke: an estimate, or nothing if no part of the answer arrived
)

// mostOfTurn is the maximum cost of a turn, in micro-USD.
var mostOfTurn = llmtest.CatalogueVoicePrices.AudioIn*llmtest.VoiceContext +
	llmtest.CatalogueVoicePrices.AudioOut*llmtest.VoiceOutput

// The official client, with only base URL and key changed, holds a turn in text and one in sound with a provider that
// misbehaves.
func TestModelClients_Realtime(t *testing.T) {
	t.Parallel()
	const refused = "Received network error or non-101 status code."
	type outcome struct {
		text, sound string // how the turn ends for the client
		pays        int
	}
	same := func(end string, pays int) outcome { return outcome{end, end, pays} }
	outcomes := map[string]outcome{
		llmtest.Good: same("completed", byBook), llmtest.DoneTwice: same("completed", byBook),
		llmtest.DoneFirst: same("completed", byBook), llmtest.UnknownEvents: same("completed", byBook),
		llmtest.LateReceipt: same("completed", byBook), llmtest.FailedAnswer: same("failed", byBook),
		llmtest.UsageZero: same("completed", byBook), llmtest.UsageNone: same("completed", byEstimate),
		llmtest.UsageHuge: same("completed", byEstimate), llmtest.UsageNegative: same("completed", byEstimate),
		llmtest.ClosesWith4000: same("4502", byEither), llmtest.CutsInside: same("4502", byEither),
		llmtest.HalfOpen: same("4502", byEither), llmtest.GoesAway: same(refused, byOperator),
		// It starts an answer at the end of speech although it must not.
		llmtest.TalksUnasked: {"completed", "4502", byOperator},
	}
	var models []string
	for m := range outcomes {
		models = append(models, m)
	}
	provider := llmtest.Start()
	t.Cleanup(provider.Close)
	backend, first := startGatewayOf(t, writeVoices(t, provider.URL, models...), "")
	g := &gatewayWorld{t: t, provider: provider, backend: backend, app: startVoiceApp(t, backend, first)}
	for model, want := range outcomes {
		for _, sound := range []bool{false, true} {
			used, answers := g.settled().Used, len(provider.Answers())
			r := g.app.do(modelRequest{API: "realtime", Body: map[string]any{"model": "v-" + model, "sound": sound,
				"unasked": model == llmtest.TalksUnasked}})
			end, pays := want.text, want.pays
			if sound {
				end = want.sound
			} else if model == llmtest.TalksUnasked {
				pays = byBook
			}
			if r.Error != nil || r.Answer["end"] != end {
				t.Errorf("%s, sound %v: got %+v, want %s", model, sound, r, end)
			}
			var bill int64
			for _, b := range provider.AnswersSince(answers) {
				bill += b.Bill(llmtest.CatalogueVoicePrices)
			}
			used = g.settled().Used - used
			if pays == byBook && used != bill || pays == byEstimate && used <= 0 || pays == byOperator && used != 0 ||
				used < 0 || used > mostOfTurn {
				t.Errorf("%s, sound %v: charged %d micro-USD, the provider bills %d", model, sound, used, bill)
			}
		}
	}
	if l := g.ledger(); !l.OK {
		t.Errorf("the ledger does not add up: %+v", l)
	}
}

// A provider by somebody else answers in text. It reports no usage of realtime sessions, so the answer costs nothing.
func TestUpstreams_AimockSpeaksInRealtime(t *testing.T) {
	t.Parallel()
	nodeTool(t, "@copilotkit/aimock")
	mock := startUpstream(t, "aimock.mjs")
	backend, first := startGatewayOf(t, writeVoices(t, mock.url+"/v1", "gpt-realtime"), "")
	r := startVoiceApp(t, backend, first).do(modelRequest{API: "realtime",
		Body: map[string]any{"model": "v-gpt-realtime", "sound": false}})
	if r.Error != nil || r.Answer["end"] != "completed" || r.Answer["text"] != modelText {
		t.Errorf("got %+v, want the text", r)
	}
	g := &gatewayWorld{t: t, backend: backend, app: first}
	if l := g.settled(); !l.OK || l.Used != 0 {
		t.Errorf("the ledger has %+v, want no charge", l)
	}
	if u := first.usageOf(1).Totals; u.Calls != 1 || u.Failed+u.Estimated != 0 {
		t.Errorf("got usage %+v, want one call", u)
	}
}
