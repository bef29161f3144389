// Package wire decodes the requests of apps, encodes what a provider receives, and reads what a provider reports about
// its use of tokens. It is pure: it knows neither HTTP, nor providers, nor accounts.
//
// A field that this package does not know could spend money outside of the bound of a call, so requests are decoded by
// an allow-list and encoded anew. Two parsers that read one text differently would bypass it, so a repeated name is
// refused.
package wire

// API is the interface that a model is called by. There is no translation between them.
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
