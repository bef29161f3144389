package backendapi

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
)

// Routes below PathProjects + "/{project}". Agents call them with a bearer token. Routes() lists the grants that they
// require. Unknown projects and projects of other accounts both lead to not_found.
const (
	PathAssistant          = "/assistant"             // GET AssistantConfig, PATCH AssistantChange -> AssistantConfig
	PathCredentials        = "/credentials"           // GET CredentialList
	PathCredentialLink     = "/credentials/{id}/link" // POST {} -> CredentialLink
	PathAnalytics          = "/analytics"             // GET ?range or ?from&to, ?interval -> AnalyticsReport
	PathConnectionPage     = "/connection-page"       // GET ConnectionPage, PATCH ConnectionPageChange -> the same
	PathConnectionPageFile = "/connection-page/file"  // GET ConnectionPageFile
)

// PathIngest receives batches from published apps: POST AnalyticsBatch with Authorization: Bearer <project key>.
const PathIngest = "/api/analytics"

// Capabilities that grants control, and the levels of a grant.
const (
	CapabilityAssistant   = "assistant_config"
	CapabilityCredentials = "credentials"
	CapabilityAnalytics   = "analytics"

	LevelOff       = "off"
	LevelRead      = "read"
	LevelReadWrite = "read_write"
)

// PermissionDenied is the 403 body for a missing grant, with the needed and the granted level. Field is set if the
// grant is for one field of the assistant's config.
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

// Access contains the agents' levels for a project's data. The assistant's config has one level per field.
type Access struct {
	AssistantConfig map[string]string `json:"assistantConfig" check:"name=64"`
	Credentials     string            `json:"credentials" check:"name=64"`
	Analytics       string            `json:"analytics" check:"name=64"`
}

// Project is an app of an account. Its field Project is the app id. Platforms is a subset of ios, android, web and
// desktop.
type Project struct {
	Project      string   `json:"project" check:"line=200,required"`
	DisplayName  string   `json:"displayName" check:"line=200"`
	Platforms    []string `json:"platforms" check:"name=64"`
	CreatedAt    string   `json:"createdAt" check:"time,required"`
	LastActiveAt *string  `json:"lastActiveAt" check:"time"`
	Keys         int      `json:"keys"`
	OpenSessions int      `json:"openSessions"`
	Access       Access   `json:"access"`
	DashboardURL string   `json:"dashboardUrl" check:"page"`
}

// ProjectList is the response to GET /api/projects, ordered by app id.
type ProjectList struct {
	Projects []Project `json:"projects" check:"required"`
}

// AssistantConfig is the configuration of a project's voice assistant. TextModel is the model for requests for
// "assistant" to the AI gateway; empty means the operator's default. A field hidden by the grants is null. Access
// contains the levels. Version is the number of changes.
type AssistantConfig struct {
	Project       string  `json:"project" check:"line=200,required"`
	Version       int64   `json:"version" check:"unsigned"`
	RealtimeModel *string `json:"realtimeModel" check:"name=128"`
	Voice         *string `json:"voice" check:"name=128"`
	MemoryModel   *string `json:"memoryModel" check:"name=128"`
	TextModel     *string `json:"textModel" check:"name=128"`
	SessionMemory *bool   `json:"sessionMemory"`
	Sounds        *bool   `json:"sounds"`
	UpdatedAt     *string `json:"updatedAt" check:"time"`
	UpdatedBy     *string `json:"updatedBy" check:"line=200"`
	// Effective lists the settings that have an effect on this backend. It is absent if a backend knows no realtime
	// models.
	Effective []string          `json:"effective" check:"name=64"`
	Access    map[string]string `json:"access" check:"name=64,required"`
	Choices   AssistantChoices  `json:"choices"`
	Cost      AssistantCost     `json:"cost"`
	// Memory is how much is remembered about the users of the project's apps. It is null if the grants hide MemoryModel,
	// and for a backend that remembers nothing.
	Memory *AssistantMemory `json:"memory"`
	// Changed lists the fields whose value the change modified. It is absent in the response to a read.
	Changed []string `json:"changed,omitempty" check:"name=64"`
}

// AssistantMemory counts the users about whom something is remembered. Oldest is when the first of them was remembered,
// or null if there is none. What is remembered about a user is deleted after Days without a conversation.
type AssistantMemory struct {
	Profiles int64   `json:"profiles" check:"unsigned"`
	Oldest   *string `json:"oldest" check:"time"`
	Days     int64   `json:"days" check:"unsigned"`
}

// AssistantChoices lists the ids that this backend accepts.
type AssistantChoices struct {
	RealtimeModels []AssistantModel `json:"realtimeModels" check:"required"`
	MemoryModels   []MemoryModel    `json:"memoryModels" check:"required"`
	Voices         []AssistantVoice `json:"voices" check:"required"`
	TextModels     []TextModel      `json:"textModels"`
}

// TextModel is a model of the AI gateway. Default marks the model for projects that have not chosen one. Why explains
// why the model is not available now; otherwise it is null.
type TextModel struct {
	ID                 string     `json:"id" check:"name=128"`
	Name               string     `json:"name" check:"line=200"`
	Description        string     `json:"description" check:"prose=4000"`
	Default            bool       `json:"default"`
	Why                *string    `json:"why" check:"prose=1000"`
	MicroUSDPerMillion TokenPrice `json:"microUsdPerMillion"`
}

// TokenPrice contains the prices per million tokens in micro-dollars: for input, for input read from a cache, and for
// output.
type TokenPrice struct {
	In     int64 `json:"in"`
	Cached int64 `json:"cached"`
	Out    int64 `json:"out"`
}

// AssistantModel is a realtime model. Voices lists the ids of the voices it can speak with, and Why is the reason why
// it is not available now, or null. The operator's price is in micro-dollars per minute of conversation, or null if the
// operator has not set one. Sound is null if the gateway has no such model.
type AssistantModel struct {
	ID                string      `json:"id" check:"name=128"`
	Name              string      `json:"name" check:"line=200"`
	Description       string      `json:"description" check:"prose=4000"`
	Voices            []string    `json:"voices,omitempty" check:"name=128"`
	MicroUSDPerMinute *int64      `json:"microUsdPerMinute"`
	Why               *string     `json:"why" check:"prose=1000"`
	Sound             *SoundPrice `json:"microUsdPerMinuteOfSound"`
}

// SoundPrice contains estimates of the gateway's price in micro-dollars: for a minute of sound that a model hears, and
// that it speaks.
type SoundPrice struct {
	In  int64 `json:"in"`
	Out int64 `json:"out"`
}

// MemoryModel is a way to remember conversations. The price is like an AssistantModel's.
type MemoryModel struct {
	ID                string `json:"id" check:"name=128"`
	Name              string `json:"name" check:"line=200"`
	Description       string `json:"description" check:"prose=4000"`
	MicroUSDPerMinute *int64 `json:"microUsdPerMinute"`
}

// AssistantVoice is a voice of an assistant.
type AssistantVoice struct {
	ID          string `json:"id" check:"name=128"`
	Name        string `json:"name" check:"line=200"`
	Description string `json:"description" check:"prose=4000"`
}

// AssistantCost is the price with this config in micro-dollars: per minute of conversation by the operator's estimate,
// per minute of the realtime model's sound, and per million tokens of the text model; and each before the change in the
// request. Null means unknown, because a price is not set or a
// field is hidden.
type AssistantCost struct {
	MicroUSDPerMinute       *int64      `json:"microUsdPerMinute"`
	BeforeMicroUSDPerMinute *int64      `json:"beforeMicroUsdPerMinute"`
	TextModel               *TokenPrice `json:"textModel"`
	BeforeTextModel         *TokenPrice `json:"beforeTextModel"`
	RealtimeModel           *SoundPrice `json:"realtimeModel"`
	BeforeRealtimeModel     *SoundPrice `json:"beforeRealtimeModel"`
	Note                    string      `json:"note" check:"prose=1000"`
}

// AssistantChange is the body of PATCH. It contains the version that was read and the fields to change.
type AssistantChange struct {
	Version       int64   `json:"version"`
	RealtimeModel *string `json:"realtimeModel,omitempty"`
	Voice         *string `json:"voice,omitempty"`
	MemoryModel   *string `json:"memoryModel,omitempty"`
	TextModel     *string `json:"textModel,omitempty"`
	SessionMemory *bool   `json:"sessionMemory,omitempty"`
	Sounds        *bool   `json:"sounds,omitempty"`
}

// Credential reports whether a project has its own key for a provider. It never contains the key. TestResult is ok,
// refused or unreachable.
type Credential struct {
	Provider   string  `json:"provider" check:"name=64,required"`
	Name       string  `json:"name" check:"line=200"`
	Set        bool    `json:"set"`
	Hint       *string `json:"hint" check:"line=64"`
	SetAt      *string `json:"setAt" check:"time"`
	SetBy      *string `json:"setBy" check:"line=200"`
	TestedAt   *string `json:"testedAt" check:"time"`
	TestResult *string `json:"testResult" check:"name=32"`
}

// CredentialList contains every provider that this backend supports.
type CredentialList struct {
	Project     string       `json:"project" check:"line=200,required"`
	Credentials []Credential `json:"credentials" check:"required"`
}

// CredentialLink is a page on which the signed-in user can paste the secret once.
type CredentialLink struct {
	Provider  string `json:"provider" check:"name=64,required"`
	URL       string `json:"url" check:"page,required"`
	ExpiresAt string `json:"expiresAt" check:"time,required"`
}

// Limits of a batch.
const (
	MaxBatchEvents = 500
	MaxBatchBytes  = 512 << 10
)

// AnalyticsBatch is one upload from a published app.
type AnalyticsBatch struct {
	Events []AnalyticsEvent `json:"events"`
}

// AnalyticsEvent is one event in an app. It counts once per ID, even if it is sent several times. Type is session (the
// start of a session), event or error. Name is the name of the event or the kind of error, at most 64 characters of
// [A-Za-z0-9._-]. At is in Unix ms. InstallID is a random id that the app creates on its first start. The backend
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

// AnalyticsAccepted is the response to a batch. Each event of the batch is counted in exactly one field. A SampleRate n
// above 1 means that the day's quota is used up, and that one event in n is counted, n times.
type AnalyticsAccepted struct {
	Accepted   int                 `json:"accepted"`
	Duplicates int                 `json:"duplicates"`
	Late       int                 `json:"late"`
	Sampled    int                 `json:"sampled"`
	Rejected   int                 `json:"rejected"`
	SampleRate int                 `json:"sampleRate"`
	Problems   []AnalyticsRejected `json:"problems"`
}

// AnalyticsRejected explains why an event was rejected. The response lists the first ten.
type AnalyticsRejected struct {
	Index  int    `json:"index"`
	Reason string `json:"reason"`
}

// AnalyticsReport is the activity of a published app between From and To (UTC, whole hours or days). ActiveInstalls of
// a point is exact for that hour or day, because an install cannot be recognised on another day. Estimated reports that
// a quota was used up in the range, so that counts are extrapolated from a sample.
type AnalyticsReport struct {
	Project     string           `json:"project" check:"line=200,required"`
	From        string           `json:"from" check:"time,required"`
	To          string           `json:"to" check:"time,required"`
	Interval    string           `json:"interval" check:"name=32,required"`
	Totals      AnalyticsTotals  `json:"totals"`
	Series      []AnalyticsPoint `json:"series" check:"required"`
	Events      []AnalyticsCount `json:"events"`
	Errors      []AnalyticsCount `json:"errors"`
	Versions    []AnalyticsCount `json:"versions"`
	Platforms   []AnalyticsCount `json:"platforms"`
	Devices     []AnalyticsCount `json:"devices"`
	Estimated   bool             `json:"estimated"`
	Approximate []string         `json:"approximate" check:"line=100"`
	Reading     string           `json:"reading" check:"prose=2000"`
}

// AnalyticsTotals contains sums over the range. PeakActiveInstalls is the highest number of active installs on any day.
type AnalyticsTotals struct {
	Sessions           int64 `json:"sessions"`
	Events             int64 `json:"events"`
	Errors             int64 `json:"errors"`
	PeakActiveInstalls int64 `json:"peakActiveInstalls"`
}

// AnalyticsPoint is the hour or day that starts at At. Hours and days without activity are included with zeros.
type AnalyticsPoint struct {
	At             string `json:"at" check:"time"`
	Sessions       int64  `json:"sessions"`
	Events         int64  `json:"events"`
	Errors         int64  `json:"errors"`
	ActiveInstalls int64  `json:"activeInstalls"`
}

// AnalyticsCount is how often a name occurred. A list has the most frequent names first. It has at most 20 names, and
// the others are combined as "other".
type AnalyticsCount struct {
	Name  string `json:"name" check:"line=200"`
	Count int64  `json:"count"`
}

// ConnectionPage is the page on which an app's user connects glasses. Theme is auto, light or dark. Accent is #rrggbb.
// Version is the number of changes. PageURL is the page's URL at this backend.
type ConnectionPage struct {
	Project      string                 `json:"project" check:"line=200,required"`
	Version      int64                  `json:"version" check:"unsigned"`
	Title        string                 `json:"title" check:"line=200"`
	Description  string                 `json:"description" check:"prose=4000"`
	Theme        string                 `json:"theme" check:"name=32,required"`
	Accent       string                 `json:"accent" check:"name=32"`
	Capabilities []string               `json:"capabilities" check:"name=64"`
	Phrases      []ConnectionPagePhrase `json:"phrases"`
	Toggles      []ConnectionPageToggle `json:"toggles"`
	SupportURL   string                 `json:"supportUrl" check:"contact"`
	PrivacyURL   string                 `json:"privacyUrl" check:"url"`
	PageURL      string                 `json:"pageUrl" check:"page,required"`
	UpdatedAt    *string                `json:"updatedAt" check:"time"`
	UpdatedBy    *string                `json:"updatedBy" check:"line=200"`
	// Changed lists the fields whose value the change modified. It is absent in the response to a read.
	Changed []string `json:"changed,omitempty" check:"name=64"`
}

// ConnectionPagePhrase is a phrase that the app's user can say, and its effect.
type ConnectionPagePhrase struct {
	Phrase string `json:"phrase" check:"line=200"`
	Does   string `json:"does" check:"line=500"`
}

// ConnectionPageToggle is a switch shown to the app's user. On is its initial state.
type ConnectionPageToggle struct {
	ID    string `json:"id" check:"name=128"`
	Label string `json:"label" check:"line=200"`
	On    bool   `json:"on"`
}

// ConnectionPageChange is the body of PATCH. It contains the version that was read and the fields to change.
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
	Name    string `json:"name" check:"line=200,required"`
	Version int64  `json:"version" check:"unsigned"`
	HTML    string `json:"html" check:"prose=1048576,required"`
	SHA256  string `json:"sha256" check:"name=64"`
}

// check returns an error if the page does not match its hash.
func (f *ConnectionPageFile) check() error {
	if sum := sha256.Sum256([]byte(f.HTML)); f.SHA256 != hex.EncodeToString(sum[:]) {
		return errors.New("html does not match its sha256")
	}
	return nil
}
