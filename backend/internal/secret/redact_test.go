package secret

import (
	"testing"

	"github.com/service-dev/service/internal/credential"
)

func TestRedact(t *testing.T) {
	id, other := New(credential.Credential), New(credential.Token)
	for text, want := range map[string]string{
		"/account/credentials/" + id: "/account/credentials/scl_...",
		id + "/" + other + " again":  "scl_.../svc_... again",
		"/account/projects/com.a.b":  "/account/projects/com.a.b",
		"scl_short":                  "scl_short",
		"":                           "",
	} {
		if got := Redact(text); got != want {
			t.Errorf("%q", got)
		}
	}
}
