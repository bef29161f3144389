package tools

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/link"
)

// The person learns the word that the page asks for, whichever way they are asked; where there is none nothing is said.
func TestAuthRequired_TellsTheSignInWord(t *testing.T) {
	for _, word := range []string{"", "bcdfghjkmn"} {
		code := link.Code{DeviceCode: backend.DeviceCode{UserCode: testUser, VerificationURL: testURL, SignInWord: word}}
		out, err := json.Marshal(authRequired(code, account.NotLinked, false))
		if err != nil {
			t.Fatal(err)
		}
		for text, said := range map[string]string{string(out): "the answer", question(code): "the question"} {
			if word != "" && !strings.Contains(text, "sign-in word "+word) || word == "" && strings.Contains(strings.ToLower(text), "word") {
				t.Errorf("with %q %s is %s", word, said, text)
			}
		}
	}
}
