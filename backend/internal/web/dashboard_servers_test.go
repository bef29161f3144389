package web

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/service-dev/service/backend/internal/gateway"
)

const helloServers = helloGateway + "/servers"

// Users can add local servers only if the backend runs on their own machine.
func TestServers_AreOfferedOnTheOwnMachineOnly(t *testing.T) {
	site := dashboardSite(t, newDashboardWorld(t))
	v := signedIn(t, site, ada).get(helloGateway).lacks("Local servers", "server-url")
	v.post(helloServers, v.form("server-id", "ollama", "server-url", "http://localhost:11434")).want(http.StatusNotFound)
}

func TestServers_AddedCheckedRemoved(t *testing.T) {
	h := newDashboardWorld(t)
	h.allowServers()
	ollama, addModel := newModelServer(t)
	address := ollama.URL + "/v1"
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada).get(helloGateway).want(http.StatusOK, "Local servers", "cost <strong>$0.00</strong>")
	added := v.form("server-id", "ollama", "server-url", address, "server-key", "secret-x")
	v.post(helloServers, added).
		onward().want(http.StatusOK, "The local server answers", address, ", with a key",
		helloServers+"/ollama/check").lacks("secret-x", "can read: use https")
	h.addServers(gateway.LocalServer{ID: "far", BaseURL: "http://192.168.1.20/v1", Keyed: true, Checked: then})
	v.get(helloGateway).want(http.StatusOK, "with a key that others in the network can read: use https")
	addModel("not a name")
	v.post(helloServers, v.form("server-id", "odd", "server-url", address)).onward().
		want(http.StatusOK, "without those whose names")
	ollama.Close()
	v.post(helloServers+"/ollama/check", v.form()).onward().
		want(http.StatusOK, "does not answer as it should", "it does not answer")
	v.post(helloServers+"/nothing/check", v.form()).want(http.StatusNotFound)
	v.get(helloServers + "/nothing/remove").want(http.StatusNotFound)
	v.get(helloServers+"/odd/remove").want(http.StatusOK, "Remove the local server odd?")
	v.post(helloServers+"/odd/remove", v.form()).onward().want(http.StatusOK, "The local server is removed").
		lacks("<bdi>odd</bdi>")
	v.get("/account/audit").want(http.StatusOK, "Local server added", "Local server removed")
}

func TestServers_SayWhatIsWrongWithTheForm(t *testing.T) {
	h := newDashboardWorld(t)
	h.allowServers()
	site := dashboardSite(t, h)
	v := signedIn(t, site, ada)
	refused := func(text, id, address string) {
		t.Helper()
		v.get(helloGateway)
		v.post(helloServers, v.form("server-id", id, "server-url", address, "server-key", "secret-x")).
			want(http.StatusUnprocessableEntity, text, `value="`+id+`"`, `value="`+address+`"`, "<title>Error:").
			lacks("secret-x")
	}
	refused("lower-case letters", "Mine", "http://localhost:1")
	refused("such as http://localhost:11434/v1", "mine", "localhost")
	refused("of a private network, such as", "mine", "http://192.0.2.1")
	for i := range gateway.MaxLocalServers {
		h.addServers(gateway.LocalServer{ID: fmt.Sprint("server", i), BaseURL: "http://localhost:1/v1", Checked: then})
	}
	refused("maximum number of local servers", "mine", "http://localhost:1")
	eve := signedIn(t, site, "eve@example.org")
	eve.get(creditPath)
	eve.post(helloServers, eve.form("server-id", "x", "server-url", "http://localhost")).want(http.StatusNotFound)
}
