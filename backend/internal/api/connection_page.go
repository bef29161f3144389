package api

import (
	"crypto/sha256"
	"encoding/hex"
	"reflect"
	"slices"
	"strings"

	"github.com/service-dev/service/backend/internal/connpage"
	"github.com/service-dev/service/proto/backendapi"
)

func (a *API) getConnectionPage(c *call) (any, error) {
	p, err := a.Pages.Get(c.Context(), c.who.AccountID, c.project.ID)
	return a.pageOf(p), err
}

func (a *API) changeConnectionPage(c *call, body backendapi.ConnectionPageChange) (any, error) {
	change := connpage.Change{
		Version: body.Version, Title: body.Title, Description: body.Description, Theme: body.Theme, Accent: body.Accent,
		Capabilities: body.Capabilities, SupportURL: body.SupportURL, PrivacyURL: body.PrivacyURL,
	}
	if body.Phrases != nil {
		phrases := convert(*body.Phrases,
			func(p backendapi.ConnectionPagePhrase) connpage.Phrase { return connpage.Phrase(p) })
		change.Phrases = &phrases
	}
	if body.Toggles != nil {
		toggles := convert(*body.Toggles,
			func(t backendapi.ConnectionPageToggle) connpage.Toggle { return connpage.Toggle(t) })
		change.Toggles = &toggles
	}
	before, after, err := a.Pages.Change(c.Context(), c.who.AccountID, c.project.ID, change, c.by())
	if err != nil {
		return nil, err
	}
	answer := a.pageOf(after)
	answer.Changed = changedFields(a.pageOf(before), answer, []string{"title", "description", "theme", "accent",
		"capabilities", "phrases", "toggles", "supportUrl", "privacyUrl"})
	return answer, nil
}

// changedFields returns the fields in names, by their JSON names, that differ between two records.
func changedFields[T any](before, after T, names []string) []string {
	var changed []string
	was, is := reflect.ValueOf(before), reflect.ValueOf(after)
	for i := range was.NumField() {
		name, _, _ := strings.Cut(was.Type().Field(i).Tag.Get("json"), ",")
		if slices.Contains(names, name) && !reflect.DeepEqual(was.Field(i).Interface(), is.Field(i).Interface()) {
			changed = append(changed, name)
		}
	}
	return changed
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
	return backendapi.ConnectionPageFile{
		Name: name, Version: p.Version, HTML: string(html), SHA256: hex.EncodeToString(sum[:]),
	}, nil
}

func (a *API) pageOf(p connpage.Page) backendapi.ConnectionPage {
	return backendapi.ConnectionPage{
		Project: p.Project, Version: p.Version, Title: p.Title, Description: p.Description, Theme: p.Theme, Accent: p.Accent,
		Capabilities: list(p.Capabilities), SupportURL: p.SupportURL, PrivacyURL: p.PrivacyURL,
		PageURL: a.SiteURL + "/connect/" + p.PageID, UpdatedAt: timeOrNull(p.UpdatedAt), UpdatedBy: actorOrNull(p.UpdatedBy),
		Phrases: convert(p.Phrases, func(p connpage.Phrase) backendapi.ConnectionPagePhrase {
			return backendapi.ConnectionPagePhrase(p)
		}),
		Toggles: convert(p.Toggles, func(t connpage.Toggle) backendapi.ConnectionPageToggle {
			return backendapi.ConnectionPageToggle(t)
		}),
	}
}
