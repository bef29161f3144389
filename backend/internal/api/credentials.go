package api

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/service-dev/service/backend/internal/credentials"
	"github.com/service-dev/service/proto/backendapi"
)

func (a *API) listCredentials(c *call) (any, error) {
	all, err := a.Credentials.Status(c.Context(), c.who.AccountID, c.project.ID)
	return backendapi.CredentialList{Project: c.project.ID, Credentials: convert(all, credentialOf)}, err
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

// actorOrNull returns an actor's name as shown to an agent. A stored "you" means the account's owner, not the agent. An
// empty name becomes nil.
func actorOrNull(s string) *string {
	if rest, ok := strings.CutPrefix(s, "you"); ok && (rest == "" || rest[0] == ',') {
		s = "the account's owner" + rest
	}
	return textOrNull(s)
}

func (a *API) linkCredential(c *call, _ struct{}) (any, error) {
	l, err := a.Credentials.NewLink(c.Context(), c.who.AccountID, c.project.ID, c.PathValue("id"), c.by())
	if err != nil {
		return nil, err
	}
	c.status = http.StatusCreated
	return backendapi.CredentialLink{Provider: l.Provider.ID, ExpiresAt: timestamp(l.ExpiresAt),
		URL: a.SiteURL + "/account/credentials/" + url.PathEscape(l.ID)}, nil
}
