package app

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/service-dev/service/test/llmtest"
)

// Calls paid by a project's own key count toward no cap and need no credit.
func TestGateway_CapsDoNotCountOwnKeys(t *testing.T) {
	eachGateway(t, func(t *testing.T, w *gatewayWorld) {
		f := &failures{gatewayWorld: w, owner: w.signIn()}
		f.payByOwnKey(llmtest.Key)
		f.owner.get("/account/credit") // creates the balance
		f.exec("UPDATE gateway_settings SET day_cap = 1")
		f.exec("UPDATE credit_balances SET day_cap = 1, month_cap = 1, posted = 0")
		for range 3 {
			f.answers("good")
		}
		u := w.usage("")
		if u.Totals.Calls != 3 || u.Totals.TextOut == 0 || u.Totals.MicroUSD != 0 || u.Caps.Day.SpentMicroUSD != 0 ||
			u.Caps.AccountMonth.SpentMicroUSD != 0 || u.Credit.BalanceMicroUSD != 0 || len(u.Refusals) != 0 {
			t.Errorf("got usage %+v, want three calls at no charge and no refusal", u)
		}
		if len(u.BySource) != 1 || u.BySource[0].Source != "own_key" || *u.KeySource != "own_key" {
			t.Errorf("got sources %+v, paid by %s, want only own_key", u.BySource, *u.KeySource)
		}
	}, withOwnKeys(t))
}

// Credit never pays for a call with a project's own key, even if the key or its provider fails.
func TestGateway_CreditNeverStandsInForAnOwnKey(t *testing.T) {
	eachGateway(t, func(t *testing.T, w *gatewayWorld) {
		f := &failures{gatewayWorld: w, owner: w.signIn()}
		f.owner.get("/account/credit")
		posted := w.posted()
		f.payByOwnKey(llmtest.Key)
		for _, c := range []struct {
			model  string
			status int
			code   string
		}{
			{llmtest.Status429Spent, 403, "own_key_refused"}, {llmtest.Status401, 403, "own_key_refused"},
			{llmtest.Status429, 503, "provider_busy"}, {llmtest.Status500, 503, "provider_busy"},
			{llmtest.Status404, 503, "provider_unavailable"},
		} {
			calls := len(w.provider.Book())
			res, text := w.ask("POST", "/v1/chat/completions", chatBody(c.model, ""))
			if res.StatusCode != c.status || !strings.Contains(text, `"code":"`+c.code+`"`) {
				t.Errorf("%s: got %d %s, want the refusal in the table", c.model, res.StatusCode, text)
			}
			if row, n := w.last(), len(w.provider.Book())-calls; n != 1 || row.Source != "own_key" || row.MicroUSD != 0 {
				t.Errorf("%s: got %d requests and %+v, want one request, paid by the own key at no charge", c.model, n, row)
			}
		}
		if now, held := w.balance(); now != posted || held != 0 {
			t.Errorf("balance changed from %d to %d with %d held, want no change and none held", posted, now, held)
		}
	}, withOwnKeys(t))
}

// Changing or removing the key does not affect a call in flight. The next call uses the key stored at that time.
func TestGateway_OwnKeyChangesDuringACall(t *testing.T) {
	const changed = "sk-changed-canary-000000"
	for name, c := range map[string]struct {
		change func(f *failures)
		code   string // of the next call
		sent   bool   // the next call reaches the provider, with the changed key
	}{
		"changed": {func(f *failures) { f.set("/credentials/openai", url.Values{"value": {changed}}) }, "own_key_refused",
			true},
		"removed": {func(f *failures) { f.set("/credentials/openai/remove", url.Values{}) }, "own_key_missing", false},
	} {
		t.Run(name, func(t *testing.T) {
			eachGateway(t, func(t *testing.T, w *gatewayWorld) {
				f := &failures{gatewayWorld: w, owner: w.signIn()}
				f.payByOwnKey(llmtest.Key)
				res := w.begin(t.Context(), chatBody(llmtest.WaitsInside, `,"stream":true`))
				defer res.Body.Close()
				c.change(f)
				w.provider.Continue()
				if text, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(text), "[DONE]") {
					t.Errorf("call in flight: got error %v, answer %q, want a complete answer", err, text)
				}
				w.refused("/v1/chat/completions", chatBody("good", ""), http.StatusForbidden, c.code, "permission_error", "")
				book := w.provider.Book()
				with := book[len(book)-1].Header.Get("Authorization")
				if c.sent != (len(book) == 2) || c.sent != strings.Contains(with, changed) {
					t.Errorf("the provider received %d calls, the last with %q; want the changed key if one is stored",
						len(book), with)
				}
			}, withOwnKeys(t))
		})
	}
}

// payByOwnKey makes the project pay with its own key.
func (f *failures) payByOwnKey(key string) {
	f.set("/credentials/openai", url.Values{"value": {key}})
	f.set("/gateway/key-source", url.Values{"source": {"own"}})
}

// answers makes a call that must succeed.
func (f *failures) answers(model string) {
	f.t.Helper()
	if res, text := f.ask("POST", "/v1/chat/completions", chatBody(model, "")); res.StatusCode != http.StatusOK {
		f.t.Errorf("%s: got %d %s, want 200", model, res.StatusCode, text)
	}
}
