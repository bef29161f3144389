package web

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// A step of a sign-in stores the data for the next step in a separate cookie for a few minutes. The cookie is signed
// to prevent forgery. Except for flowVerify, it is bound to the browser session, so that it cannot be moved to
// another browser.
const (
	flowOIDC    = "oidc"    // the attempt at a sign-in provider
	flowWelcome = "welcome" // the identity reported by a provider, until the user accepts the privacy policy
	flowPasskey = "passkey" // the challenge for a passkey
	flowProof   = "proof"   // the challenge for a passkey that proves an action
	flowReset   = "reset"   // the token of a password link, to keep it out of the address bar
	flowCode    = "code"    // proofs that codes were shown to this browser session while they were pending
	flowVerify  = "verify"  // the token of a confirmation link
	flowSignUp  = "signup"  // the token of a sign-up link
	flowMailed  = "mailed"  // the address to which a mail was just requested

	flowLife     = 10 * time.Minute
	codeFlowLife = 2 * time.Hour // longer than the validity of a code, so that its outcome can be reported afterwards
	maxFlowState = 3800          // bytes; browsers limit cookies to 4 KB
)

type flowState struct {
	Until int64           `json:"u"` // Unix milliseconds
	Value json.RawMessage `json:"v"`
}

// lifeOf returns how long the state of a flow is kept.
func lifeOf(flow string) time.Duration {
	if flow == flowCode {
		return codeFlowLife
	}
	return flowLife
}

// saveFlow stores the first of values that fits into a cookie in this browser, for lifeOf(flow).
func (w *Web) saveFlow(c *call, flow string, values ...any) error {
	size := 0
	for _, value := range values {
		state, err := w.encodeFlow(c, flow, value)
		if err != nil {
			return fmt.Errorf("save state of flow %s: %w", flow, err)
		}
		if size = len(state); size <= maxFlowState {
			w.setCookie(c, "-"+flow, state, lifeOf(flow))
			return nil
		}
	}
	return fmt.Errorf("save state of flow %s: %d bytes exceed the limit of %d", flow, size, maxFlowState)
}

// loadFlow reads the value stored by saveFlow. It returns false if the cookie is missing, forged, expired or from
// another browser session.
func (w *Web) loadFlow(c *call, flow string, into any) bool {
	body, signature, _ := strings.Cut(w.cookieValue(c, "-"+flow, maxFlowState), ".")
	if !equal(signature, w.signFlow(c, flow, body)) {
		return false
	}
	data, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return false
	}
	var state flowState
	if json.Unmarshal(data, &state) != nil || w.Now().UnixMilli() > state.Until {
		return false
	}
	return json.Unmarshal(state.Value, into) == nil
}

func (w *Web) endFlow(c *call, flow string) { w.setCookie(c, "-"+flow, "", -time.Second) }

func (w *Web) encodeFlow(c *call, flow string, value any) (string, error) {
	raw, err := encodeJSON(value)
	if err != nil {
		return "", err
	}
	data, err := encodeJSON(flowState{Until: w.Now().Add(lifeOf(flow)).UnixMilli(), Value: raw})
	if err != nil {
		return "", err
	}
	body := base64.RawURLEncoding.EncodeToString(data)
	return body + "." + w.signFlow(c, flow, body), nil
}

// signFlow binds the state to the browser session. flowVerify is not bound, because it must survive the sign-in that
// it requires. The owner may open the link in any browser, and the token is valid only for the owner's account.
func (w *Web) signFlow(c *call, flow, body string) string {
	browserID := c.browserID
	if flow == flowVerify {
		browserID = ""
	}
	// Older versions, which may run at the same time, also use this purpose.
	return w.sign("moment", flow, browserID, body)
}

// encodeJSON encodes a value. It does not escape &, < and >, because each would need six bytes.
func encodeJSON(value any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return bytes.TrimSpace(out.Bytes()), err
}
