package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
)

// Names of the hidden fields that forms carry.
const (
	csrfField = "csrf" // in every form
	seenField = "seen" // in the approve and deny forms
)

// csrfToken is what every form of this browser session must send back in the field "csrf".
func (w *Web) csrfToken(r *http.Request) string {
	return w.sign("csrf", currentBrowser(r).id)
}

// seenToken proves that this browser session was shown the page of this code: only a page made for it carries it.
func (w *Web) seenToken(r *http.Request, userCode string) string {
	return w.sign("seen", currentBrowser(r).id, userCode)
}

func (w *Web) csrfOK(r *http.Request) bool {
	return same(r.PostFormValue(csrfField), w.csrfToken(r))
}

func (w *Web) seenOK(r *http.Request, userCode string) bool {
	return same(r.PostFormValue(seenField), w.seenToken(r, userCode))
}

func same(got, want string) bool { return hmac.Equal([]byte(got), []byte(want)) }

// sign is an HMAC over the parts; the zero byte between them keeps ("ab","c") and ("a","bc") apart.
func (w *Web) sign(purpose string, parts ...string) string {
	mac := hmac.New(sha256.New, w.Key)
	mac.Write([]byte("web/" + purpose))
	for _, p := range parts {
		mac.Write([]byte{0})
		mac.Write([]byte(p))
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
