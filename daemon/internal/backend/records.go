package backend

// The records of an account as a backend keeps them, and the changes to them. Their names in JSON are those of
// proto/backendapi, which pluginhost's tests hold them against. Times are RFC 3339 texts, passed on as they came.

// Words of a Problem's Capability and of its Needed and Granted.
const (
	CapabilityAssistant   = "assistant_config"
	CapabilityCredentials = "credentials"
	CapabilityAnalytics   = "analytics"

	LevelOff       = "off"
	LevelRead      = "read"
	LevelReadWrite = "read_write"
)

// Access is what agents may do with a project's data, as levels; the assistant's config has one for each field.
type Access struct {
	AssistantConfig map[string]string `json:"assistantConfig"`
	Credentials     string            `json:"credentials"`
	Analytics       string            `json:"analytics"`
}

// Project is an app that the linked account builds. ID is its app id.
type Project struct {
	ID           string   `json:"project"`
	DisplayName  string   `json:"displayName"`
	Platforms    []string `json:"platforms"`
	CreatedAt    string   `json:"createdAt"`
	LastActiveAt *string  `json:"lastActiveAt"`
	Keys         int      `json:"keys"`
	OpenSessions int      `json:"openSessions"`
	Access       Access   `json:"access"`
	DashboardURL string   `json:"dashboardUrl"`
}

// AssistantConfig is how a project's voice assistant is set. A field that the grants hide is nil; Access tells why.
type AssistantConfig struct {
	Project       string            `json:"project"`
	Version       int64             `json:"version"` // counts changes
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

// AssistantChoices are the ids that the backend takes.
type AssistantChoices struct {
	RealtimeModels []AssistantModel `json:"realtimeModels"`
	MemoryModels   []AssistantModel `json:"memoryModels"`
	Voices         []AssistantVoice `json:"voices"`
}

// AssistantModel is one choice; the price is in micro-dollars a minute, nil while none is set.
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

// AssistantCost is what a minute of conversation costs, in micro-dollars, now and before a change. Nil: not known.
type AssistantCost struct {
	MicroUSDPerMinute       *int64 `json:"microUsdPerMinute"`
	BeforeMicroUSDPerMinute *int64 `json:"beforeMicroUsdPerMinute"`
	Note                    string `json:"note"`
}

// AssistantChange changes the fields that are not nil, of the version that was read.
type AssistantChange struct {
	Version       int64   `json:"version"`
	RealtimeModel *string `json:"realtimeModel,omitempty"`
	Voice         *string `json:"voice,omitempty"`
	MemoryModel   *string `json:"memoryModel,omitempty"`
	SessionMemory *bool   `json:"sessionMemory,omitempty"`
	Sounds        *bool   `json:"sounds,omitempty"`
}

// Credential tells whether a project's own key of a provider is set; its value is never told.
type Credential struct {
	Provider   string  `json:"provider"`
	Name       string  `json:"name"`
	Set        bool    `json:"set"`
	Hint       *string `json:"hint"`
	SetAt      *string `json:"setAt"`
	SetBy      *string `json:"setBy"`
	TestedAt   *string `json:"testedAt"`
	TestResult *string `json:"testResult"` // ok, refused or unreachable
}

// CredentialList is every provider that the backend knows.
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

// AnalyticsQuery chooses what a report is about; empty fields are the backend's to choose. Range excludes From and To,
// which are RFC 3339.
type AnalyticsQuery struct {
	Range, From, To, Interval string
}

// AnalyticsReport is what a shipped app did between From and To.
type AnalyticsReport struct {
	Project     string           `json:"project"`
	From        string           `json:"from"`
	To          string           `json:"to"`
	Interval    string           `json:"interval"` // hour or day
	Totals      AnalyticsTotals  `json:"totals"`
	Series      []AnalyticsPoint `json:"series"`
	Events      []AnalyticsCount `json:"events"`
	Errors      []AnalyticsCount `json:"errors"`
	Versions    []AnalyticsCount `json:"versions"`
	Platforms   []AnalyticsCount `json:"platforms"`
	Devices     []AnalyticsCount `json:"devices"`
	Estimated   bool             `json:"estimated"` // some counts are scaled up from a sample
	Approximate []string         `json:"approximate"`
	Reading     string           `json:"reading"`
}

// AnalyticsTotals are sums over the range; PeakActiveInstalls is the most of one day.
type AnalyticsTotals struct {
	Sessions           int64 `json:"sessions"`
	Events             int64 `json:"events"`
	Errors             int64 `json:"errors"`
	PeakActiveInstalls int64 `json:"peakActiveInstalls"`
}

// AnalyticsPoint is one hour or day, at its beginning.
type AnalyticsPoint struct {
	At             string `json:"at"`
	Sessions       int64  `json:"sessions"`
	Events         int64  `json:"events"`
	Errors         int64  `json:"errors"`
	ActiveInstalls int64  `json:"activeInstalls"`
}

// AnalyticsCount is how often something came up.
type AnalyticsCount struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
}

// ConnectionPage is the page on which an app's user connects glasses.
type ConnectionPage struct {
	Project      string                 `json:"project"`
	Version      int64                  `json:"version"` // counts changes
	Title        string                 `json:"title"`
	Description  string                 `json:"description"`
	Theme        string                 `json:"theme"`  // auto, light or dark
	Accent       string                 `json:"accent"` // #rrggbb
	Capabilities []string               `json:"capabilities"`
	Phrases      []ConnectionPagePhrase `json:"phrases"`
	Toggles      []ConnectionPageToggle `json:"toggles"`
	SupportURL   string                 `json:"supportUrl"`
	PrivacyURL   string                 `json:"privacyUrl"`
	PageURL      string                 `json:"pageUrl"` // where the backend hosts it
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

// ConnectionPageChange changes the fields that are not nil, of the version that was read.
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
	SHA256  string `json:"sha256"` // of HTML, lower-case hex
}
