package httpbackend

import (
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/service-dev/service/proto/backendapi"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// checked is a decoded answer that knows whether it says what it must. The structs below
// read proto/backendapi strictly: an answer of another version, or of no backend at all, must not pass as an empty one.
type checked interface{ check() error }

var errIncomplete = errors.New("a required field is missing")

type deviceCode struct{ backendapi.DeviceCode }

func (c *deviceCode) check() error {
	if c.DeviceCode.DeviceCode == "" || c.UserCode == "" || c.VerificationURL == "" || c.ExpiresInSeconds <= 0 {
		return errIncomplete
	}
	return nil
}

func (c *deviceCode) proto() *pluginv1.DeviceCode {
	return &pluginv1.DeviceCode{
		DeviceCode: c.DeviceCode.DeviceCode, UserCode: c.UserCode, VerificationUrl: c.VerificationURL,
		ExpiresInSeconds: clamp(c.ExpiresInSeconds), PollIntervalSeconds: clamp(c.PollIntervalSeconds),
	}
}

func clamp(n int64) uint32 { return uint32(min(max(n, 0), math.MaxInt32)) }

// account is also what a poll brings on approval.
type account struct{ backendapi.Account }

func (a *account) check() error {
	if a.AccountID == "" || a.Tier == "" {
		return errIncomplete
	}
	if _, err := time.Parse(time.RFC3339Nano, a.LinkedAt); err != nil {
		return errors.New("linkedAt is not a timestamp")
	}
	if a.ExpiresAt != nil {
		if _, err := time.Parse(time.RFC3339Nano, *a.ExpiresAt); err != nil {
			return errors.New("expiresAt is not a timestamp")
		}
	}
	return nil
}

type poll struct {
	Pending             *bool  `json:"pending"`
	PollIntervalSeconds int64  `json:"pollIntervalSeconds"`
	AuthToken           string `json:"authToken"`
	account
}

func (p *poll) pending() bool { return p.Pending != nil && *p.Pending }

func (p *poll) check() error {
	if p.pending() {
		if p.AuthToken != "" {
			return errors.New("it is pending and has a token")
		}
		return nil
	}
	if p.AuthToken == "" {
		return errIncomplete
	}
	return p.account.check()
}

type health struct{ backendapi.Health }

func (h *health) check() error {
	if h.Service == "" {
		return errIncomplete
	}
	return nil
}

type session struct{ backendapi.CreatedSession }

func (s *session) check() error {
	if s.SessionID == "" || s.State == "" || s.SessionURL == "" || s.AppEndpoint == "" {
		return errIncomplete
	}
	return nil
}

func (s *session) proto() *pluginv1.Session {
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

type sessionList struct {
	Sessions *[]session `json:"sessions"`
}

func (l *sessionList) check() error {
	if l.Sessions == nil {
		return errIncomplete
	}
	for i := range *l.Sessions {
		if err := (*l.Sessions)[i].check(); err != nil {
			return err
		}
	}
	return nil
}

type appSecret struct{ backendapi.SessionSecret }

func (a *appSecret) check() error {
	if a.AppSecret == "" {
		return errIncomplete
	}
	return nil
}

type eventPage struct {
	Events *[]json.RawMessage `json:"events"`
	Next   int64              `json:"next"`
	More   bool               `json:"more"`
	// Truncated says that rows after the cursor of the request are gone.
	Truncated bool `json:"truncated"`
}

func (p *eventPage) check() error {
	if p.Events == nil {
		return errIncomplete
	}
	return nil
}

type controlled struct{ backendapi.Controlled }

func (c *controlled) check() error {
	if len(c.Result) == 0 || c.Result[0] != '{' {
		return errIncomplete
	}
	return nil
}

type projectKey struct {
	backendapi.ProjectKey
	createdAt int64 // Unix ms
}

func (k *projectKey) check() error {
	if k.ProjectKey.ProjectKey == "" {
		return errIncomplete
	}
	at, err := time.Parse(time.RFC3339Nano, k.CreatedAt)
	if err != nil {
		return errors.New("createdAt is not a timestamp")
	}
	k.createdAt = at.UnixMilli()
	return nil
}
