package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/service-dev/service/daemon/internal/backend"
)

const setConnectionPageConfigText = `Changes a project's connection page, on which the app's users connect their glasses. Pass the version that getConnectionPageConfig told and only the fields to change; ` +
	`the others stay, and a list that is passed replaces the whole list. The hosted page changes at once; call generateConnectionModule again to bring the copy in the project (connect.html) up to date. ` +
	`Use it so that the page says what the app really does: capabilities, phrases and toggles as inspectIntegration finds them. ` +
	`If somebody changed the page since it was read, nothing is changed and it answers version_conflict. It needs no grant; the owner sees each change under Activity of the dashboard and can undo it there. ` +
	`It does not change the app itself nor what the glasses do. Needs a linked account: without one it answers status "auth_required", a normal step; see createSimulatorSession.`

type pageChanger interface {
	// ChangeConnectionPage gives the settings after the change.
	ChangeConnectionPage(ctx context.Context, target backend.Target, project string, change backend.ConnectionPageChange) (backend.ConnectionPage, error)
}

type setConnectionPageConfig struct {
	records
	source pageChanger
}

type setConnectionPageConfigArgs struct {
	Project      string             `json:"project"`
	Version      *integer           `json:"version"`
	Title        *string            `json:"title"`
	Description  *string            `json:"description"`
	Theme        *string            `json:"theme"`
	Accent       *string            `json:"accent"`
	Capabilities *[]string          `json:"capabilities"`
	Phrases      *[]json.RawMessage `json:"phrases"`
	Toggles      *[]json.RawMessage `json:"toggles"`
	SupportURL   *string            `json:"supportUrl"`
	PrivacyURL   *string            `json:"privacyUrl"`
	OpenBrowser  *bool              `json:"openBrowser"`
}

type changedPageAnswer struct {
	Status  string   `json:"status"`
	Changed []string `json:"changed"`
	backend.ConnectionPage
	Summary string `json:"summary"`
}

func (t setConnectionPageConfig) definition() definition {
	return definition{run: t.run, Tool: Tool{
		Name: "setConnectionPageConfig", Title: "Change the connection page", Description: setConnectionPageConfigText, NeedsAccount: true,
		Annotations: Annotations{OpenWorld: true},
		InputSchema: inputSchema(projectArgument+","+versionArgument+`,
			"title":{"type":"string","maxLength":80},
			"description":{"type":"string","maxLength":400,"description":"One line."},
			"theme":{"type":"string","enum":["auto","light","dark"]},
			"accent":{"type":"string","pattern":"^#[0-9a-fA-F]{6}$"},
			"supportUrl":{"type":"string","description":"An https address; empty: no link."},
			"privacyUrl":{"type":"string","description":"An https address; empty: no link."},`+
			capabilitiesProperty+","+phrasesProperty+","+togglesProperty+","+recordLinkArgument, `"version"`),
		OutputSchema: outputSchema(`
			"status":{"type":"string","enum":["auth_required","changed","unchanged"],"description":"unchanged: it was set so already."},
			"changed":{"type":"array","items":{"type":"string"},"description":"The fields that this call set."},
			"currentVersion":{"type":"integer","description":"With version_conflict: the version now."},`+
			pageProperties+summaryProperty, `"status","summary"`, true),
	}}
}

func (t setConnectionPageConfig) run(ctx context.Context, c call) (any, error) {
	var args setConnectionPageConfigArgs
	if err := decode(c.args, &args); err != nil {
		return nil, err
	}
	if err := checkVersion(args.Version, "getConnectionPageConfig"); err != nil {
		return nil, err
	}
	change, fields, err := args.change()
	if err != nil {
		return nil, err
	}
	if len(fields) == 0 {
		return nil, nothingToChange("title, description, theme, accent, capabilities, phrases, toggles, supportUrl, privacyUrl")
	}
	about := recordCall{project: args.Project, openBrowser: args.OpenBrowser, reads: "getConnectionPageConfig"}
	return t.records.run(ctx, c, about, func(ctx context.Context, target backend.Target, project string) (any, error) {
		after, err := t.source.ChangeConnectionPage(ctx, target, project, change)
		if err != nil {
			return nil, err
		}
		status, changed := changedBy(change.Version, after.Version, fields)
		what := "Nothing was changed, it was set so already. "
		if status == "changed" {
			what = fmt.Sprintf("Changed %s. ", strings.Join(changed, ", "))
		}
		return changedPageAnswer{Status: status, Changed: changed, ConnectionPage: tidyPage(after), Summary: what + describePage(after)}, nil
	})
}

// listOf reads a list whose items are as strict about names as the arguments are: a word that is not known would be lost.
func listOf[T any](name string, raw *[]json.RawMessage) (*[]T, error) {
	if raw == nil {
		return nil, nil
	}
	list := make([]T, len(*raw))
	for i, one := range *raw {
		if err := decodeInner(fmt.Sprintf("%s[%d]", name, i), one, &list[i]); err != nil {
			return nil, err
		}
	}
	return &list, nil
}

// change gives what to change and the names of its fields.
func (a setConnectionPageConfigArgs) change() (backend.ConnectionPageChange, []string, error) {
	phrases, err := listOf[backend.ConnectionPagePhrase]("phrases", a.Phrases)
	if err != nil {
		return backend.ConnectionPageChange{}, nil, err
	}
	toggles, err := listOf[backend.ConnectionPageToggle]("toggles", a.Toggles)
	if err != nil {
		return backend.ConnectionPageChange{}, nil, err
	}
	var n named
	n.add("title", a.Title != nil)
	n.add("description", a.Description != nil)
	n.add("theme", a.Theme != nil)
	n.add("accent", a.Accent != nil)
	n.add("capabilities", a.Capabilities != nil)
	n.add("phrases", a.Phrases != nil)
	n.add("toggles", a.Toggles != nil)
	n.add("supportUrl", a.SupportURL != nil)
	n.add("privacyUrl", a.PrivacyURL != nil)
	return backend.ConnectionPageChange{
		Version: int64(*a.Version), Title: a.Title, Description: a.Description, Theme: a.Theme, Accent: a.Accent, Capabilities: a.Capabilities,
		Phrases: phrases, Toggles: toggles, SupportURL: a.SupportURL, PrivacyURL: a.PrivacyURL,
	}, n, nil
}
