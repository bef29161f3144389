package httpbackend

import (
	"reflect"
	"strings"
	"testing"

	"github.com/service-dev/service/proto/backendapi"
)

// A backend offers the models of a user's own server under ids that follow the shared rule, so every id that the rule
// allows must be accepted.
func TestForms_AcceptEveryIDOfAModel(t *testing.T) {
	for id, fits := range map[string]bool{
		"ollama/llama3.2:1b": true, "a/Qwen/Qwen2.5-7B@q4+k_M": true, "a/-": true,
		"a/" + strings.Repeat("x", backendapi.MaxModelID-2): true, "a/" + strings.Repeat("x", backendapi.MaxModelID-1): false,
		`a/C:\models\x.gguf`: false, "a/b c": false,
	} {
		usage := backendapi.GatewayUsage{
			ByModel: []backendapi.GatewayOfModel{{Model: id}}, Models: []backendapi.GatewayModel{{ID: id, Resolves: &id}},
		}
		var w walker
		err := w.walk("", reflect.ValueOf(usage.Models))
		if err == nil {
			err = w.walk("", reflect.ValueOf(usage.ByModel))
		}
		if rule := backendapi.IsName(id, backendapi.MaxModelID); rule != fits || (err == nil) != fits {
			t.Errorf("%q: valid by the rule: %v, by the forms: %v; want the same", id, rule, err)
		}
	}
}
