package web

import (
	"github.com/service-dev/service/backend/internal/gateway"
	"github.com/service-dev/service/backend/internal/gateway/wire"
)

// refusalText says why calls were refused and what the owner does next; the link may be empty.
type refusalText struct{ What, Next, Href, Label string }

const (
	pageCredit  = creditPath + "#topup"
	pageModels  = "#models"
	pageCaps    = "#caps"
	pagePayer   = "#payer"
	pageRequest = "/docs/managed-gateway#requests"
)

var refusalTexts = map[string]refusalText{
	gateway.CodeNoCredit: {"The credit did not cover the call.", "Add credit.", pageCredit, "Credit"},
	gateway.CodeCreditReserved: {"Calls in flight had reserved the credit.",
		"It passes by itself. If it happens often, add credit.", pageCredit, "Credit"},
	gateway.CodeCreditLocked: {"The account's mail address is not confirmed.", "Confirm it, or link a sign-in provider.",
		settingsPath, "Settings"},
	gateway.CodeCapReached: {"A spending cap was reached.",
		"Raise the cap of this project or of the account, or wait until it resets.", pageCaps, "Caps"},
	gateway.CodeRequestTooLarge: {"The credit covered only a shorter answer than the app asked for.",
		"Add credit, or have the app ask for fewer tokens.", pageCredit, "Credit"},
	gateway.CodeOwnKeyMissing: {"Own keys pay, and the project has none for the model's provider.",
		"Store a key, or let credit pay.", pagePayer, "What pays"},
	gateway.CodeOwnKeyRefused: {"The provider refused the project's own key, or its budget there is spent.",
		"Test the key and replace it, or look at your budget at the provider. Credit does not stand in.", pagePayer,
		"What pays"},
	gateway.CodeProviderUnreachable: {"A local server of models did not answer.", "Start it.", pageModels, "Models"},
	gateway.CodeModelNotFound: {"The app asked for a model that is not available.",
		"Have it ask for assistant or for a model of the list below.", pageModels, "Models"},
	gateway.CodeWrongAPI: {"The app called a model by another interface than the model has.",
		"The list below names the interface of each model.", pageModels, "Models"},
	wire.UnsupportedParameter: {"A request had a field that the gateway does not pass on.",
		"Leave the field out; the error names it.", pageRequest, "Requests"},
	wire.InvalidValue: {"A request had a value that is not allowed.", "Correct it; the error names the field.", pageRequest,
		"Requests"},
	wire.InvalidJSON: {"A request was not valid JSON.", "Correct the app; the error says what is wrong.", pageRequest,
		"Requests"},
	gateway.CodeNotConfigured: {"The operator of this backend has set up no models.", "Ask the operator.", "", ""},
	gateway.CodeTooManyCalls:  {"The server was busy.", "The app can try again.", "", ""},
	gateway.CodeUnavailable:   {"The gateway was not available.", "The app can try again.", "", ""},
}

func refusalTextOf(code string) refusalText {
	if text, ok := refusalTexts[code]; ok {
		return text
	}
	return refusalText{What: "The call was refused.", Next: "The error that the app got says what to do."}
}
