package web

import (
	"net/http"
	"testing"

	"github.com/service-dev/service/backend/internal/gateway"
)

const helloServers = helloGateway + "/servers"

// Users can add local servers only if the backend runs on their own machine.
func TestServers_AreOfferedOnTheOwnMachineOnly(t *testing.T) {
	site, _ := dashboardSite(t, newFakeDashboard())
	v := signedIn(t, site, ada).get(helloGateway).lacks("Local servers", "server-url")
	v.post(helloServers, v.form("server-id", "ollama", "server-url", "http://localhost:11434")).want(http.StatusNotFound)
}

func TestServers_AddedCheckedRemoved(t *testing.T) {
	h := newFakeDashboard()
	servers := &fakeServers{fakeDashboard: h}
	h.servers = servers
	site, _ := dashboardSite(t, h)
	v := signedIn(t, site, ada).get(helloGateway).want(http.StatusOK, "Local servers", "cost <strong>$0.00</strong>")
	added := v.form("server-id", "ollama", "server-url", "http://localhost:11434/v1", "server-key", "secret-x")
	v.post(helloServers, added).
		onward().want(http.StatusOK, "The local server answers", "http://localhost:11434/v1", ", with a key",
		helloServers+"/ollama/check").lacks("secret-x", "can read: use https")
	v.post(helloServers, v.form("server-id", "far", "server-url", "http://192.168.1.20/v1", "server-key", "secret-x")).
		onward().want(http.StatusOK, "with a key that others in the network can read: use https")
	servers.leftOut = 1
	v.post(helloServers, v.form("server-id", "odd", "server-url", "http://localhost:1/v1")).onward().
		want(http.StatusOK, "without those whose names")
	v.post(helloServers+"/ollama/check", v.form()).onward().
		want(http.StatusOK, "does not answer as it should", "it does not answer")
	v.post(helloServers+"/nothing/check", v.form()).want(http.StatusNotFound)
	v.get(helloServers + "/nothing/remove").want(http.StatusNotFound)
	v.get(helloServers+"/ollama/remove").want(http.StatusOK, "Remove the local server ollama?")
	v.post(helloServers+"/ollama/remove", v.form()).onward().want(http.StatusOK, "The local server is removed").
		lacks("http://localhost:11434/v1</bdi>")
	v.get("/account/audit").want(http.StatusOK, "Local server added", "Local server removed")
}

func TestServers_SayWhatIsWrongWithTheForm(t *testing.T) {
	h := newFakeDashboard()
	servers := &fakeServers{fakeDashboard: h}
	h.servers = servers
	site, _ := dashboardSite(t, h)
	v := signedIn(t, site, ada).get(helloGateway)
	for text, err := range map[string]error{
		"lower-case letters": gateway.ErrServerID, "such as http://localhost:11434/v1": gateway.ErrServerURL,
		"of a private network, such as": gateway.ErrNotLocal, "maximum number of local servers": gateway.ErrServers,
	} {
		servers.err = err
		v.get(helloGateway)
		v.post(helloServers, v.form("server-id", "mine", "server-url", "http://example.org", "server-key", "secret-x")).
			want(http.StatusUnprocessableEntity, text, `value="mine"`, `value="http://example.org"`, "<title>Error:").
			lacks("secret-x")
	}
	eve := signedIn(t, site, "eve@example.org")
	eve.get(creditPath)
	eve.post(helloServers, eve.form("server-id", "x", "server-url", "http://localhost")).want(http.StatusNotFound)
}
