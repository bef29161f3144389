package relay_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/service-dev/service/backend/internal/relay"
)

func TestServePage_NeedsOrigin(t *testing.T) {
	n := startNode(t, newMemory(), relay.Options{})
	for name, h := range map[string]http.Header{"none": nil, "foreign": {"Origin": {"https://evil.example"}}} {
		_, res, err := websocket.Dial(t.Context(), n.url+"/s/"+testID+"/live", &websocket.DialOptions{HTTPHeader: h})
		if err == nil || res == nil || res.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestServePage_ComparesTheScheme(t *testing.T) {
	n := startNode(t, newMemory(), relay.Options{SiteOrigin: "https://service.example"})
	host := strings.TrimPrefix(n.url, "http://")
	for origin, want := range map[string]int{
		"https://service.example": http.StatusSwitchingProtocols, "https://" + host: http.StatusSwitchingProtocols,
		"http://service.example": http.StatusForbidden, "http://" + host: http.StatusForbidden,
		"https://evil.example": http.StatusForbidden,
	} {
		ws, res, err := websocket.Dial(t.Context(), n.url+"/s/"+testID+"/live",
			&websocket.DialOptions{HTTPHeader: http.Header{"Origin": {origin}}})
		if res == nil || res.StatusCode != want {
			t.Errorf("%s: got %v, %v; want status %d", origin, res, err, want)
		}
		if ws != nil {
			_ = ws.CloseNow()
		}
	}
}
