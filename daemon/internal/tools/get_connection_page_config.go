package tools

import (
	"context"
	"fmt"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/proto/glasses/guide"
)

const getConnectionPageConfigText = `Reads the settings of a project's connection page: the page on which the app's users connect their glasses and see what the app does with them, what they can say and ` +
	`which switches they have. Title, description, theme, accent, capabilities, phrases, toggles, links for help and privacy, the version that setConnectionPageConfig needs, ` +
	`and pageUrl, where this backend hosts the page. Use it before setConnectionPageConfig, or to show the person the page. It needs no grant. ` +
	`It does not tell what the app really uses (inspectIntegration), and it is not the simulator page (createSimulatorSession). ` +
	`generateConnectionModule writes the page as connect.html beside the module. Needs a linked account: without one it answers status "auth_required", a normal step; see createSimulatorSession.`

type pageReader interface {
	ConnectionPage(ctx context.Context, target backend.Target, project string) (backend.ConnectionPage, error)
}

type getConnectionPageConfig struct {
	records
	source pageReader
}

type pageAnswer struct {
	Status string `json:"status"`
	backend.ConnectionPage
	Summary string `json:"summary"`
}

var (
	phrasesProperty = `"phrases":{"type":"array","maxItems":20,"items":{"type":"object","properties":{
		"phrase":{"type":"string","minLength":1,"maxLength":80},"does":{"type":"string","maxLength":120}},"required":["phrase"]},"description":"What the user can say, and what it does."}`
	togglesProperty = `"toggles":{"type":"array","maxItems":20,"items":{"type":"object","properties":{
		"id":{"type":"string","pattern":"^[a-z][a-z0-9_-]{0,31}$"},"label":{"type":"string","minLength":1,"maxLength":80},"on":{"type":"boolean","description":"Its state at first."}},"required":["id","label"]},"description":"Switches that the user sees."}`
	capabilitiesProperty = `"capabilities":{"type":"array","items":{"type":"string","enum":[` + quoted(guide.CapabilityIDs()) + `]},"description":"What the page says that the app does with the glasses."}`

	pageProperties = `
	"project":{"type":"string"},
	"version":{"type":"integer","minimum":0,"description":"Counts changes. Pass it to setConnectionPageConfig."},
	"title":{"type":"string"},
	"description":{"type":"string"},
	"theme":{"type":"string","enum":["auto","light","dark"]},
	"accent":{"type":"string","description":"A colour, #rrggbb."},
	"supportUrl":{"type":"string","description":"Empty: no link."},
	"privacyUrl":{"type":"string","description":"Empty: no link."},
	"pageUrl":{"type":"string","format":"uri","description":"The hosted page. Anybody may open it."},
	"updatedAt":` + optionalTime + `,
	"updatedBy":` + optional(`"type":"string"`) + `,` + phrasesProperty + `,` + togglesProperty + `,` + capabilitiesProperty + `,`
)

func (t getConnectionPageConfig) definition() definition {
	return definition{run: t.run, Tool: Tool{
		Name: "getConnectionPageConfig", Title: "Read the connection page's settings", Description: getConnectionPageConfigText, NeedsAccount: true,
		Annotations: Annotations{ReadOnly: true, Idempotent: true},
		InputSchema: inputSchema(projectArgument+","+recordLinkArgument, ""),
		OutputSchema: outputSchema(`
			"status":{"type":"string","enum":["auth_required","ok"]},`+pageProperties+summaryProperty, `"status","summary"`, true),
	}}
}

func (t getConnectionPageConfig) run(ctx context.Context, c call) (any, error) {
	var args recordArgs
	if err := decode(c.args, &args); err != nil {
		return nil, err
	}
	return t.records.run(ctx, c, recordCall{project: args.Project, openBrowser: args.OpenBrowser}, func(ctx context.Context, target backend.Target, project string) (any, error) {
		page, err := t.source.ConnectionPage(ctx, target, project)
		if err != nil {
			return nil, err
		}
		return pageAnswer{Status: "ok", ConnectionPage: tidyPage(page), Summary: describePage(page)}, nil
	})
}

func tidyPage(p backend.ConnectionPage) backend.ConnectionPage {
	p.Capabilities, p.Phrases, p.Toggles = orEmpty(p.Capabilities), orEmpty(p.Phrases), orEmpty(p.Toggles)
	return p
}

func describePage(p backend.ConnectionPage) string {
	return fmt.Sprintf("The connection page of %s at version %d is %q (%s, %s), capabilities: %d, phrases: %d, switches: %d. The person can look at it at %s.",
		p.Project, p.Version, p.Title, p.Theme, p.Accent, len(p.Capabilities), len(p.Phrases), len(p.Toggles), p.PageURL)
}
