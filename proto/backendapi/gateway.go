package backendapi

// PathGatewayUsage is below a project: GET ?range, ?interval -> GatewayUsage. It requires the grant for
// FieldGatewayUsage.
const PathGatewayUsage = "/gateway/usage"

// FieldGatewayUsage is the field of CapabilityAssistant whose grant PathGatewayUsage requires.
const FieldGatewayUsage = "gatewayUsage"

// GatewayUsage is the cost of a project's calls through the AI gateway. Money is in micro-dollars, times are UTC, and
// the range consists of whole hours or days. If the grants hide the text model, the models' Resolves are null, and if
// they hide the text or the realtime model, ByModel is null. If they hide the credentials, BySource and KeySource are
// null. Refused calls count only in Refused.
type GatewayUsage struct {
	Project  string            `json:"project" check:"line=200,required"`
	Range    GatewayRange      `json:"range" check:"required"`
	Interval string            `json:"interval" check:"name=32,required"`
	Credit   GatewayCredit     `json:"credit"`
	Caps     GatewayCaps       `json:"caps"`
	Totals   GatewaySums       `json:"totals"`
	ByModel  []GatewayOfModel  `json:"byModel"`
	BySource []GatewayOfSource `json:"bySource"`
	// Series has a point for every hour or day, including those without calls.
	Series   []GatewayPoint   `json:"series" check:"required"`
	Refusals []GatewayRefusal `json:"refusals"`
	// KeySource is what pays for the next call: credit, own_key, local or script. It is none if no model is available.
	KeySource *string        `json:"keySource" check:"name=32"`
	Models    []GatewayModel `json:"models" check:"required"`
	Summary   string         `json:"summary" check:"prose=2000,required"`
}

// GatewayRange is the time from From (inclusive) to To (exclusive).
type GatewayRange struct {
	From string `json:"from" check:"time"`
	To   string `json:"to" check:"time"`
}

// GatewayCredit is the account's prepaid credit. Reserved is the part of the balance reserved for calls in flight. Free
// is the part granted without payment. Locked credit cannot be spent until the owner has confirmed the email address.
// TopUp is the URL of the page for adding credit, or null if the backend has none.
type GatewayCredit struct {
	BalanceMicroUSD  int64   `json:"balanceMicroUsd"`
	ReservedMicroUSD int64   `json:"reservedMicroUsd"`
	FreeMicroUSD     int64   `json:"freeMicroUsd"`
	Locked           bool    `json:"locked"`
	TopUp            *string `json:"topUp" check:"page"`
}

// GatewayCaps contains the spending caps of the project and its account. ProjectKeysDay is the daily allowance of calls
// with a project key alone, without the attestation of an install. Null means no limit, or that the backend does not
// report it.
type GatewayCaps struct {
	Day          *GatewayCap `json:"day"`
	Month        *GatewayCap `json:"month"`
	AccountDay   *GatewayCap `json:"accountDay"`
	AccountMonth *GatewayCap `json:"accountMonth"`

	ProjectKeysDay *GatewayCap `json:"projectKeysDay"`
}

// GatewayCap is a cap and its usage in the current day or month. Calls in flight count with their reserved amount.
type GatewayCap struct {
	LimitMicroUSD    int64  `json:"limitMicroUsd"`
	SpentMicroUSD    int64  `json:"spentMicroUsd"`
	ReservedMicroUSD int64  `json:"reservedMicroUsd"`
	ResetsAt         string `json:"resetsAt" check:"time"`
}

// GatewaySums contains totals over calls. An answer in a realtime session is a call. TextIn and AudioIn exclude the
// input tokens that the provider read from its cache, TextCached and AudioCached. Audio counts tokens of sound.
// DurationMs is the time that the calls took. Estimated is the number of calls for which the provider reported no
// usage.
type GatewaySums struct {
	Calls       int64 `json:"calls"`
	Failed      int64 `json:"failed"`
	Cancelled   int64 `json:"cancelled"`
	Refused     int64 `json:"refused"`
	Estimated   int64 `json:"estimated"`
	MicroUSD    int64 `json:"microUsd"`
	TextIn      int64 `json:"textIn"`
	TextCached  int64 `json:"textCached"`
	TextOut     int64 `json:"textOut"`
	AudioIn     int64 `json:"audioIn"`
	AudioCached int64 `json:"audioCached"`
	AudioOut    int64 `json:"audioOut"`
	DurationMs  int64 `json:"durationMs"`
}

// GatewayOfModel contains the totals of one model.
type GatewayOfModel struct {
	Model string `json:"model" check:"name=128"`
	GatewaySums
}

// GatewayOfSource contains the totals of calls paid by one source: credit, own_key, local or script.
type GatewayOfSource struct {
	Source string `json:"source" check:"name=32"`
	GatewaySums
}

// GatewayPoint contains the totals of the hour or day that begins at At.
type GatewayPoint struct {
	At       string `json:"at" check:"time"`
	Calls    int64  `json:"calls"`
	Failed   int64  `json:"failed"`
	Refused  int64  `json:"refused"`
	MicroUSD int64  `json:"microUsd"`
}

// GatewayRefusal is the number of calls refused for one reason in the last 30 days of the range. FixHint is the next
// step.
type GatewayRefusal struct {
	Code    string `json:"code" check:"name=64"`
	Count   int64  `json:"count"`
	LastAt  string `json:"lastAt" check:"time"`
	FixHint string `json:"fixHint" check:"prose=1000"`
}

// GatewayModel is a model id that apps can request. The id assistant resolves to the model in the project's settings.
// Why explains why a model is not available.
type GatewayModel struct {
	ID        string  `json:"id" check:"name=128"`
	API       *string `json:"api" check:"name=32"` // chat, responses, messages or realtime
	Resolves  *string `json:"resolves" check:"name=128"`
	Available bool    `json:"available"`
	Why       *string `json:"why" check:"prose=1000"`
}
