package tools

import (
	"context"
	"fmt"

	"github.com/service-dev/service/daemon/internal/backend"
)

const listProjectsText = `Lists the projects of the linked account: app id, name, platforms, how many keys and open sessions each has, when it was last active, what agents ` +
	`may do with its data (access), and its page of the dashboard. currentProject is the one that the working directory is about. ` +
	`Use it to find the project to pass to getAssistantConfig, getCredentialStatus, getProjectAnalytics or getConnectionPageConfig, or to explain to the person ` +
	`what a grant allows. A project is there once createSimulatorSession opened a session for it or generateConnectionModule minted its key. It needs no grant and changes nothing. ` +
	`It does not list sessions (getSessionStatus) nor tell who is linked (whoAmI). Needs a linked account: without one it answers status "auth_required", a normal step; see createSimulatorSession.`

type projectLister interface {
	// Projects lists the account's projects, by app id.
	Projects(ctx context.Context, target backend.Target) ([]backend.Project, error)
}

type listProjects struct {
	records
	source projectLister
}

type listProjectsArgs struct {
	OpenBrowser *bool `json:"openBrowser"`
}

type projectsAnswer struct {
	Status         string            `json:"status"`
	Projects       []backend.Project `json:"projects"`
	CurrentProject string            `json:"currentProject"`
	Summary        string            `json:"summary"`
}

const levelSchema = `{"type":"string","enum":["off","read","read_write"]}`

var projectSchema = `{"type":"object","properties":{
	"project":{"type":"string","description":"The app id."},
	"displayName":{"type":"string"},
	"platforms":{"type":"array","items":{"type":"string"}},
	"createdAt":{"type":"string","format":"date-time"},
	"lastActiveAt":` + optionalTime + `,
	"keys":{"type":"integer"},
	"openSessions":{"type":"integer"},
	"access":{"type":"object","properties":{
		"assistantConfig":{"type":"object","additionalProperties":` + levelSchema + `,"description":"A level for each field."},
		"credentials":` + levelSchema + `,"analytics":` + levelSchema + `}},
	"dashboardUrl":{"type":"string","format":"uri","description":"For the person, who signs in there."}}}`

func (t listProjects) definition() definition {
	return definition{run: t.run, Tool: Tool{
		Name: "listProjects", Title: "List the account's projects", Description: listProjectsText, NeedsAccount: true,
		Annotations: Annotations{ReadOnly: true, Idempotent: true},
		InputSchema: inputSchema(recordLinkArgument, ""),
		OutputSchema: outputSchema(`
			"status":{"type":"string","enum":["auth_required","ok"]},
			"projects":{"type":"array","items":`+projectSchema+`},
			"currentProject":{"type":"string","description":"What the working directory is about; empty: nothing names a project. It may not be listed yet."},`+
			summaryProperty, `"status","summary"`, true),
	}}
}

func (t listProjects) run(ctx context.Context, c call) (any, error) {
	var args listProjectsArgs
	if err := decode(c.args, &args); err != nil {
		return nil, err
	}
	return t.gate.run(ctx, c, args.OpenBrowser, func(ctx context.Context, target backend.Target) (any, error) {
		list, err := t.source.Projects(ctx, target)
		if err != nil {
			return nil, err
		}
		current, _ := t.projects.Project(ctx, "", c.who) // a manifest that cannot be read is no reason to list nothing
		return projectsAnswer{Status: "ok", Projects: tidyProjects(list), CurrentProject: current, Summary: describeProjects(list, current)}, nil
	})
}

// tidyProjects writes nothing as [] and {}: agents read those more easily than null.
func tidyProjects(list []backend.Project) []backend.Project {
	for i := range list {
		list[i].Platforms = orEmpty(list[i].Platforms)
		if list[i].Access.AssistantConfig == nil {
			list[i].Access.AssistantConfig = map[string]string{}
		}
	}
	return orEmpty(list)
}

func describeProjects(list []backend.Project, current string) string {
	var names []string
	here := ""
	for _, p := range list {
		names = append(names, p.ID)
		if p.ID == current {
			here = " The working directory is about " + current + "."
		}
	}
	switch len(list) {
	case 0:
		return "The account has no project yet; createSimulatorSession or generateConnectionModule makes one."
	case 1:
		return "The account has one project, " + names[0] + "." + here
	}
	return fmt.Sprintf("The account has %d projects: %s.%s", len(list), listed(names, 10), here)
}
