package app

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/service-dev/service/internal/credential"
	"github.com/service-dev/service/test/llmtest"
	"github.com/service-dev/service/test/testkey"
)

// A project key alone spends the day's allowance and is then told to attest. An attested install may go on, until its
// owner revokes it, which also ends the answer in progress.
func TestGateway_AttestedInstallsAreNotLimitedByTheAllowance(t *testing.T) {
	eachGateway(t, func(t *testing.T, w *gatewayWorld) {
		const chat = "/v1/chat/completions"
		w.exec("UPDATE gateway_settings SET key_allowance = 3000")
		spent := w.untilRefused(chat)
		e := w.refused(chat, chatBody("good", ""), http.StatusForbidden, "attestation_required", "permission_error", "")
		if e["limit"] != 3000.0 || e["used"].(float64) < 1000 || !strings.Contains(e["message"].(string), "/v1/attest") {
			t.Errorf("after %d calls: got %v, want the allowance and how to attest", spent, e)
		}
		keys := w.usage("").Caps.ProjectKeysDay
		if keys == nil || keys.LimitMicroUSD != 3000 || keys.SpentMicroUSD < 1000 || keys.ReservedMicroUSD != 0 ||
			!strings.HasSuffix(keys.ResetsAt, "T00:00:00.000Z") {
			t.Errorf("the usage report has %+v, want the allowance and what was spent of it", keys)
		}
		key := w.key
		w.key = w.attestDevelopment()
		if !strings.HasPrefix(w.key, credential.Attested) {
			t.Fatalf("got token %s, want it to begin with %s", w.key[:4], credential.Attested)
		}
		if res, text := w.ask("POST", chat, chatBody("good", "")); res.StatusCode != http.StatusOK {
			t.Fatalf("with the token: got %d %s, want 200", res.StatusCode, text)
		}
		w.exec("UPDATE gateway_settings SET day_cap = 0")
		w.refused(chat, chatBody("good", ""), http.StatusPaymentRequired, "cap_reached", "insufficient_quota", "")
		w.exec("UPDATE gateway_settings SET day_cap = NULL")
		w.denied("/v1/attest/challenge", "{}", http.StatusForbidden, "project_key_required")

		res := w.begin(t.Context(), chatBody(llmtest.WaitsInside, `,"stream":true`))
		defer res.Body.Close()
		w.exec("UPDATE attest_installs SET revoked_at = 1")
		text, err := io.ReadAll(res.Body)
		if err == nil || !strings.Contains(string(text), "the install was revoked") ||
			!strings.Contains(string(text), `"code":"invalid_key"`) {
			t.Errorf("got error %v after %q, want invalid_key because the install was revoked", err, text)
		}
		w.denied(chat, chatBody("good", ""), http.StatusUnauthorized, "invalid_key")
		w.key = key
		w.refused(chat, chatBody("good", ""), http.StatusForbidden, "attestation_required", "permission_error", "")
	})
}

// denied checks the refusal of a request that is not counted as a model call, and returns the members of its error.
func (w *gatewayWorld) denied(path, body string, status int, code string) map[string]any {
	w.t.Helper()
	res, text := w.ask("POST", path, body)
	e := errorOf(w.t, text)
	if res.StatusCode != status || e["code"] != code {
		w.t.Errorf("%s: got %d %v, want %d %s", path, res.StatusCode, e, status, code)
	}
	return e
}

// untilRefused calls a model with the project key until the allowance refuses the call.
func (w *gatewayWorld) untilRefused(path string) (calls int) {
	w.t.Helper()
	for ; ; calls++ {
		res, text := w.ask("POST", path, chatBody("good", ""))
		if res.StatusCode == http.StatusForbidden {
			return calls
		}
		if res.StatusCode != http.StatusOK || calls == 100 {
			w.t.Fatalf("call %d: got %d %s, want 200 or the refusal", calls, res.StatusCode, text)
		}
	}
}

// attestDevelopment attests an install with a test key, and returns its token.
func (w *gatewayWorld) attestDevelopment() string {
	w.t.Helper()
	key := testkey.New(w.t)
	w.exec(`INSERT INTO attest_settings (account_id, app_id, apple_apps, apple_development, packages, certificates,
		test_key, version) SELECT account_id, app_id, '', 0, '', '', '` + key.Public + `', 1 FROM projects`)
	var challenge, token struct{ Challenge, Token string }
	_, text := w.ask("POST", "/v1/attest/challenge", "")
	if err := json.Unmarshal([]byte(text), &challenge); err != nil {
		w.t.Fatalf("%v: %s", err, text)
	}
	const install = "a-simulator-of-a-test"
	body := `{"challenge":"` + challenge.Challenge + `","install":"` + install + `","signature":"` +
		base64.StdEncoding.EncodeToString(key.Sign(challenge.Challenge, install)) + `"}`
	_, text = w.ask("POST", "/v1/attest/development", body)
	if err := json.Unmarshal([]byte(text), &token); err != nil || token.Token == "" {
		w.t.Fatalf("attest: error %v, body %s", err, text)
	}
	if e := w.denied("/v1/attest/development", body, http.StatusForbidden, "attestation_failed"); e["reason"] != "unknown_challenge" {
		w.t.Errorf("a replay: got %v, want the reason unknown_challenge", e)
	}
	return token.Token
}
