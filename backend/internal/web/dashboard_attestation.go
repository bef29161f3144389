package web

import (
	"errors"
	"net/url"
	"strings"

	"github.com/service-dev/service/backend/internal/attest"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/credentials"
)

// attestForm is the data about attestation for the template "dashboard_gateway".
type attestForm struct {
	Action   string
	Counts   []total
	Installs []installRow
	First    string // URL of the list's first page; "" on the first page
	Next     string // URL of the list's next page; "" on the last page
	Refusals []attestRefusalRow
	// PlayKeys is set if keys are stored, and Unreadable if they cannot be decrypted.
	PlayKeys, Unreadable bool
	Version              int64
	// the settings as saved or entered
	Apps, Packages, Certificates, TestKey string
	Development                           bool
}

type installRow struct {
	attest.Install
	State        attest.State
	Attested     shownTime
	Short, Path  string
	CanBeRevoked bool
}

type attestRefusalRow struct {
	Platform, Reason, Count string
	Last                    shownTime
}

// attestation returns the data about a project's installs. entered are posted settings, or nil.
func (w *Web) attestation(c *call, entered *attest.Settings) (form attestForm, err error) {
	after := c.URL.Query().Get("after")
	o, err := w.Dashboard.Installs.Overview(c.Context(), c.account.ID, c.project.ID, after)
	if err != nil {
		return form, err
	}
	s := o.Settings
	if entered != nil {
		s = *entered
	}
	form = attestForm{Action: gatewayPath(c.project.ID) + "/attestation", PlayKeys: o.PlayKeys,
		Unreadable: o.Unreadable, Version: o.Settings.Version,
		Apps: strings.Join(s.AppleApps, "\n"), Packages: strings.Join(s.Packages, " "),
		Certificates: strings.Join(s.Certificates, "\n"), TestKey: s.TestKey, Development: s.AppleDevelopment}
	for _, state := range []attest.State{attest.Attested, attest.Expired, attest.Revoked} {
		form.Counts = append(form.Counts, total{capital(string(state)), grouped(o.Counts[state])})
	}
	if after != "" {
		form.First = installsPath(c.project.ID, "")
	}
	if o.Next != "" {
		form.Next = installsPath(c.project.ID, o.Next)
	}
	for _, i := range o.Latest {
		state := i.State(w.Now())
		form.Installs = append(form.Installs, installRow{i, state, showTime(i.AttestedAt), i.ID[:min(8, len(i.ID))],
			form.Action + "/installs/" + url.PathEscape(i.ID) + "/revoke?after=" + url.QueryEscape(after),
			state != attest.Revoked})
	}
	for _, r := range o.Refusals {
		form.Refusals = append(form.Refusals, attestRefusalRow{r.Platform, r.Reason, grouped(r.Count), showTime(r.LastAt)})
	}
	return form, nil
}

// installsPath returns the URL of the installs after a position, or of the latest ones.
func installsPath(project, after string) string {
	path := gatewayPath(project)
	if after != "" {
		path += "?after=" + url.QueryEscape(after)
	}
	return path + "#attestation"
}

// changeAttestation saves the apps whose installs may attest.
func (w *Web) changeAttestation(c *call) error {
	entered := attest.Settings{AppleApps: strings.Fields(c.PostFormValue(attest.FieldApple)),
		AppleDevelopment: c.PostFormValue("apple-development") == "on",
		Packages:         strings.Fields(c.PostFormValue(attest.FieldPackages)),
		Certificates:     strings.Fields(c.PostFormValue(attest.FieldCertificates)),
		TestKey:          strings.TrimSpace(strings.ReplaceAll(c.PostFormValue(attest.FieldTestKey), "\r\n", "\n")),
		Version:          c.formVersion()}
	ended, err := w.Dashboard.Installs.Set(c.Context(), c.account.ID, c.project.ID, entered, audit.Person())
	var f formErrors
	var invalid *attest.InvalidError
	switch {
	case errors.As(err, &invalid):
		f.add(invalid.Field, sentence(invalid.Message))
	case errors.Is(err, attest.ErrConflict):
		f.Problem = "The attestation settings have changed since you opened this page, and yours are not saved yet. " +
			"Save to replace them with yours."
	case ended:
		return c.done(err, gatewayPath(c.project.ID)+"#attestation", "attestation-ended")
	default:
		return c.done(err, gatewayPath(c.project.ID)+"#attestation", "attestation")
	}
	return w.showGatewayWith(c, f, nil, &entered)
}

// setPlayKeys stores the keys of Play Integrity, which no page shows again.
func (w *Web) setPlayKeys(c *call) error {
	replaced, err := w.Dashboard.Installs.SetPlayKeys(c.Context(), c.account.ID, c.project.ID,
		c.PostFormValue(attest.FieldDecryption), c.PostFormValue("verification-key"), audit.Person())
	var f formErrors
	var invalid *attest.InvalidError
	switch {
	case errors.As(err, &invalid):
		f.add(invalid.Field, sentence(invalid.Message))
	case errors.Is(err, credentials.ErrNotConfigured):
		f.Problem = "This backend cannot store keys: its operator has set no encryption key."
	case replaced:
		return c.done(err, gatewayPath(c.project.ID)+"#attestation", "play-keys-new")
	default:
		return c.done(err, gatewayPath(c.project.ID)+"#attestation", "play-keys")
	}
	return w.showGateway(c, f, nil)
}

func (w *Web) removePlayKeysPage(c *call) error {
	back := gatewayPath(c.project.ID)
	return w.confirm(c, confirmation{
		Nav: "projects", Title: "Remove the keys of Play Integrity of " + c.project.DisplayName + "?",
		Text: []string{"The stored keys are deleted here. Android installs can no longer attest, and their tokens end at " +
			"once. The keys remain in the Play Console."},
		Action: back + "/attestation/keys/remove", Label: "Remove", Back: back + "#attestation", Instead: "Keep them",
	})
}

func (w *Web) removePlayKeys(c *call) error {
	err := w.Dashboard.Installs.RemovePlayKeys(c.Context(), c.account.ID, c.project.ID, audit.Person())
	code := "play-keys-gone"
	if errors.Is(err, credentials.ErrNotSet) {
		err, code = nil, "unchanged"
	}
	return c.done(err, gatewayPath(c.project.ID)+"#attestation", code)
}

// revokeInstall ends an install for good. It returns to the page of the list that the form was on.
func (w *Web) revokeInstall(c *call) error {
	err := w.Dashboard.Installs.Revoke(c.Context(), c.account.ID, c.project.ID, c.PathValue("install"), audit.Person())
	if errors.Is(err, attest.ErrNoInstall) {
		err = errNotFound
	}
	return c.done(err, installsPath(c.project.ID, c.URL.Query().Get("after")), "revoked-install")
}
