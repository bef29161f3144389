package backendapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/service-dev/service/internal/problem"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func text(s string) *string { return &s }

var account = Account{AccountID: "0b0e7e1c-6f0a-4b1e-9a55-2f4f9ad6a001", Tier: TierFreeAccount,
	LinkedAt: "2026-01-02T03:04:05.000Z"}

var own = Account{AccountID: account.AccountID, Tier: account.Tier, LinkedAt: account.LinkedAt, Email: "ada@example.org"}

var legacy = Account{AccountID: account.AccountID, Tier: account.Tier, LinkedAt: account.LinkedAt,
	ExpiresAt: text("2027-01-02T03:04:05.000Z")}

var deviceCode = DeviceCode{DeviceCode: "sdc_example", UserCode: "WDJB-MJHT",
	VerificationURL:  "https://glasses.example/activate?code=WDJB-MJHT",
	ExpiresInSeconds: 600, PollIntervalSeconds: 5}

var session = Session{SessionID: "ses_abcdefghijklmnopqrst", Project: "com.example.hello", Platform: "ios",
	DeviceModel: "rayban_display", State: "open",
	SessionURL: "https://glasses.example/s/ses_abcdefghijklmnopqrst", AppEndpoint: "wss://glasses.example/api/sessions/ses_abcdefghijklmnopqrst/app",
	CreatedAt: "2026-01-02T03:04:05.000Z", LastActiveAt: "2026-01-02T03:05:05.000Z", ExpiresAt: "2026-01-03T03:05:05.000Z",
	Apps: 1, Pages: 2, LastSeq: 9007199254740993}

var closedSession = func() Session {
	s := session
	s.State, s.ClosedAt, s.Apps, s.Pages = "closed", text("2026-01-02T04:00:00.000Z"), 0, 0
	return s
}()

func number(n int64) *int64 { return &n }

func yes(b bool) *bool { return &b }

var access = Access{AssistantConfig: map[string]string{"realtimeModel": LevelReadWrite, "voice": LevelRead,
	"textModel": LevelReadWrite, "gatewayUsage": LevelReadWrite},
	Credentials: LevelReadWrite, Analytics: LevelRead}

var sums = GatewaySums{Calls: 41, Failed: 2, Cancelled: 1, Refused: 3, Estimated: 1, MicroUSD: 126800, TextIn: 9000,
	TextCached: 400, TextOut: 12000, AudioIn: 1200, AudioCached: 300, AudioOut: 2400, DurationMs: 61_500}

var memories = AssistantMemory{Profiles: 9007199254740993, Oldest: text("2026-01-02T03:04:05.000Z"), Days: 30}

var gatewayUsage = GatewayUsage{Project: "com.example.hello",
	Range:    GatewayRange{From: "2026-01-02T00:00:00.000Z", To: "2026-01-02T03:04:05.000Z"},
	Interval: "day",
	Credit:   GatewayCredit{BalanceMicroUSD: 1873200, ReservedMicroUSD: 20000, FreeMicroUSD: 2000000},
	Caps: GatewayCaps{Day: &GatewayCap{LimitMicroUSD: 500000, SpentMicroUSD: 126800, ReservedMicroUSD: 20000,
		ResetsAt: "2026-01-03T00:00:00.000Z"},
		ProjectKeysDay: &GatewayCap{LimitMicroUSD: 500000, SpentMicroUSD: 1200, ResetsAt: "2026-01-03T00:00:00.000Z"}},
	Totals: sums, ByModel: []GatewayOfModel{{"standard", sums}}, BySource: []GatewayOfSource{{"credit", sums}},
	Series: []GatewayPoint{{At: "2026-01-02T00:00:00.000Z", Calls: 41, Failed: 2, Refused: 3, MicroUSD: 126800}},
	Refusals: []GatewayRefusal{{Code: "cap_reached", Count: 3, LastAt: "2026-01-02T03:00:00.000Z",
		FixHint: "ask the owner to raise the cap"}},
	KeySource: text("credit"),
	Models: []GatewayModel{{ID: "assistant", API: text("chat"), Resolves: text("standard"), Available: true},
		{ID: "careful", API: text("messages"), Why: text("no price for text_out")}},
	Summary: "41 calls cost $0.1268."}

var project = Project{Project: "com.example.hello", DisplayName: "Hello", Platforms: []string{"ios", "android"},
	CreatedAt:    "2026-01-02T03:04:05.000Z",
	LastActiveAt: text("2026-01-02T03:05:05.000Z"), Keys: 1, OpenSessions: 2, Access: access, DashboardURL: "https://glasses.example/account/projects/com.example.hello"}

var choices = AssistantChoices{
	RealtimeModels: []AssistantModel{{ID: "realtime-1", Name: "Realtime", Description: "quick",
		Voices: []string{"ember"}, MicroUSDPerMinute: number(60000), Sound: &SoundPrice{In: 19200, Out: 76800}}},
	MemoryModels: []MemoryModel{{ID: "memory-1", Name: "Memory", Description: "short"}},
	Voices:       []AssistantVoice{{ID: "ember", Name: "Ember", Description: "warm"}},
	TextModels: []TextModel{{ID: "standard", Name: "Standard", Description: "plain", Default: true,
		MicroUSDPerMillion: TokenPrice{In: 250000, Cached: 25000, Out: 2000000}},
		{ID: "careful", Name: "Careful", Description: "slow", Why: text("no price for text_out")}},
}

var credential = Credential{Provider: "openai", Name: "OpenAI", Set: true, Hint: text("...wxyz"),
	SetAt: text("2026-01-02T03:04:05.000Z"),
	SetBy: text("dashboard"), TestedAt: text("2026-01-02T03:05:05.000Z"), TestResult: text("ok")}

var event = AnalyticsEvent{ID: "e-1", Type: "event", Name: "photo.taken", At: 1767323045000, InstallID: "k3v9x2m4q7",
	AppVersion: "1.4.0",
	Platform:   "ios", DeviceModel: "rayban_display"}

// examples contains a value of every shape; the key is the name of the golden file.
var examples = map[string]any{
	"device_code_request": DeviceCodeRequest{Scope: ScopeAccountFull},
	"device_code":         deviceCode,
	"token_request":       TokenRequest{DeviceCode: "sdc_example"},
	"pending":             Pending{Pending: true, PollIntervalSeconds: 5},
	"token":               Token{AuthToken: "svc_example", Account: account},
	"token_legacy":        Token{AuthToken: "svc_example", Account: legacy},
	"account":             own,
	"account_legacy":      legacy,
	"problem": Problem{Type: "about:blank", Title: "Device code expired", Status: 410, Code: problem.CodeDeviceCodeExpired,
		Detail: "the device code has expired", Retryable: true, FixHint: "start again for a fresh code"},
	"auth_required": AuthRequired{DeviceCode: deviceCode, Problem: Problem{Type: "about:blank",
		Title: "Account link required", Status: 401,
		Code: problem.CodeAuthRequired, Detail: "this needs a linked account", Retryable: true,
		FixHint: "show the person the code and the URL"}},
	"telemetry_receipt": TelemetryReceipt{Accepted: 198, Duplicates: 1, Rejected: 1},
	"telemetry_purged":  TelemetryPurged{Deleted: 1234},
	"session_request": SessionRequest{Project: "com.example.hello", Platform: "ios",
		DeviceModel: "rayban_display", Fresh: true},
	"session_request_minimal": SessionRequest{Project: "com.example.hello"},
	"session":                 session,
	"session_closed":          closedSession,
	"created_session":         CreatedSession{Session: session, Created: true},
	"session_list":            SessionList{Sessions: []Session{session, closedSession}},
	"session_list_empty":      SessionList{Sessions: []Session{}},
	"session_secret":          SessionSecret{AppSecret: "sst_example"},
	"event_page":              EventPage{Events: []json.RawMessage{json.RawMessage(`{"seq":7,"type":"display.show"}`)}, Next: 7, More: true},
	"event_page_empty":        EventPage{Events: []json.RawMessage{}, Next: 7},
	"event_page_truncated":    EventPage{Events: []json.RawMessage{}, Next: 7, Truncated: true},
	"control":                 Control{Type: "sim.camera", Payload: json.RawMessage(`{}`), Media: []byte("picture")},
	"control_text":            Control{Type: "sim.input", Payload: json.RawMessage(`{"kind":"tap","x":1,"y":2}`)},
	"controlled":              Controlled{Result: json.RawMessage(`{"ok":true}`)},
	"project_key_request":     ProjectKeyRequest{Name: "generated module"},
	"project_key": ProjectKey{ProjectKey: "spk_example", Hint: "mple",
		CreatedAt: "2026-01-02T03:04:05.000Z"},
	"permission_denied": PermissionDenied{Problem: Problem{Type: "about:blank", Title: "Permission denied",
		Status: 403, Code: problem.CodePermissionDenied,
		Detail: "agents may not change voice", FixHint: "ask the account's owner"}, Project: "com.example.hello", Capability: CapabilityAssistant,
		Field: "voice", Needed: LevelReadWrite, Granted: LevelRead},
	"version_conflict": VersionConflict{Problem: Problem{Type: "about:blank", Title: "Version conflict", Status: 409,
		Code:   problem.CodeVersionConflict,
		Detail: "the config is at version 4", Retryable: true, FixHint: "read it again"}, CurrentVersion: 9007199254740993},
	"access":             access,
	"project":            project,
	"project_list":       ProjectList{Projects: []Project{project}},
	"project_list_empty": ProjectList{Projects: []Project{}},
	"assistant_config": AssistantConfig{Project: "com.example.hello", Version: 4, RealtimeModel: text("realtime-1"),
		Voice:       text("ember"),
		MemoryModel: text("memory-1"), TextModel: text(""), SessionMemory: yes(true), Sounds: yes(false),
		UpdatedAt: text("2026-01-02T03:04:05.000Z"), UpdatedBy: text("agent on laptop"),
		Access: access.AssistantConfig, Choices: choices, Cost: AssistantCost{MicroUSDPerMinute: number(61000),
			BeforeMicroUSDPerMinute: number(81000), TextModel: &choices.TextModels[0].MicroUSDPerMillion,
			BeforeTextModel: &TokenPrice{}, Note: "estimate"}, Memory: &memories},
	"assistant_config_hidden": AssistantConfig{Project: "com.example.hello",
		Access: map[string]string{"voice": LevelOff},
		Choices: AssistantChoices{RealtimeModels: []AssistantModel{}, MemoryModels: []MemoryModel{},
			Voices: []AssistantVoice{}, TextModels: []TextModel{}}},
	"assistant_choices": choices,
	"assistant_model":   choices.RealtimeModels[0],
	"assistant_voice":   choices.Voices[0],
	"memory_model":      choices.MemoryModels[0],
	"assistant_memory":  memories,
	"sound_price":       *choices.RealtimeModels[0].Sound,
	"text_model":        choices.TextModels[1],
	"token_price":       choices.TextModels[0].MicroUSDPerMillion,
	"gateway_usage":     gatewayUsage,
	"gateway_usage_hidden": GatewayUsage{Project: "com.example.hello", Range: gatewayUsage.Range, Interval: "day",
		Series: []GatewayPoint{}, Refusals: []GatewayRefusal{}, Models: gatewayUsage.Models[1:], Summary: "No calls."},
	"assistant_cost":   AssistantCost{Note: "no prices are set"},
	"assistant_change": AssistantChange{Version: 4, Voice: text("ember"), Sounds: yes(false)},
	"credential":       credential,
	"credential_list": CredentialList{Project: "com.example.hello",
		Credentials: []Credential{credential, {Provider: "other", Name: "Other"}}},
	"credential_link": CredentialLink{Provider: "openai",
		URL:       "https://glasses.example/account/credentials/scl_example",
		ExpiresAt: "2026-01-02T03:19:05.000Z"},
	"analytics_batch": AnalyticsBatch{Events: []AnalyticsEvent{event}},
	"analytics_event": event,
	"analytics_accepted": AnalyticsAccepted{Accepted: 1, Duplicates: 2, Late: 3, Sampled: 4, Rejected: 1,
		SampleRate: 10,
		Problems:   []AnalyticsRejected{{Index: 7, Reason: "type is not session, event or error"}}},
	"analytics_rejected": AnalyticsRejected{Index: 7, Reason: "type is not session, event or error"},
	"analytics_report": AnalyticsReport{Project: "com.example.hello", From: "2026-01-01T00:00:00.000Z",
		To: "2026-01-02T00:00:00.000Z", Interval: "day",
		Totals: AnalyticsTotals{Sessions: 9007199254740993, Events: 2, Errors: 1, PeakActiveInstalls: 7},
		Series: []AnalyticsPoint{{At: "2026-01-01T00:00:00.000Z", Sessions: 3, Events: 2, Errors: 1,
			ActiveInstalls: 7}},
		Events: []AnalyticsCount{{Name: "photo.taken",
			Count: 2}}, Errors: []AnalyticsCount{}, Versions: []AnalyticsCount{}, Platforms: []AnalyticsCount{},
		Devices: []AnalyticsCount{}, Approximate: []string{}, Reading: "3 sessions in a day."},
	"analytics_totals": AnalyticsTotals{Sessions: 3, Events: 2, Errors: 1, PeakActiveInstalls: 7},
	"analytics_point": AnalyticsPoint{At: "2026-01-01T00:00:00.000Z", Sessions: 3, Events: 2, Errors: 1,
		ActiveInstalls: 7},
	"analytics_count": AnalyticsCount{Name: "photo.taken", Count: 2},
	"connection_page": ConnectionPage{Project: "com.example.hello", Version: 2, Title: "Hello",
		Description: "Connect your glasses", Theme: "auto",
		Accent: "#0b6b68", Capabilities: []string{"display"}, Phrases: []ConnectionPagePhrase{{Phrase: "take a photo",
			Does: "takes one"}},
		Toggles: []ConnectionPageToggle{{ID: "captions", Label: "Captions",
			On: true}}, SupportURL: "https://example.com/help",
		PageURL: "https://glasses.example/connect/cp_example", UpdatedAt: text("2026-01-02T03:04:05.000Z"), UpdatedBy: text("agent on laptop")},
	"connection_page_phrase": ConnectionPagePhrase{Phrase: "take a photo", Does: "takes one"},
	"connection_page_toggle": ConnectionPageToggle{ID: "captions", Label: "Captions", On: true},
	"connection_page_change": ConnectionPageChange{Version: 2, Title: text("Hello"),
		Toggles: &[]ConnectionPageToggle{}},
	"connection_page_file": ConnectionPageFile{Name: "connect.html", Version: 2, HTML: "<!doctype html>",
		SHA256: "00ff"},
	"health": Health{OK: true, Service: "service-backend", Version: "1.4.0", Commit: "unknown", BuiltAt: "unknown",
		UptimeMs: 9007199254740993,
		Phase:    "beta", Hints: map[string]string{"sessions": "who may ask", "versionCheck": "compare commit"}},
}

func TestEveryShapeStandsAsItsGoldenFile(t *testing.T) {
	for name, example := range examples {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			encoder := json.NewEncoder(&got)
			encoder.SetIndent("", "  ")
			if err := encoder.Encode(example); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", name+".json")
			if *update {
				if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			golden, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), golden) {
				t.Errorf("the wire format changed; it was\n%s\nand is\n%s", golden, got.Bytes())
			}
			back := reflect.New(reflect.TypeOf(example))
			d := json.NewDecoder(bytes.NewReader(golden))
			d.DisallowUnknownFields()
			if err := d.Decode(back.Interface()); err != nil {
				t.Fatal(err)
			}
			compactRaw(t, back.Interface())
			if !reflect.DeepEqual(back.Elem().Interface(), example) {
				t.Errorf("decoding the golden file returned %+v", back.Elem())
			}
		})
	}
}

// compactRaw removes the indentation that the golden file adds inside raw JSON.
func compactRaw(t *testing.T, shape any) {
	t.Helper()
	switch v := shape.(type) {
	case *EventPage:
		for i := range v.Events {
			compact(t, &v.Events[i])
		}
	case *Control:
		compact(t, &v.Payload)
	case *Controlled:
		compact(t, &v.Result)
	}
}

func compact(t *testing.T, raw *json.RawMessage) {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, *raw); err != nil {
		t.Fatal(err)
	}
	*raw = b.Bytes()
}

// Every type needs an example, and every golden file needs a type.
func TestNoShapeWithoutAGoldenFile(t *testing.T) {
	shown := map[string]bool{}
	for _, example := range examples {
		shown[reflect.TypeOf(example).Name()] = true
	}
	for _, source := range []string{"backendapi.go", "records.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), source, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && !shown[spec.Name.Name] {
				t.Errorf("%s has no example", spec.Name)
			}
			return true
		})
	}
	files, err := filepath.Glob(filepath.Join("testdata", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if _, ok := examples[strings.TrimSuffix(filepath.Base(f), ".json")]; !ok {
			t.Errorf("golden file %s has no example", f)
		}
	}
}

// Clients in other languages rely on this: one flat object, integers written as digits, null for missing values.
func TestShapesInDetail(t *testing.T) {
	for _, tc := range []struct {
		name   string
		fields map[string]string // expected fields: name -> JSON
		count  int               // number of the object's fields; a higher number means a nested or additional field
	}{
		{"token", map[string]string{"expiresAt": "null", "authToken": `"svc_example"`, "tier": `"free_account"`}, 5},
		{"token_legacy", map[string]string{"expiresAt": `"2027-01-02T03:04:05.000Z"`}, 5},
		{"account", map[string]string{"expiresAt": "null", "email": `"ada@example.org"`}, 5},
		{"auth_required", map[string]string{
			"code": `"auth_required"`, "status": "401", "deviceCode": `"sdc_example"`, "userCode": `"WDJB-MJHT"`,
			"expiresInSeconds": "600", "pollIntervalSeconds": "5", "retryable": "true",
			"verificationUrl": `"https://glasses.example/activate?code=WDJB-MJHT"`,
		}, 12},
		{"pending", map[string]string{"pending": "true", "pollIntervalSeconds": "5"}, 2},
		{"device_code", map[string]string{"expiresInSeconds": "600", "pollIntervalSeconds": "5"}, 5},
		{"created_session", map[string]string{"created": "true", "closedAt": "null", "apps": "1", "pages": "2",
			"lastSeq": "9007199254740993"}, 15},
		{"session_list_empty", map[string]string{"sessions": "[]"}, 1},
		{"event_page_empty", map[string]string{"events": "[]", "next": "7", "more": "false"}, 3},
		{"session_request_minimal", map[string]string{"project": `"com.example.hello"`}, 1},
		{"health", map[string]string{"ok": "true", "uptimeMs": "9007199254740993", "commit": `"unknown"`}, 8},
	} {
		data, err := json.Marshal(examples[tc.name])
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(data, &fields); err != nil {
			t.Fatal(err)
		}
		if len(fields) != tc.count {
			t.Errorf("%s has %d fields, want %d: %s", tc.name, len(fields), tc.count, data)
		}
		for name, want := range tc.fields {
			if got := string(fields[name]); got != want {
				t.Errorf("%s: %s is %s, want %s", tc.name, name, got, want)
			}
		}
	}
}

// Neither side accepts a fraction as an integer.
func TestFractionsAreRefused(t *testing.T) {
	for _, body := range []string{`{"pollIntervalSeconds":5.5}`, `{"pollIntervalSeconds":"5"}`,
		`{"pollIntervalSeconds":1e99}`} {
		if err := json.Unmarshal([]byte(body), &Pending{}); err == nil {
			t.Errorf("decoding %s succeeded, want an error", body)
		}
	}
}
