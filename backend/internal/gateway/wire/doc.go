// Package wire decodes the requests of apps, encodes the requests to providers, and reads the providers' reports of
// token usage. It knows neither HTTP, nor providers, nor accounts.
//
// A field that this package does not know could spend money beyond the bound of a call, so requests are decoded with
// an allow-list and encoded again. Two parsers that read the same text differently would bypass the list, so a repeated
// name is refused.
package wire

// API is the interface by which a model is called. Requests are not translated between interfaces.
type API string

// The interfaces.
const (
	Chat      API = "chat"
	Responses API = "responses"
	Messages  API = "messages"
)

// APIs lists them.
var APIs = []API{Chat, Responses, Messages}

// Path is the path of the interface below a provider's base address.
func (a API) Path() string {
	if a == Chat {
		return "/chat/completions"
	}
	return "/" + string(a)
}
