// Package wire decodes requests from apps, encodes requests to providers, and parses the token usage that providers
// report. It is independent of HTTP, individual providers and accounts.
//
// An unknown field could make a call cost more than its bound, so requests are decoded with an allow-list and encoded
// again. Repeated names are refused, because two parsers might read them differently, which would bypass the list.
package wire

// API is an interface for calling models. Requests are not converted from one interface to another.
type API string

// The supported interfaces.
const (
	Chat      API = "chat"
	Responses API = "responses"
	Messages  API = "messages"
	Realtime  API = "realtime" // a WebSocket with the events of OpenAI's Realtime API
)

// APIs lists the supported interfaces whose calls are single requests.
var APIs = []API{Chat, Responses, Messages}

// Path returns the interface's path below a provider's base address.
func (a API) Path() string {
	if a == Chat {
		return "/chat/completions"
	}
	return "/" + string(a)
}

// Route returns the method and path at which this gateway serves the interface.
func (a API) Route() string {
	if a == Realtime {
		return "GET /v1" + a.Path()
	}
	return "POST /v1" + a.Path()
}
