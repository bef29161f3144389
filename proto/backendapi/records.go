package backendapi

// Routes below PathProjects + "/{project}". Agents call them with a bearer token; Routes() has the grants that they
// need. Unknown projects and those of other accounts are both not_found.
const (
	PathAssistant          = "/assistant"             // GET AssistantConfig, PATCH AssistantChange -> AssistantConfig
	PathCredentials        = "/credentials"           // GET CredentialList
	PathCredentialLink     = "/credentials/{id}/link" // POST {} -> CredentialLink
	PathAnalytics          = "/analytics"             // GET ?range or ?from&to, ?interval -> AnalyticsReport
	PathConnectionPage     = "/connection-page"       // GET ConnectionPage, PATCH ConnectionPageChange -> the same
	PathConnectionPageFile = "/connection-page/file"  // GET ConnectionPageFile
)

// PathIngest receives batches from shipped apps: POST AnalyticsBatch with Authorization: Bearer <project key>.
const PathIngest = "/api/analytics"

// Codes of refusals about records.
const (
	CodeVersionConflict = "version_conflict" // 409: the record was changed since it was read
	CodeNotConfigured   = "not_configured"   // 409: the operator of this backend has not set this up
	CodeInvalidKey      = "invalid_key"      // 401: the project key is unknown or revoked
)

// Capabilities that grants control, and their levels.
const (
	CapabilityAssistant   = "assistant_config"
	CapabilityCredentials = "credentials"
	CapabilityAnalytics   = "analytics"

	LevelOff       = "off"
	LevelRead      = "read"
	LevelReadWrite = "read_write"
)

// PermissionDenied is the 403 of a missing grant: the level needed and the level granted. Field is set if it concerns
// one field of the assistant's config.
type PermissionDenied struct {
	Problem
	Project    string `json:"project"`
	Capability string `json:"capability"`
	Field      string `json:"field"`
	Needed     string `json:"needed"`
	Granted    string `json:"granted"`
}

// VersionConflict is the 409 of a change based on an outdated version of a record.
type VersionConflict struct {
	Problem
	CurrentVersion int64 `json:"currentVersion"`
}

// Access holds the levels that agents have for a project's data; the assistant's config has one per field.
type Access struct {
	AssistantConfig map[string]string `json:"assistantConfig"`
	Credentials     string            `json:"credentials"`
	Analytics       string            `json:"analytics"`
}

// Project is an app of an account. Project is its app id; Platforms are some of ios, android, web, desktop.
type Project struct {
	Project      string   `json:"project"`
	DisplayName  string   `json:"displayName"`
	Platforms    []string `json:"platforms"`
	CreatedAt    string   `json:"createdAt"`
	LastActiveAt *string  `json:"lastActiveAt"`
	Keys         int      `json:"keys"`
	OpenSessions int      `json:"openSessions"`
	Access       Access   `json:"access"`
	DashboardURL string   `json:"dashboardUrl"`
}

// ProjectList is the answer of GET /api/projects, ordered by app id.
type ProjectList struct {
	Projects []Project `json:"projects"`
}

// AssistantConfig is the configuration of a project's voice assistant. TextModel is the model that apps get when they
// ask the AI gateway for "assistant"; empty means the operator's default. A field hidden by the grants is null; Access
// has the levels. Version counts changes, 0 before the first.
type AssistantConfig struct {
	Project       string            `json:"project"`
	Version       int64             `json:"version"`
	RealtimeModel *string           `json:"realtimeModel"`
	Voice         *string           `json:"voice"`
	MemoryModel   *string           `json:"memoryModel"`
	TextModel     *string           `json:"textModel"`
	SessionMemory *bool             `json:"sessionMemory"`
	Sounds        *bool             `json:"sounds"`
	UpdatedAt     *string           `json:"updatedAt"`
	UpdatedBy     *string           `json:"updatedBy"`
	Access        map[string]string `json:"access"`
	Choices       AssistantChoices  `json:"choices"`
	Cost          AssistantCost     `json:"cost"`
	// Changed names the fields that a change set to another value; absent in the answer to a read.
	Changed []string `json:"changed,omitempty"`
}

// AssistantChoices are the ids that this backend accepts.
type AssistantChoices struct {
	RealtimeModels []AssistantModel `json:"realtimeModels"`
	MemoryModels   []AssistantModel `json:"memoryModels"`
	Voices         []AssistantVoice `json:"voices"`
	TextModels     []TextModel      `json:"textModels"`
}

// TextModel is one model of the AI gateway. Default marks the model for projects that have chosen none. Why says why
// the model cannot be chosen now, null if it can.
type TextModel struct {
	ID                 string     `json:"id"`
	Name               string     `json:"name"`
	Description        string     `json:"description"`
	Default            bool       `json:"default"`
	Why                *string    `json:"why"`
	MicroUSDPerMillion TokenPrice `json:"microUsdPerMillion"`
}

// TokenPrice is the price of a million tokens in micro-dollars: of input, of input read from a cache, and of output.
type TokenPrice struct {
	In     int64 `json:"in"`
	Cached int64 `json:"cached"`
	Out    int64 `json:"out"`
}

// AssistantModel is one model. Voices are the ids that a realtime model can speak with. The price is in micro-dollars
// per minute of conversation, null if the operator has not set one.
type AssistantModel struct {
	ID                string   `json:"id"`
	Name              string   `json:"name"`
	Description       string   `json:"description"`
	Voices            []string `json:"voices,omitempty"`
	MicroUSDPerMinute *int64   `json:"microUsdPerMinute"`
}

// AssistantVoice is one voice.
type AssistantVoice struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
}

// AssistantCost is the price of a minute of conversation with this config in micro-dollars, and its price before the
// change that this answers; and of a million tokens of the text model. Null means unknown, because a price is not set
// or a field is hidden.
type AssistantCost struct {
	MicroUSDPerMinute       *int64      `json:"microUsdPerMinute"`
	BeforeMicroUSDPerMinute *int64      `json:"beforeMicroUsdPerMinute"`
	TextModel               *TokenPrice `json:"textModel"`
	BeforeTextModel         *TokenPrice `json:"beforeTextModel"`
	Note                    string      `json:"note"`
}

// AssistantChange is the body of PATCH: the version that was read, and the fields to change.
type AssistantChange struct {
	Version       int64   `json:"version"`
	RealtimeModel *string `json:"realtimeModel,omitempty"`
	Voice         *string `json:"voice,omitempty"`
	MemoryModel   *string `json:"memoryModel,omitempty"`
	TextModel     *string `json:"textModel,omitempty"`
	SessionMemory *bool   `json:"sessionMemory,omitempty"`
	Sounds        *bool   `json:"sounds,omitempty"`
}

// Credential reports whether a project has its own key for a provider, but never the key. TestResult is ok, refused
// or unreachable.
type Credential struct {
	Provider   string  `json:"provider"`
	Name       string  `json:"name"`
	Set        bool    `json:"set"`
	Hint       *string `json:"hint"`
	SetAt      *string `json:"setAt"`
	SetBy      *string `json:"setBy"`
	TestedAt   *string `json:"testedAt"`
	TestResult *string `json:"testResult"`
}

// CredentialList has every provider that this backend knows.
type CredentialList struct {
	Project     string       `json:"project"`
	Credentials []Credential `json:"credentials"`
}

// CredentialLink is a page on which the signed-in person pastes the secret, usable once.
type CredentialLink struct {
	Provider  string `json:"provider"`
	URL       string `json:"url"`
	ExpiresAt string `json:"expiresAt"`
}

// Bounds of a batch.
const (
	MaxBatchEvents = 500
	MaxBatchBytes  = 512 << 10
)

// AnalyticsBatch is the upload of a shipped app.
type AnalyticsBatch struct {
	Events []AnalyticsEvent `json:"events"`
}

// AnalyticsEvent is one event in an app. It counts once per ID, however often it is sent. Type is session (start of
// one), event or error; Name is the event's name or the error's kind, at most 64 characters of [A-Za-z0-9._-]. At is
// Unix ms. InstallID is random, created by the app at its first start; the backend stores only a hash with a daily
// salt.
type AnalyticsEvent struct {
	ID          string `json:"id"`
	Type        string `json:"type"`
	Name        string `json:"name,omitempty"`
	At          int64  `json:"at"`
	InstallID   string `json:"installId"`
	AppVersion  string `json:"appVersion,omitempty"`
	Platform    string `json:"platform,omitempty"`
	DeviceModel string `json:"deviceModel,omitempty"`
}

// AnalyticsAccepted is the answer: every event of the batch is in exactly one of the counts. A SampleRate n over 1
// means that the day's quota is used up and one event in n is counted, n-fold.
type AnalyticsAccepted struct {
	Accepted   int                 `json:"accepted"`
	Duplicates int                 `json:"duplicates"`
	Late       int                 `json:"late"`
	Sampled    int                 `json:"sampled"`
	Rejected   int                 `json:"rejected"`
	SampleRate int                 `json:"sampleRate"`
	Problems   []AnalyticsRejected `json:"problems"`
}

// AnalyticsRejected is the reason why an event was rejected; the first ten are listed.
type AnalyticsRejected struct {
	Index  int    `json:"index"`
	Reason string `json:"reason"`
}

// AnalyticsReport is the activity of a shipped app between From and To (UTC, whole hours or days). ActiveInstalls of
// a point is exact for that hour or day; installs cannot be followed from one day to the next. Estimated reports that
// a quota was used up in the range and counts are scaled up from a sample.
type AnalyticsReport struct {
	Project     string           `json:"project"`
	From        string           `json:"from"`
	To          string           `json:"to"`
	Interval    string           `json:"interval"`
	Totals      AnalyticsTotals  `json:"totals"`
	Series      []AnalyticsPoint `json:"series"`
	Events      []AnalyticsCount `json:"events"`
	Errors      []AnalyticsCount `json:"errors"`
	Versions    []AnalyticsCount `json:"versions"`
	Platforms   []AnalyticsCount `json:"platforms"`
	Devices     []AnalyticsCount `json:"devices"`
	Estimated   bool             `json:"estimated"`
	Approximate []string         `json:"approximate"`
	Reading     string           `json:"reading"`
}

// AnalyticsTotals are sums over the range. PeakActiveInstalls is the highest number of active installs of a day.
type AnalyticsTotals struct {
	Sessions           int64 `json:"sessions"`
	Events             int64 `json:"events"`
	Errors             int64 `json:"errors"`
	PeakActiveInstalls int64 `json:"peakActiveInstalls"`
}

// AnalyticsPoint is one hour or day; At is its start. Hours and days without activity are included as zeros.
type AnalyticsPoint struct {
	At             string `json:"at"`
	Sessions       int64  `json:"sessions"`
	Events         int64  `json:"events"`
	Errors         int64  `json:"errors"`
	ActiveInstalls int64  `json:"activeInstalls"`
}

// AnalyticsCount is the frequency of a name, the most frequent first; at most 20, the rest as name "other".
type AnalyticsCount struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
}

// ConnectionPage is the page on which an app's user connects glasses. Theme is auto, light or dark; Accent is
// #rrggbb. Version counts changes, 0 before the first. PageURL is its address at this backend.
type ConnectionPage struct {
	Project      string                 `json:"project"`
	Version      int64                  `json:"version"`
	Title        string                 `json:"title"`
	Description  string                 `json:"description"`
	Theme        string                 `json:"theme"`
	Accent       string                 `json:"accent"`
	Capabilities []string               `json:"capabilities"`
	Phrases      []ConnectionPagePhrase `json:"phrases"`
	Toggles      []ConnectionPageToggle `json:"toggles"`
	SupportURL   string                 `json:"supportUrl"`
	PrivacyURL   string                 `json:"privacyUrl"`
	PageURL      string                 `json:"pageUrl"`
	UpdatedAt    *string                `json:"updatedAt"`
	UpdatedBy    *string                `json:"updatedBy"`
	// Changed names the fields that a change set to another value; absent in the answer to a read.
	Changed []string `json:"changed,omitempty"`
}

// ConnectionPagePhrase is something that the app's user can say, and what it does.
type ConnectionPagePhrase struct {
	Phrase string `json:"phrase"`
	Does   string `json:"does"`
}

// ConnectionPageToggle is a switch that the app's user sees; On is its initial state.
type ConnectionPageToggle struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	On    bool   `json:"on"`
}

// ConnectionPageChange is the body of PATCH: the version that was read, and the fields to change.
type ConnectionPageChange struct {
	Version      int64                   `json:"version"`
	Title        *string                 `json:"title,omitempty"`
	Description  *string                 `json:"description,omitempty"`
	Theme        *string                 `json:"theme,omitempty"`
	Accent       *string                 `json:"accent,omitempty"`
	Capabilities *[]string               `json:"capabilities,omitempty"`
	Phrases      *[]ConnectionPagePhrase `json:"phrases,omitempty"`
	Toggles      *[]ConnectionPageToggle `json:"toggles,omitempty"`
	SupportURL   *string                 `json:"supportUrl,omitempty"`
	PrivacyURL   *string                 `json:"privacyUrl,omitempty"`
}

// ConnectionPageFile is the page as one HTML file without external resources, to be shipped with an app.
type ConnectionPageFile struct {
	Name    string `json:"name"`
	Version int64  `json:"version"`
	HTML    string `json:"html"`
	SHA256  string `json:"sha256"`
}
