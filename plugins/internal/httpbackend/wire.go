package httpbackend

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"reflect"

	"github.com/service-dev/service/proto/backendapi"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// required lists the JSON names of the required fields of each type that occurs in responses. Without it, a response
// of another version, or of a server that is not a backend, would look like an empty response.
var required = map[reflect.Type][]string{
	reflect.TypeFor[backendapi.Health]():             {"service"},
	reflect.TypeFor[backendapi.DeviceCode]():         {"deviceCode", "userCode", "verificationUrl", "expiresInSeconds"},
	reflect.TypeFor[backendapi.Token]():              {"authToken"},
	reflect.TypeFor[backendapi.Account]():            {"accountId", "tier", "linkedAt"},
	reflect.TypeFor[backendapi.Session]():            {"sessionId", "state", "sessionUrl", "appEndpoint"},
	reflect.TypeFor[backendapi.SessionList]():        {"sessions"},
	reflect.TypeFor[backendapi.SessionSecret]():      {"appSecret"},
	reflect.TypeFor[backendapi.EventPage]():          {"events"},
	reflect.TypeFor[backendapi.Controlled]():         {"result"},
	reflect.TypeFor[backendapi.ProjectKey]():         {"projectKey", "createdAt"},
	reflect.TypeFor[backendapi.ProjectList]():        {"projects"},
	reflect.TypeFor[backendapi.Project]():            {"project", "createdAt"},
	reflect.TypeFor[backendapi.AssistantConfig]():    {"project", "access"},
	reflect.TypeFor[backendapi.AssistantChoices]():   {"realtimeModels", "memoryModels", "voices"},
	reflect.TypeFor[backendapi.CredentialList]():     {"project", "credentials"},
	reflect.TypeFor[backendapi.Credential]():         {"provider"},
	reflect.TypeFor[backendapi.CredentialLink]():     {"provider", "url", "expiresAt"},
	reflect.TypeFor[backendapi.AnalyticsReport]():    {"project", "interval", "from", "to", "series"},
	reflect.TypeFor[backendapi.GatewayUsage]():       {"project", "range", "interval", "series", "models", "summary"},
	reflect.TypeFor[backendapi.ConnectionPage]():     {"project", "theme", "pageUrl"},
	reflect.TypeFor[backendapi.ConnectionPageFile](): {"name", "html"},
	reflect.TypeFor[receipt]():                       {"accepted", "duplicates", "rejected"},
	reflect.TypeFor[purged]():                        {"deleted"},
}

// counted lists the numeric fields that must not be negative.
var counted = map[string]bool{"version": true, "accepted": true, "duplicates": true, "rejected": true, "deleted": true}

// checked is a response with rules beyond those of its individual fields.
type checked interface{ check() error }

// poll is a response of the token endpoint. Token is nil until the user has decided.
type poll struct {
	Pending             bool  `json:"pending"`
	PollIntervalSeconds int64 `json:"pollIntervalSeconds"`
	*backendapi.Token
}

func (p *poll) check() error {
	switch {
	case p.Pending && p.Token != nil:
		return errors.New("it is pending and has a token")
	case !p.Pending && p.Token == nil:
		return errMissing
	}
	return nil
}

// connectionPageFile is a response whose html is checked against its hash.
type connectionPageFile struct{ backendapi.ConnectionPageFile }

func (f *connectionPageFile) check() error {
	if sum := sha256.Sum256([]byte(f.HTML)); f.SHA256 != hex.EncodeToString(sum[:]) {
		return errors.New("html does not match its sha256")
	}
	return nil
}

// receipt and purged are like backendapi.TelemetryReceipt and TelemetryPurged, but distinguish a missing count from
// 0.
type receipt struct {
	Accepted   *int64 `json:"accepted"`
	Duplicates *int64 `json:"duplicates"`
	Rejected   *int64 `json:"rejected"`
}

type purged struct {
	Deleted *int64 `json:"deleted"`
}

func deviceCodeProto(c backendapi.DeviceCode) *pluginv1.DeviceCode {
	return &pluginv1.DeviceCode{
		DeviceCode: c.DeviceCode, UserCode: c.UserCode, VerificationUrl: c.VerificationURL,
		ExpiresInSeconds: clamp(c.ExpiresInSeconds), PollIntervalSeconds: clamp(c.PollIntervalSeconds),
	}
}

func sessionProto(s backendapi.Session) *pluginv1.Session {
	p := &pluginv1.Session{
		SessionId: s.SessionID, Project: s.Project, Platform: s.Platform, DeviceModel: s.DeviceModel, State: s.State,
		SessionUrl: s.SessionURL, AppEndpoint: s.AppEndpoint, CreatedAt: s.CreatedAt, LastActiveAt: s.LastActiveAt,
		ExpiresAt: s.ExpiresAt, Apps: clamp(int64(s.Apps)), Pages: clamp(int64(s.Pages)), LastSeq: s.LastSeq,
	}
	if s.ClosedAt != nil {
		p.ClosedAt = *s.ClosedAt
	}
	return p
}

func clamp(n int64) uint32 { return uint32(min(max(n, 0), math.MaxInt32)) }
