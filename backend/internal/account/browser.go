package account

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/internal/credential"
)

// OpenSession signs a browser in and returns the secret for its cookie. It returns ErrSuspended if the account is
// suspended.
func (s *Service) OpenSession(ctx context.Context, accountID string, v Visit) (string, error) {
	value := secret.New(credential.Browser)
	now := s.now()
	v.UserAgent, v.IP = clip(v.UserAgent, maxAgent), clip(v.IP, 64)
	err := s.store.InsertWebSession(ctx, accountID, BrowserSession{
		ID: uuid.NewString(), Visit: v, CreatedAt: now, UsedAt: now, ExpiresAt: now.Add(SessionLife),
		Hash: s.browserHash(value),
	})
	if err != nil || s.SignedIn == nil {
		return value, err
	}
	// Run this even if the request ends early.
	if err := s.SignedIn(context.WithoutCancel(ctx), accountID); err != nil {
		s.log.WarnContext(ctx, "failed to run the sign-in hook", "account", accountID, "err", err)
	}
	return value, nil
}

// FindSession returns the account that is signed in with the session. It returns ErrNoSession for an unknown session
// and for a suspended account.
func (s *Service) FindSession(ctx context.Context, value string) (Account, error) {
	if !secret.Valid(credential.Browser, value) {
		return Account{}, ErrNoSession
	}
	hash, now := s.browserHash(value), s.now()
	a, used, err := s.store.AccountByWebSession(ctx, hash, now)
	if err != nil {
		return Account{}, err
	}
	if !a.Active {
		return Account{}, ErrNoSession
	}
	if now.Sub(used) >= touchEvery {
		// A failure here must not prevent the page from being shown.
		if err := s.store.TouchWebSession(ctx, hash, now); err != nil {
			s.log.WarnContext(ctx, "failed to record use of browser session", "account", a.ID, "err", err)
		}
	}
	return a, nil
}

// CloseSession signs a browser out. It returns nil for an unknown session.
func (s *Service) CloseSession(ctx context.Context, value string) error {
	e := s.entry("", audit.Person(), "account.signed_out", "")
	accountID, err := s.store.DeleteWebSession(ctx, s.browserHash(value), e)
	if err == nil && accountID != "" {
		s.ended(accountID)
	}
	return err
}

// Sessions lists the signed-in browsers, most recently used first. current is the session secret of the caller's
// browser, or empty.
func (s *Service) Sessions(ctx context.Context, accountID, current string) ([]BrowserSession, error) {
	all, err := s.store.WebSessions(ctx, accountID, s.now())
	hash := s.keepHash(current)
	for i := range all {
		all[i].Current = hash != "" && all[i].Hash == hash
		all[i].Hash = ""
	}
	return all, err
}

// EndSession signs out one browser of the account. It returns ErrNotFound if there is no such session.
func (s *Service) EndSession(ctx context.Context, accountID, id string, by audit.Actor) error {
	if id == "" {
		return ErrNotFound
	}
	e := s.entry(accountID, by, "account.sessions_ended", "signed one browser out")
	n, err := s.store.EndWebSessions(ctx, id, "", e)
	if err != nil {
		return err
	}
	if n == 0 {
		return ErrNotFound
	}
	s.ended(accountID)
	return nil
}

// EndOtherSessions signs out every browser of the account except the one with keepSecret, or every browser if
// keepSecret is empty. It returns the number of sessions ended.
func (s *Service) EndOtherSessions(ctx context.Context, accountID, keepSecret string, by audit.Actor) (int, error) {
	summary := "signed out everywhere"
	if keepSecret != "" {
		summary = "signed out everywhere else"
	}
	e := s.entry(accountID, by, "account.sessions_ended", "%s", summary)
	n, err := s.store.EndWebSessions(ctx, "", s.keepHash(keepSecret), e)
	if err == nil {
		s.log.InfoContext(ctx, "browser sessions ended", "account", accountID, "count", n)
		s.ended(accountID)
	}
	return n, err
}

func (s *Service) ended(accountID string) {
	if s.Ended != nil {
		s.Ended(accountID)
	}
}

func (s *Service) browserHash(value string) string { return s.hash.Hash("browser", value) }

// keepHash returns the stored hash of a session secret, or "" if value is empty.
func (s *Service) keepHash(value string) string {
	if value == "" {
		return ""
	}
	return s.browserHash(value)
}

func (s *Service) entry(accountID string, by audit.Actor, action, format string, args ...any) audit.Entry {
	return audit.New(s.now(), accountID, by, action, "", fmt.Sprintf(format, args...))
}

// clip returns text without control characters, truncated at a character boundary to at most n bytes.
func clip(text string, n int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "")
}
