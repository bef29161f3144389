package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/connpage"
	"github.com/service-dev/service/proto/backendapi"
)

// ConnectionPages is what the routes need of the connection pages.
type ConnectionPages interface {
	Get(ctx context.Context, accountID, project string) (connpage.Page, error)
	Change(ctx context.Context, accountID, project string, c connpage.Change, by audit.Actor) (before, after connpage.Page, err error)
	File(connpage.Page) (name string, html []byte, err error)
}

func (a *API) getConnectionPage(c *call) (any, error) {
	p, err := a.Pages.Get(c.Context(), c.who.AccountID, c.project.ID)
	if err != nil {
		return nil, err
	}
	return a.pageOf(p), nil
}

func (a *API) changeConnectionPage(c *call) (any, error) {
	var body backendapi.ConnectionPageChange
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	change := connpage.Change{Version: body.Version, Title: body.Title, Description: body.Description, Theme: body.Theme, Accent: body.Accent,
		Capabilities: body.Capabilities, SupportURL: body.SupportURL, PrivacyURL: body.PrivacyURL}
	if body.Phrases != nil {
		phrases := make([]connpage.Phrase, 0, len(*body.Phrases))
		for _, p := range *body.Phrases {
			phrases = append(phrases, connpage.Phrase(p))
		}
		change.Phrases = &phrases
	}
	if body.Toggles != nil {
		toggles := make([]connpage.Toggle, 0, len(*body.Toggles))
		for _, t := range *body.Toggles {
			toggles = append(toggles, connpage.Toggle(t))
		}
		change.Toggles = &toggles
	}
	_, after, err := a.Pages.Change(c.Context(), c.who.AccountID, c.project.ID, change, c.by())
	if err != nil {
		return nil, err
	}
	return a.pageOf(after), nil
}

func (a *API) connectionPageFile(c *call) (any, error) {
	p, err := a.Pages.Get(c.Context(), c.who.AccountID, c.project.ID)
	if err != nil {
		return nil, err
	}
	name, html, err := a.Pages.File(p)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(html)
	return backendapi.ConnectionPageFile{Name: name, Version: p.Version, HTML: string(html), SHA256: hex.EncodeToString(sum[:])}, nil
}

func (a *API) pageOf(p connpage.Page) backendapi.ConnectionPage {
	out := backendapi.ConnectionPage{
		Project: p.Project, Version: p.Version, Title: p.Title, Description: p.Description, Theme: p.Theme, Accent: p.Accent,
		Capabilities: list(p.Capabilities), SupportURL: p.SupportURL, PrivacyURL: p.PrivacyURL, PageURL: a.SiteURL + "/connect/" + p.PageID,
		Phrases: make([]backendapi.ConnectionPagePhrase, 0, len(p.Phrases)), Toggles: make([]backendapi.ConnectionPageToggle, 0, len(p.Toggles)),
		UpdatedAt: timeOrNull(p.UpdatedAt), UpdatedBy: actorOrNull(p.UpdatedBy),
	}
	for _, phrase := range p.Phrases {
		out.Phrases = append(out.Phrases, backendapi.ConnectionPagePhrase(phrase))
	}
	for _, toggle := range p.Toggles {
		out.Toggles = append(out.Toggles, backendapi.ConnectionPageToggle(toggle))
	}
	return out
}

// pageRefusal turns the connection pages' errors into refusals; nil for others.
func pageRefusal(err error) *Refusal {
	var invalid *connpage.InvalidError
	var conflict *connpage.ConflictError
	switch {
	case errors.As(err, &invalid):
		return refusal(backendapi.CodeInvalidRequest, invalid.Message, "correct the field and try again")
	case errors.As(err, &conflict):
		return versionConflict("the connection page", conflict.Current)
	}
	return nil
}
