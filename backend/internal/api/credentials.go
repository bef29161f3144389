package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credentials"
	"github.com/service-dev/service/proto/backendapi"
)

// Credentials is what the routes need of the credentials. No value passes here.
type Credentials interface {
	Status(ctx context.Context, accountID, project string) ([]credentials.Credential, error)
	NewLink(ctx context.Context, accountID, project, provider string, by audit.Actor) (credentials.Link, error)
}

func (a *API) listCredentials(c *call) (any, error) {
	all, err := a.Credentials.Status(c.Context(), c.who.AccountID, c.project.ID)
	if err != nil {
		return nil, err
	}
	out := backendapi.CredentialList{Project: c.project.ID, Credentials: make([]backendapi.Credential, 0, len(all))}
	for _, one := range all {
		out.Credentials = append(out.Credentials, credentialOf(one))
	}
	return out, nil
}

func credentialOf(c credentials.Credential) backendapi.Credential {
	return backendapi.Credential{
		Provider: c.Provider.ID, Name: c.Provider.Name, Set: c.Set, Hint: textOrNull(c.Hint), SetAt: timeOrNull(c.SetAt),
		SetBy: actorOrNull(c.SetBy), TestedAt: timeOrNull(c.TestedAt), TestResult: textOrNull(c.TestResult),
	}
}

func textOrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// actorOrNull names who did something: what is "you" to the account's owner is not the agent that reads it here.
func actorOrNull(s string) *string {
	if rest, ok := strings.CutPrefix(s, "you"); ok && (rest == "" || rest[0] == ',') {
		s = "the account's owner" + rest
	}
	return textOrNull(s)
}

func (a *API) linkCredential(c *call) (any, error) {
	var body struct{}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	l, err := a.Credentials.NewLink(c.Context(), c.who.AccountID, c.project.ID, c.PathValue("id"), c.by())
	if err != nil {
		return nil, err
	}
	c.status = http.StatusCreated
	return backendapi.CredentialLink{Provider: l.Provider.ID, URL: a.SiteURL + "/account/credentials/" + url.PathEscape(l.ID),
		ExpiresAt: timestamp(l.ExpiresAt)}, nil
}

// credentialRefusal turns the credentials' errors into refusals; nil for others.
func credentialRefusal(err error) *Refusal {
	switch {
	case errors.Is(err, credentials.ErrNotConfigured):
		return refusal(backendapi.CodeNotConfigured, "this backend keeps no credentials: its operator has set no key to encrypt them with",
			"ask the backend's operator to set credentials_key_file")
	case errors.Is(err, credentials.ErrUnknownProvider):
		return refusal(backendapi.CodeNotFound, "this backend knows no such provider", "list the project's credentials for the providers' ids")
	}
	return nil
}
