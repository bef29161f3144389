package usage

import "github.com/service-dev/service/internal/problem"

// Place is the page on which the owner can take the next step.
type Place string

// The places. The empty Place means none.
const (
	AtCredit   Place = "credit"   // the account's credit page
	AtSettings Place = "settings" // the account's settings
	AtCaps     Place = "caps"     // this and the next three are on the project's gateway page
	AtAttest   Place = "attest"
	AtPayer    Place = "payer"
	AtModels   Place = "models"
	AtRequests Place = "requests" // documentation of requests
)

// placeNames maps places to their names in texts for agents.
var placeNames = map[Place]string{
	AtCredit: "/account/credit of the dashboard", AtSettings: "/account/settings of the dashboard",
	AtCaps: "the project's gateway page", AtPayer: "the project's gateway page", AtAttest: "the project's gateway page",
}

// Step explains why calls were refused and what to do about it. Owners and agents read the same text.
type Step struct {
	What, Next string
	At         Place
	Tool       string // tool that an agent can help with; "" if there is none
}

// Hint returns the next step for an agent. It names the owner's page, which an agent cannot open.
func (s Step) Hint() string {
	text := s.Next
	if s.Tool != "" {
		text += " Agents: call " + s.Tool + "."
	}
	if name := placeNames[s.At]; name != "" {
		text += " The owner does this on " + name + "."
	}
	return text
}

const (
	waitABit  = "The app repeats the call after the number of seconds in Retry-After."
	badFields = "Correct the app; the error that it got names the field."
)

// steps contains every refusal that an owner or an agent can resolve.
var steps = map[string]Step{
	problem.CodeNoCredit: {What: "The credit did not cover the call.",
		Next: "Add credit, or use a local model, which costs nothing.", At: AtCredit},
	problem.CodeCreditReserved: {What: "Calls in flight had reserved the credit, or the rest of a cap.",
		Next: waitABit + " If it happens often, add credit or raise the cap.", At: AtCredit},
	problem.CodeCreditLocked: {What: "The account's e-mail address is not confirmed.",
		Next: "Confirm it, or link a sign-in provider.", At: AtSettings},
	problem.CodeCapReached: {What: "A spending cap was reached.",
		Next: "Raise the cap of this project or of the account, or wait until it resets.", At: AtCaps},
	problem.CodeAttestationRequired: {What: "The day's allowance for calls with a project key did not cover the call.",
		Next: "Have the app attest its installs, lower max_tokens, or raise the allowance.", At: AtAttest},
	problem.CodeRequestTooLarge: {What: "The credit covered only a shorter answer than the app asked for.",
		Next: "Add credit, lower max_tokens, or shorten the input.", At: AtCredit},
	problem.CodeOwnKeyMissing: {What: "The project pays with its own keys and has none for the model's provider.",
		Next: "Store a key, or let credit pay.", At: AtPayer, Tool: "setCredential"},
	problem.CodeOwnKeyRefused: {What: "The provider refused the project's own key, or its budget there is spent.",
		Next: "Test the key and replace it, or check the budget at the provider. Credit is not used instead.", At: AtPayer,
		Tool: "setCredential"},
	problem.CodeProviderUnreachable: {What: "A local model server did not answer.", Next: "Start it.", At: AtModels},
	problem.CodeForwarded: {What: "A gateway that somebody added as a local server passed a call on to this one.",
		Next: "Enter the address of the server behind it.", At: AtPayer},
	problem.CodeModelNotFound: {What: "The app asked for a model that is not available.",
		Next: "Have it ask for assistant, or for another model in the list.", At: AtModels},
	problem.CodeWrongAPI: {What: "The app called a model through an interface that the model does not have.",
		Next: "The list of models names the interface of each.", At: AtModels},
	problem.CodeUnsupportedParameter: {What: "A request had a field that the gateway does not pass on.",
		Next: "Leave the field out; the error that the app got names it.", At: AtRequests},
	problem.CodeInvalidValue: {What: "A request had a value that is not allowed.", Next: badFields, At: AtRequests},
	problem.CodeInvalidJSON:  {What: "A request was not valid JSON.", Next: badFields, At: AtRequests},
	problem.CodeNotConfigured: {What: "The operator of this backend has set up no models.",
		Next: "Ask the operator to set gateway_catalogue."},
	problem.CodeTooManyCalls: {What: "The server was busy.", Next: waitABit},
	problem.CodeUnavailable:  {What: "The gateway was not available.", Next: waitABit},
}

// StepFor returns the next step after a refusal with the code.
func StepFor(code string) Step {
	if step, ok := steps[code]; ok {
		return step
	}
	return Step{What: "The call was refused.", Next: "Follow the fix hint in the error that the app received."}
}
