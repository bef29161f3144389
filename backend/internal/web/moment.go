package web

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Moments: what one step of signing in must remember until the next, in a cookie of its own for a few minutes. Each is
// signed, so it cannot be made, and all but one are bound to this browser session, so they cannot be carried to another.
const (
	momentOIDC    = "oidc"    // the way to a provider and back
	momentWelcome = "welcome" // who a provider said this is, until the privacy policy is accepted
	momentPasskey = "passkey" // the challenge that a passkey answers
	momentReset   = "reset"   // a mailed link's token, out of the address bar
	momentVerify  = "verify"
	momentSignUp  = "signup" // the token of a mailed sign-up

	momentLife = 10 * time.Minute
	maxMoment  = 3800 // bytes; browsers keep cookies of 4 KB
)

type moment struct {
	Until int64           `json:"u"` // ms
	Value json.RawMessage `json:"v"`
}

// holder is the browser session that a moment is bound to. The link that confirms an address outlives the sign-in that
// it asks for: whoever has it can open it in any browser, and it counts for its own account only.
func holder(r *http.Request, purpose string) string {
	if purpose == momentVerify {
		return ""
	}
	return currentBrowser(r).id
}

// wayBack is a value with a way back, which it can do without where that is too long for a cookie.
type wayBack interface{ withoutWay() any }

func (t oidcTrip) withoutWay() any { t.Next = "/"; return t }

func (a arrival) withoutWay() any { a.Next = "/"; return a }

// remember keeps value in this browser for momentLife.
func (w *Web) remember(rw http.ResponseWriter, r *http.Request, purpose string, value any) error {
	signed, err := w.signedMoment(r, purpose, value)
	if way, ok := value.(wayBack); ok && err == nil && len(signed) > maxMoment {
		signed, err = w.signedMoment(r, purpose, way.withoutWay())
	}
	if err != nil {
		return fmt.Errorf("remembering %s: %w", purpose, err)
	}
	if len(signed) > maxMoment {
		return fmt.Errorf("remembering %s: %d bytes are too many for a cookie", purpose, len(signed))
	}
	w.setMoment(rw, purpose, signed, int(momentLife.Seconds()))
	return nil
}

func (w *Web) signedMoment(r *http.Request, purpose string, value any) (string, error) {
	raw, err := plainJSON(value)
	if err != nil {
		return "", err
	}
	data, err := plainJSON(moment{Until: w.Now().Add(momentLife).UnixMilli(), Value: raw})
	if err != nil {
		return "", err
	}
	body := base64.RawURLEncoding.EncodeToString(data)
	return body + "." + w.sign("moment", purpose, holder(r, purpose), body), nil
}

// plainJSON leaves &, < and > as they are: a cookie is no HTML, and each would take six bytes.
func plainJSON(value any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return bytes.TrimSpace(out.Bytes()), err
}

// recall reads what remember kept; false for anything forged, overdue or of another browser session.
func (w *Web) recall(r *http.Request, purpose string, into any) bool {
	c, err := r.Cookie(w.cookie + "-" + purpose)
	if err != nil || len(c.Value) > maxMoment {
		return false
	}
	body, signature, ok := strings.Cut(c.Value, ".")
	if !ok || !same(signature, w.sign("moment", purpose, holder(r, purpose), body)) {
		return false
	}
	data, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return false
	}
	var m moment
	if json.Unmarshal(data, &m) != nil || w.Now().UnixMilli() > m.Until {
		return false
	}
	return json.Unmarshal(m.Value, into) == nil
}

func (w *Web) forget(rw http.ResponseWriter, purpose string) { w.setMoment(rw, purpose, "", -1) }

func (w *Web) setMoment(rw http.ResponseWriter, purpose, value string, seconds int) {
	http.SetCookie(rw, &http.Cookie{
		Name: w.cookie + "-" + purpose, Value: value, Path: "/",
		MaxAge: seconds, HttpOnly: true, Secure: w.secure, SameSite: http.SameSiteLaxMode,
	})
}
