package tools

import (
	"context"
	"fmt"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/proto/backendapi"
)

type listProjects struct {
	records
}

type listProjectsArgs struct {
	linkArg
}

type projectsAnswer struct {
	Status         string               `json:"status"`
	Projects       []backendapi.Project `json:"projects"`
	CurrentProject string               `json:"currentProject"`
	Summary        string               `json:"summary"`
}

// levels lists the levels of a grant, lowest first.
var levels = []string{backendapi.LevelOff, backendapi.LevelRead, backendapi.LevelReadWrite}

func (t listProjects) definition() definition {
	return define(Tool{
		Name: "listProjects", Title: "List the account's projects", NeedsAccount: true,
		Annotations: Annotations{ReadOnly: true, Idempotent: true},
		OutputSchema: gatedAnswersOf[projectsAnswer]([]string{"ok"},
			on("projects.project", says("The app id.")),
			on("projects.createdAt", format("date-time")),
			on("projects.lastActiveAt", format("date-time")),
			on("projects.access.assistantConfig", oneOf(levels...), says("A level for each field.")),
			on("projects.access.credentials", oneOf(levels...)),
			on("projects.access.analytics", oneOf(levels...)),
			on("projects.dashboardUrl", format("uri"), says("For the user, who signs in there.")),
			on("currentProject", says("The working directory's project; empty if it has none. It may not be listed yet.")),
		),
	}, t.run)
}

func (t listProjects) run(ctx context.Context, c call, args listProjectsArgs) (any, error) {
	return t.gate.run(ctx, c, args.OpenBrowser, func(ctx context.Context, target backend.Target) (any, error) {
		list, err := t.source.Projects(ctx, target)
		if err != nil {
			return nil, err
		}
		current, _ := t.sessions.Project(ctx, "", c.who) // list projects even if the manifest is unreadable
		return projectsAnswer{Status: "ok", Projects: tidyProjects(list), CurrentProject: current,
			Summary: describeProjects(list, current)}, nil
	})
}

// tidyProjects replaces nil lists and maps with empty ones, which agents read more easily than null.
func tidyProjects(list []backendapi.Project) []backendapi.Project {
	for i := range list {
		list[i].Platforms = orEmpty(list[i].Platforms)
		if list[i].Access.AssistantConfig == nil {
			list[i].Access.AssistantConfig = map[string]string{}
		}
	}
	return orEmpty(list)
}

func describeProjects(list []backendapi.Project, current string) string {
	var names []string
	here := ""
	for _, p := range list {
		names = append(names, p.Project)
		if p.Project == current {
			here = " The working directory belongs to " + current + "."
		}
	}
	switch len(list) {
	case 0:
		return "The account has no project yet; createSimulatorSession or generateConnectionModule creates one."
	case 1:
		return "The account has one project, " + names[0] + "." + here
	}
	return fmt.Sprintf("The account has %d projects: %s.%s", len(list), listed(names, 10), here)
}
