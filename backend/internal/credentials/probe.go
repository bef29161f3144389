package credentials

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
)

const (
	testTimeout = 5 * time.Second
	// testAgain is how long Test reuses a stored result.
	testAgain = 3 * time.Second
)

// Test asks the provider whether it accepts the credential. It stores and returns the result: TestOK, TestRefused or
// TestUnreachable. It reuses a result that is newer than testAgain.
func (s *Service) Test(ctx context.Context, account, project, provider string, by audit.Actor) (string, error) {
	p, ok := s.o.Providers.find(provider)
	if !ok {
		return "", ErrUnknownProvider
	}
	c, value, err := s.open(ctx, account, project, provider)
	if err != nil {
		return "", err
	}
	if !c.TestedAt.IsZero() && s.now().Sub(c.TestedAt) < testAgain {
		return c.TestResult, nil
	}
	c.TestResult = s.ask(ctx, p, value)
	c.TestedAt = s.now()
	entry := audit.New(c.TestedAt, account, by, "credential.tested", project, "key of "+p.Name+" tested: "+c.TestResult)
	if err := s.o.Store.MarkTested(ctx, c, entry); err != nil {
		return "", fmt.Errorf("save test result: %w", err)
	}
	return c.TestResult, nil
}

// NoteRefused stores the test result TestRefused. It is called after the provider refused the credential in a
// call. Repeated calls change nothing.
func (s *Service) NoteRefused(ctx context.Context, account, project, provider string) error {
	c, err := s.o.Store.Credential(ctx, account, project, provider)
	if err != nil {
		return fmt.Errorf("read credential: %w", err)
	}
	if c.TestResult == TestRefused {
		return nil
	}
	p, _ := s.o.Providers.find(provider)
	c.TestResult, c.TestedAt = TestRefused, s.now()
	entry := audit.New(c.TestedAt, account, audit.Actor{Kind: audit.KindBackend}, "credential.refused", project,
		"key of "+cmp.Or(p.Name, provider)+" refused by the provider")
	if err := s.o.Store.MarkTested(ctx, c, entry); err != nil {
		return fmt.Errorf("save refusal: %w", err)
	}
	return nil
}

// ask sends the value in a header, and only to the provider's own address. The result depends only on the response
// status.
func (s *Service) ask(ctx context.Context, p provider, value string) string {
	ctx, cancel := context.WithTimeout(ctx, testTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.Test.URL, http.NoBody)
	if err != nil {
		return TestUnreachable
	}
	for name, text := range p.Test.Headers {
		req.Header.Set(name, text)
	}
	req.Header.Set(p.Test.Header, p.Test.Prefix+value)
	res, err := s.o.HTTP.Do(req)
	if err != nil {
		// The error could contain text from the provider, so log only the provider's ID.
		s.o.Log.WarnContext(ctx, "failed to test credential: no response", "provider", p.ID)
		return TestUnreachable
	}
	res.Body.Close()
	switch {
	case res.StatusCode >= 200 && res.StatusCode < 300:
		return TestOK
	case res.StatusCode == http.StatusUnauthorized, res.StatusCode == http.StatusForbidden, slices.Contains(p.Test.Refused,
		res.StatusCode):
		return TestRefused
	}
	s.o.Log.WarnContext(ctx, "failed to test credential: unexpected status", "provider", p.ID, "status",
		res.StatusCode)
	return TestUnreachable
}

// withoutRedirects returns a copy of the client that follows no redirects, so that a credential is sent only to the
// address configured by the operator.
func withoutRedirects(c *http.Client) *http.Client {
	own := http.Client{}
	if c != nil {
		own = *c
	}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}
