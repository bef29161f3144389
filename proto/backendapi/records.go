package backendapi

// Routes below PathProjects + "/{project}". Agents call them with a bearer token; Routes() lists the grants that they
// require. Unknown projects and projects of other accounts both lead to not_found.
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

// Codes of errors about records.
const (
	CodeVersionConflict = "version_conflict" // 409: the record was changed since it was read
	CodeNotConfigured   = "not_configured"   // 409: the operator of this backend has not set this up
	CodeInvalidKey      = "invalid_key"      // 401: the project key is unknown or revoked
)

// Capabilities that grants control, and the levels of a grant.
const (
	CapabilityAssistant   = "assistant_config"
	CapabilityCredentials = "credentials"
	CapabilityAnalytics   = "analytics"

	LevelOff       = "off"
	LevelRead      = "read"
	LevelReadWrite = "read_write"
)

// PermissionDenied is the 403 body for a missing grant, with the level needed and the level granted. Field is set if
// the grant is for one field of the assistant's config.
type PermissionDenied struct {
	Problem
	Project    string `json:"project"`
	Capability string `json:"capability"`
	Field      string `json:"field"`
	Needed     string `json:"needed"`
	Granted    string `json:"granted"`
}

// VersionConflict is the 409 body for a change based on an outdated version of a record.
type VersionConflict struct {
	Problem
	CurrentVersion int64 `json:"currentVersion"`
}

// Access holds the agents' levels for a project's data; the assistant's config has one level per field.
type Access struct {
	AssistantConfig map[string]string `json:"assistantConfig"`
	Credentials     string            `json:"credentials"`
	Analytics       string            `json:"analytics"`
}

// Project is an app of an account. Project is its app id. Platforms is a subset of ios, android, web and desktop.
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

// ProjectList is the response to GET /api/projects, ordered by app id.
type ProjectList struct {
	Projects []Project `json:"projects"`
}

// AssistantConfig is the configuration of a project's voice assistant. TextModel is the model that apps use when they
// request "assistant" from the AI gateway; empty means the operator's default. A field hidden by the grants is null;
// Access contains the levels. Version counts changes and is 0 before the first.
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
	// Changed lists the fields whose value the change modified; it is absent in the response to a read.
	Changed []string `json:"changed,omitempty"`
}

// AssistantChoices lists the ids that this backend accepts.
type AssistantChoices struct {
	RealtimeModels []AssistantModel `json:"realtimeModels"`
	MemoryModels   []AssistantModel `json:"memoryModels"`
	Voices         []AssistantVoice `json:"voices"`
	TextModels     []TextModel      `json:"textModels"`
}

// TextModel is one model of the AI gateway. Default marks the model for projects that have not chosen one. Why is the
// reason if the model is not available now; otherwise it is null.
type TextModel struct {
	ID                 string     `json:"id"`
	Name               string     `json:"name"`
	Description        string     `json:"description"`
	Default            bool       `json:"default"`
	Why                *string    `json:"why"`
	MicroUSDPerMillion TokenPrice `json:"microUsdPerMillion"`
}

// TokenPrice is the price in micro-dollars per million tokens: for input, for input read from a cache, and for output.
type TokenPrice struct {
	In     int64 `json:"in"`
	Cached int64 `json:"cached"`
	Out    int64 `json:"out"`
}

// AssistantModel is one model. Voices lists the ids of the voices of a realtime model. The price is in micro-dollars
// per minute of conversation, or null if the operator has not set one.
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

// AssistantCost is the price with this config, in micro-dollars: per minute of conversation, per minute before the
// change in the request, and per million tokens of the text model. Null means unknown, because a price is not set or
// a field is hidden.
type AssistantCost struct {
	MicroUSDPerMinute       *int64      `json:"microUsdPerMinute"`
	BeforeMicroUSDPerMinute *int64      `json:"beforeMicroUsdPerMinute"`
	TextModel               *TokenPrice `json:"textModel"`
	BeforeTextModel         *TokenPrice `json:"beforeTextModel"`
	Note                    string      `json:"note"`
}

// AssistantChange is the body of PATCH: the version that was read and the fields to change.
type AssistantChange struct {
	Version       int64   `json:"version"`
	RealtimeModel *string `json:"realtimeModel,omitempty"`
	Voice         *string `json:"voice,omitempty"`
	MemoryModel   *string `json:"memoryModel,omitempty"`
	TextModel     *string `json:"textModel,omitempty"`
	SessionMemory *bool   `json:"sessionMemory,omitempty"`
	Sounds        *bool   `json:"sounds,omitempty"`
}

// Credential reports whether a project has its own key for a provider; it never contains the key. TestResult is ok,
// refused or unreachable.
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

// CredentialList contains every provider known to this backend.
type CredentialList struct {
	Project     string       `json:"project"`
	Credentials []Credential `json:"credentials"`
}

// CredentialLink is a page where the signed-in user can paste the secret once.
type CredentialLink struct {
	Provider  string `json:"provider"`
	URL       string `json:"url"`
	ExpiresAt string `json:"expiresAt"`
}

// Limits of a batch.
const (
	MaxBatchEvents = 500
	MaxBatchBytes  = 512 << 10
)

// AnalyticsBatch is one upload from a shipped app.
type AnalyticsBatch struct {
	Events []AnalyticsEvent `json:"events"`
}

// AnalyticsEvent is one event in an app. It counts once per ID, even if it is sent several times. Type is session
// (the start of a session), event or error; Name is the name of the event or the kind of error, at most 64 characters
// of [A-Za-z0-9._-]. At is in Unix ms. InstallID is a random id that the app creates on its first start; the backend
// stores only a hash of it, salted daily.
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

// AnalyticsAccepted is the response: each event of the batch is counted in exactly one field. A SampleRate n above 1
// means that the day's quota is used up, and that one event in n is counted, n times.
type AnalyticsAccepted struct {
	Accepted   int                 `json:"accepted"`
	Duplicates int                 `json:"duplicates"`
	Late       int                 `json:"late"`
	Sampled    int                 `json:"sampled"`
	Rejected   int                 `json:"rejected"`
	SampleRate int                 `json:"sampleRate"`
	Problems   []AnalyticsRejected `json:"problems"`
}

// AnalyticsRejected explains why an event was rejected; the response lists the first ten.
type AnalyticsRejected struct {
	Index  int    `json:"index"`
	Reason string `json:"reason"`
}

// AnalyticsReport is the activity of a shipped app between From and To (UTC, whole hours or days). ActiveInstalls of a
// point is exact for that hour or day; an install cannot be recognised on another day. Estimated reports that a quota
// was used up in the range, so counts are extrapolated from a sample.
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

// AnalyticsTotals holds sums over the range. PeakActiveInstalls is the highest number of active installs on any day.
type AnalyticsTotals struct {
	Sessions           int64 `json:"sessions"`
	Events             int64 `json:"events"`
	Errors             int64 `json:"errors"`
	PeakActiveInstalls int64 `json:"peakActiveInstalls"`
}

// AnalyticsPoint is the hour or day that starts at At. Hours and days without activity are included with zeros.
type AnalyticsPoint struct {
	At             string `json:"at"`
	Sessions       int64  `json:"sessions"`
	Events         int64  `json:"events"`
	Errors         int64  `json:"errors"`
	ActiveInstalls int64  `json:"activeInstalls"`
}

// AnalyticsCount is how often a name occurred, most frequent first: at most 20 names, with the rest under the name
// "other".
type AnalyticsCount struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
}

// ConnectionPage is the page on which an app's user connects glasses. Theme is auto, light or dark; Accent is #rrggbb.
// Version counts changes and is 0 before the first. PageURL is its URL at this backend.
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
	// Changed lists the fields whose value the change modified; it is absent in the response to a read.
	Changed []string `json:"changed,omitempty"`
}

// ConnectionPagePhrase is a phrase that the app's user can say, and its effect.
type ConnectionPagePhrase struct {
	Phrase string `json:"phrase"`
	Does   string `json:"does"`
}

// ConnectionPageToggle is a switch shown to the app's user; On is its initial state.
type ConnectionPageToggle struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	On    bool   `json:"on"`
}

// ConnectionPageChange is the body of PATCH: the version that was read and the fields to change.
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

// ConnectionPageFile is the page as one HTML file without external resources, which can be shipped with an app.
type ConnectionPageFile struct {
	Name    string `json:"name"`
	Version int64  `json:"version"`
	HTML    string `json:"html"`
	SHA256  string `json:"sha256"`
}
