package backendapi

// PathGatewayUsage below a project: GET ?range, ?interval -> GatewayUsage, by the grant of the field gatewayUsage of
// CapabilityAssistant.
const PathGatewayUsage = "/gateway/usage"

// FieldGatewayUsage is the field of CapabilityAssistant whose grant PathGatewayUsage needs.
const FieldGatewayUsage = "gatewayUsage"

// GatewayUsage is the cost of a project's calls through the AI gateway. Money is in micro-dollars, times are UTC, and
// the range is of whole hours or days. ByModel, and Resolves of the models, are null if the grants hide the text model;
// BySource and KeySource are if they hide the credentials. Refused calls count in Refused only.
type GatewayUsage struct {
	Project  string            `json:"project"`
	Range    GatewayRange      `json:"range"`
	Interval string            `json:"interval"`
	Credit   GatewayCredit     `json:"credit"`
	Caps     GatewayCaps       `json:"caps"`
	Totals   GatewaySums       `json:"totals"`
	ByModel  []GatewayOfModel  `json:"byModel"`
	BySource []GatewayOfSource `json:"bySource"`
	// Series has a point for each hour or day, also for those without calls.
	Series   []GatewayPoint   `json:"series"`
	Refusals []GatewayRefusal `json:"refusals"`
	// KeySource is what pays for the next call: credit, own_key, local or script; none if no model is available.
	KeySource *string        `json:"keySource"`
	Models    []GatewayModel `json:"models"`
	Summary   string         `json:"summary"`
}

// GatewayRange is from a time until before another.
type GatewayRange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// GatewayCredit is the account's prepaid credit. Reserved is the part of the balance that calls in flight hold, Free
// what was granted for nothing. Locked credit cannot be spent before the owner has proved the mail address. TopUp is
// the page where the owner pays in, or null if the backend has none.
type GatewayCredit struct {
	BalanceMicroUSD  int64   `json:"balanceMicroUsd"`
	ReservedMicroUSD int64   `json:"reservedMicroUsd"`
	FreeMicroUSD     int64   `json:"freeMicroUsd"`
	Locked           bool    `json:"locked"`
	TopUp            *string `json:"topUp"`
}

// GatewayCaps are the spending caps of the project and of its account; null does not limit.
type GatewayCaps struct {
	Day          *GatewayCap `json:"day"`
	Month        *GatewayCap `json:"month"`
	AccountDay   *GatewayCap `json:"accountDay"`
	AccountMonth *GatewayCap `json:"accountMonth"`
}

// GatewayCap is a cap and its usage in the current day or month. Calls in flight count with their reserved amount.
type GatewayCap struct {
	LimitMicroUSD    int64  `json:"limitMicroUsd"`
	SpentMicroUSD    int64  `json:"spentMicroUsd"`
	ReservedMicroUSD int64  `json:"reservedMicroUsd"`
	ResetsAt         string `json:"resetsAt"`
}

// GatewaySums add up calls. TextIn excludes TextCached, the input tokens that were read from the provider's cache.
// Estimated calls are those of which the provider reported no usage.
type GatewaySums struct {
	Calls      int64 `json:"calls"`
	Failed     int64 `json:"failed"`
	Cancelled  int64 `json:"cancelled"`
	Refused    int64 `json:"refused"`
	Estimated  int64 `json:"estimated"`
	MicroUSD   int64 `json:"microUsd"`
	TextIn     int64 `json:"textIn"`
	TextCached int64 `json:"textCached"`
	TextOut    int64 `json:"textOut"`
}

// GatewayOfModel are the sums of a model.
type GatewayOfModel struct {
	Model string `json:"model"`
	GatewaySums
}

// GatewayOfSource are the sums of calls that one source paid: credit, own_key, local or script.
type GatewayOfSource struct {
	Source string `json:"source"`
	GatewaySums
}

// GatewayPoint are the sums of an hour or a day, which begins At.
type GatewayPoint struct {
	At       string `json:"at"`
	Calls    int64  `json:"calls"`
	Failed   int64  `json:"failed"`
	Refused  int64  `json:"refused"`
	MicroUSD int64  `json:"microUsd"`
}

// GatewayRefusal counts calls that were refused for one reason, in the last 30 days of the range. FixHint is the next
// step.
type GatewayRefusal struct {
	Code    string `json:"code"`
	Count   int64  `json:"count"`
	LastAt  string `json:"lastAt"`
	FixHint string `json:"fixHint"`
}

// GatewayModel is an id that apps can ask for. The id assistant resolves to the model of the project's settings. Why is
// the reason for which a model is not available.
type GatewayModel struct {
	ID        string  `json:"id"`
	API       *string `json:"api"` // chat, responses or messages
	Resolves  *string `json:"resolves"`
	Available bool    `json:"available"`
	Why       *string `json:"why"`
}
