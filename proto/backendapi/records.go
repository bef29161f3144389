package backendapi

// Routes below PathProjects + "/{project}". Agents call them with a bearer token; which of them need a grant, and which
// level, is the backend's table. Unknown projects and those of other accounts are not_found alike.
const (
	PathAssistant          = "/assistant"             // GET AssistantConfig, PATCH AssistantChange -> AssistantConfig
	PathCredentials        = "/credentials"           // GET CredentialList
	PathCredentialLink     = "/credentials/{id}/link" // POST {} -> CredentialLink
	PathAnalytics          = "/analytics"             // GET ?range or ?from&to, ?interval -> AnalyticsReport
	PathConnectionPage     = "/connection-page"       // GET ConnectionPage, PATCH ConnectionPageChange -> ConnectionPage
	PathConnectionPageFile = "/connection-page/file"  // GET ConnectionPageFile
)

// PathIngest takes batches of shipped apps: POST AnalyticsBatch with Authorization: Bearer <project key>.
const PathIngest = "/api/analytics"

// Codes of the records' refusals.
const (
	CodeVersionConflict = "version_conflict" // 409: somebody changed the record since it was read
	CodeNotConfigured   = "not_configured"   // 409: the operator of this backend has not set this up
	CodeInvalidKey      = "invalid_key"      // 401: the project key is unknown or revoked
)

// Capabilities that grants govern, and their levels.
const (
	CapabilityAssistant   = "assistant_config"
	CapabilityCredentials = "credentials"
	CapabilityAnalytics   = "analytics"

	LevelOff       = "off"
	LevelRead      = "read"
	LevelReadWrite = "read_write"
)

// PermissionDenied is the 403 of a grant: what was needed, and what the account grants. Field is empty unless one field
// of the assistant's config is meant.
type PermissionDenied struct {
	Problem
	Project    string `json:"project"`
	Capability string `json:"capability"`
	Field      string `json:"field"`
	Needed     string `json:"needed"`
	Granted    string `json:"granted"`
}

// VersionConflict is the 409 of a change to a record that is no longer the version that was read.
type VersionConflict struct {
	Problem
	CurrentVersion int64 `json:"currentVersion"`
}

// Access is what agents may do with a project's data, as levels; the assistant's config has one for each field.
type Access struct {
	AssistantConfig map[string]string `json:"assistantConfig"`
	Credentials     string            `json:"credentials"`
	Analytics       string            `json:"analytics"`
}

// Project is an app that an account builds. Project is its app id; Platforms are of ios, android, web, desktop.
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

// ProjectList is the answer of GET /api/projects, by app id.
type ProjectList struct {
	Projects []Project `json:"projects"`
}

// AssistantConfig is how a project's voice assistant is set. A field that the grants hide is null; Access tells why.
// Version counts changes, 0 before the first.
type AssistantConfig struct {
	Project       string            `json:"project"`
	Version       int64             `json:"version"`
	RealtimeModel *string           `json:"realtimeModel"`
	Voice         *string           `json:"voice"`
	MemoryModel   *string           `json:"memoryModel"`
	SessionMemory *bool             `json:"sessionMemory"`
	Sounds        *bool             `json:"sounds"`
	UpdatedAt     *string           `json:"updatedAt"`
	UpdatedBy     *string           `json:"updatedBy"`
	Access        map[string]string `json:"access"`
	Choices       AssistantChoices  `json:"choices"`
	Cost          AssistantCost     `json:"cost"`
}

// AssistantChoices are the ids that this backend takes.
type AssistantChoices struct {
	RealtimeModels []AssistantModel `json:"realtimeModels"`
	MemoryModels   []AssistantModel `json:"memoryModels"`
	Voices         []AssistantVoice `json:"voices"`
}

// AssistantModel is one choice. Voices are the ids it can speak with, of realtime models only. The price is in
// micro-dollars for a minute of conversation, null while the operator has set none.
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

// AssistantCost is what a minute of conversation costs with this config, in micro-dollars, and before the change that
// this answers. Null: not known, because a price is not set or a field is hidden.
type AssistantCost struct {
	MicroUSDPerMinute       *int64 `json:"microUsdPerMinute"`
	BeforeMicroUSDPerMinute *int64 `json:"beforeMicroUsdPerMinute"`
	Note                    string `json:"note"`
}

// AssistantChange is the body of PATCH: the version that was read, and only the fields to change.
type AssistantChange struct {
	Version       int64   `json:"version"`
	RealtimeModel *string `json:"realtimeModel,omitempty"`
	Voice         *string `json:"voice,omitempty"`
	MemoryModel   *string `json:"memoryModel,omitempty"`
	SessionMemory *bool   `json:"sessionMemory,omitempty"`
	Sounds        *bool   `json:"sounds,omitempty"`
}

// Credential tells whether a project's own key of a provider is set. Its value is never told. TestResult is ok,
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

// CredentialList is every provider that this backend knows.
type CredentialList struct {
	Project     string       `json:"project"`
	Credentials []Credential `json:"credentials"`
}

// CredentialLink is a page on which the signed-in person pastes the secret, once.
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

// AnalyticsBatch is what a shipped app sends; at most MaxBatchEvents and MaxBatchBytes.
type AnalyticsBatch struct {
	Events []AnalyticsEvent `json:"events"`
}

// AnalyticsEvent is one thing that happened in an app. ID makes it count once, however often it is sent. Type is
// session (one began), event or error; Name is the event's name or the error's kind, at most 64 characters of
// [A-Za-z0-9._-]. At is Unix ms. InstallID is random, made by the app at its first start; it is hashed with a salt of
// the day and not kept.
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

// AnalyticsAccepted is the answer: every event of the batch is in exactly one of the counts. SampleRate n over 1 says
// that one event in n is counted, n-fold, because the day's quota is used up.
type AnalyticsAccepted struct {
	Accepted   int                 `json:"accepted"`
	Duplicates int                 `json:"duplicates"`
	Late       int                 `json:"late"`
	Sampled    int                 `json:"sampled"`
	Rejected   int                 `json:"rejected"`
	SampleRate int                 `json:"sampleRate"`
	Problems   []AnalyticsRejected `json:"problems"`
}

// AnalyticsRejected says why an event was not taken; the first ten are told.
type AnalyticsRejected struct {
	Index  int    `json:"index"`
	Reason string `json:"reason"`
}

// AnalyticsReport is what a shipped app did between From and To (UTC, ends of hours or days). ActiveInstalls of a
// point is exact for that hour or day; installs cannot be followed from one day to the next. Estimated says that
// a quota was used up in the range and counts of it are scaled up from a sample.
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

// AnalyticsTotals are sums over the range. PeakActiveInstalls is the most active installs of one day.
type AnalyticsTotals struct {
	Sessions           int64 `json:"sessions"`
	Events             int64 `json:"events"`
	Errors             int64 `json:"errors"`
	PeakActiveInstalls int64 `json:"peakActiveInstalls"`
}

// AnalyticsPoint is one hour or day, at its beginning. Hours and days without anything are there, as zeros.
type AnalyticsPoint struct {
	At             string `json:"at"`
	Sessions       int64  `json:"sessions"`
	Events         int64  `json:"events"`
	Errors         int64  `json:"errors"`
	ActiveInstalls int64  `json:"activeInstalls"`
}

// AnalyticsCount is how often something came up, the most frequent first; at most 20, the rest as name "other".
type AnalyticsCount struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
}

// ConnectionPage is the page on which an app's user connects glasses. Theme is auto, light or dark; Accent is #rrggbb.
// Version counts changes, 0 before the first. PageURL is where this backend hosts it.
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
}

// ConnectionPagePhrase is something that the app's user can say, and what it does.
type ConnectionPagePhrase struct {
	Phrase string `json:"phrase"`
	Does   string `json:"does"`
}

// ConnectionPageToggle is a switch that the app's user sees; On is its state at first.
type ConnectionPageToggle struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	On    bool   `json:"on"`
}

// ConnectionPageChange is the body of PATCH: the version that was read, and only the fields to change.
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

// ConnectionPageFile is the page as one HTML file without outside resources, to be shipped with an app.
type ConnectionPageFile struct {
	Name    string `json:"name"`
	Version int64  `json:"version"`
	HTML    string `json:"html"`
	SHA256  string `json:"sha256"`
}
