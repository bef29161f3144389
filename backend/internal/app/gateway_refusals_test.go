package app

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/config"
	"github.com/service-dev/service/test/llmtest"
)

// refused checks that a refusal has the form that official clients expect, and returns the members of its error.
func (w *gatewayWorld) refused(path, body string, status int, code, kind, retryAfter string) map[string]any {
	w.t.Helper()
	res, text := w.ask("POST", path, body)
	e := errorOf(w.t, text)
	if res.StatusCode != status || e["code"] != code || e["type"] != kind || res.Header.Get("Retry-After") != retryAfter {
		w.t.Errorf("%s: got status %d, Retry-After %q, error %v; want those of the refusal", path, res.StatusCode,
			res.Header.Get("Retry-After"), e)
	}
	if row := w.last(); row.Outcome != code || row.MicroUSD != 0 {
		w.t.Errorf("got recorded call %+v, want the refusal and no charge", row)
	}
	return e
}

func TestGateway_RefusesWhatTheCreditDoesNotAllow(t *testing.T) {
	eachGateway(t, testCreditRefusals, func(c *config.Config) {
		c.FreeCredit = "0.02"
		c.Mail = config.Mail{Host: "127.0.0.1", Port: 1, From: "service@example.org", TLS: "none"}
	})
}

func testCreditRefusals(t *testing.T, w *gatewayWorld) {
	const chat, messages = "/v1/chat/completions", "/v1/messages"
	w.refused(chat, chatBody("good", ""), http.StatusForbidden, "credit_locked", "permission_error", "")
	w.exec("UPDATE accounts SET verified_at = 1")

	res := w.begin(t.Context(), chatBody(llmtest.WaitsInside, `,"stream":true,"max_tokens":1000`))
	defer res.Body.Close()
	e := w.refused(chat, chatBody("good", `,"max_tokens":1000`), http.StatusTooManyRequests, "credit_reserved",
		"rate_limit_error", "2")
	if needed, available := e["needed"].(float64), e["available"].(float64); needed <= available || needed > 20_000 {
		t.Errorf("got %v, want an amount needed that is above the credit available", e)
	}
	w.provider.Continue()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}

	w.exec("UPDATE credit_balances SET day_cap = 1")
	e = w.refused(chat, chatBody("good", ""), http.StatusPaymentRequired, "cap_reached", "insufficient_quota", "")
	resets, err := time.Parse(time.RFC3339, e["resetsAt"].(string))
	if err != nil || e["cap"] != "day" || e["of"] != "account" || e["limit"] != 1.0 || resets.Hour() != 0 {
		t.Errorf("got %v, want the account's day cap of one micro-USD, which resets at midnight", e)
	}
	w.exec("UPDATE credit_balances SET day_cap = NULL")
	w.exec("UPDATE gateway_settings SET month_cap = 0")
	e = w.refused(messages, chatBody("msg-good", `,"max_tokens":1`), http.StatusPaymentRequired, "cap_reached",
		"billing_error", "")
	if e["cap"] != "month" || e["of"] != "project" {
		t.Errorf("got %v, want the project's month cap", e)
	}
	w.exec("DELETE FROM gateway_settings")
	if res, text := w.ask("POST", chat, chatBody("good", "")); res.StatusCode != http.StatusOK {
		t.Errorf("call without caps: got %d %s, want 200", res.StatusCode, text)
	}
}

// The app, the agent and the owner are all shown where to add credit.
func TestGateway_NoCreditNamesWhereToPayIn(t *testing.T) {
	const payPage = "https://pay.example.org/in"
	eachGateway(t, func(t *testing.T, w *gatewayWorld) {
		topUp := w.usage("").Credit.TopUp
		if topUp == nil || !strings.HasPrefix(*topUp, payPage+"?account=acct_") {
			t.Fatalf("agent got top-up URL %v, want the pay page with the account's ID", topUp)
		}
		w.refusedTopUp(*topUp)
		if page := w.signIn().get("/account/credit"); !strings.Contains(page, `href="`+*topUp+`"`) {
			t.Error("the page does not link to the top-up URL")
		}
	}, func(c *config.Config) { c.FreeCredit, c.TopUpURL = "0.00", payPage })
}

func TestGateway_NoCreditWithoutAPaymentPage(t *testing.T) {
	w := startGateway(t, func(c *config.Config) { c.FreeCredit = "0.00" })
	w.refusedTopUp(nil)
	if page := w.signIn().get("/account/credit"); w.usage("").Credit.TopUp != nil || strings.Contains(page, "Pay in") {
		t.Error("the agent or the owner got a link to a top-up page, but none is configured")
	}
}

// refusedTopUp checks that each interface refuses a call without credit and tells where to add credit.
func (w *gatewayWorld) refusedTopUp(want any) {
	w.t.Helper()
	for _, call := range [][3]string{{"/v1/chat/completions", chatBody("good", ""), "insufficient_quota"},
		{"/v1/responses", `{"model":"resp-good","input":"Hello"}`, "insufficient_quota"},
		{"/v1/messages", chatBody("msg-good", `,"max_tokens":9`), "billing_error"}} {
		e := w.refused(call[0], call[1], http.StatusPaymentRequired, "no_credit", call[2], "")
		if e["topUp"] != want {
			w.t.Errorf("%s: got topUp %v, want %v", call[0], e["topUp"], want)
		}
	}
}

func TestGateway_SaysThatNoModelsAreSetUp(t *testing.T) {
	w := startGateway(t, func(c *config.Config) { c.GatewayCatalogue = "" })
	w.refused("/v1/chat/completions", chatBody("good", ""), http.StatusServiceUnavailable, "not_configured", "api_error", "")
	w.refused("/v1/messages", chatBody("good", `,"max_tokens":1`), http.StatusServiceUnavailable, "not_configured",
		"overloaded_error", "")
	if res, text := w.ask("GET", "/v1/models", ""); res.StatusCode != http.StatusOK || !strings.Contains(text, `"data":[]`) {
		t.Errorf("list models: got %d %s, want 200 and an empty list", res.StatusCode, text)
	}
}

// A key that any process revokes becomes invalid immediately. Even an answer in progress is cut off.
func TestGateway_CutsTheAnswerOfARevokedKey(t *testing.T) { eachGateway(t, testRevoked) }

func testRevoked(t *testing.T, w *gatewayWorld) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // shorter than the gateway's own limit of a minute
	defer cancel()
	res := w.begin(ctx, chatBody(llmtest.WaitsInside, `,"stream":true`))
	defer res.Body.Close()
	w.exec("UPDATE project_keys SET revoked_at = 1")
	text, err := io.ReadAll(res.Body)
	if err == nil || ctx.Err() != nil ||
		!strings.Contains(string(text), "the answer broke off: the project key was revoked") ||
		!strings.Contains(string(text), `"code":"invalid_key"`) {
		t.Errorf("got error %v after %q, want invalid_key because the key was revoked", err, text)
	}
	w.provider.Continue() // the provider reports the usage after the app has gone
	w.settled()
	if row := w.last(); row.Outcome != "cancelled" || row.Estimated || row.MicroUSD == 0 {
		t.Errorf("got recorded call %+v, want a cancelled one that pays what the provider reported", row)
	}
	if again, _ := w.ask("POST", "/v1/chat/completions", chatBody("good", "")); again.StatusCode != http.StatusUnauthorized {
		t.Errorf("next call: got status %d, want 401", again.StatusCode)
	}
}
