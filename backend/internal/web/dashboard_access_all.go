package web

import (
	"slices"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/grants"
)

// asDefault is the value of the choice that makes every project follow the account's unchanged default.
const asDefault = "default"

// accessForAll returns the grants that a bulk change sets, with their label.
func accessForAll(level string) (g grants.Grants, label string, err error) {
	i := slices.IndexFunc(levelNames, func(l levelChoice) bool { return string(l.Level) == level })
	if i < 0 {
		return g, "", errNotFound
	}
	chosen := levelNames[i]
	g = grants.Grants{Assistant: map[string]grants.Level{}, Credentials: chosen.Level, Analytics: chosen.Level}
	for _, field := range grants.Fields() {
		g.Assistant[field] = chosen.Level
	}
	return g, chosen.Label, nil
}

// accessForAllPage asks for confirmation before a bulk change, because it replaces the levels of individual projects.
func (w *Web) accessForAllPage(c *call) error {
	level := c.URL.Query().Get("level")
	label := "your default"
	if level != asDefault {
		var err error
		if _, label, err = accessForAll(level); err != nil {
			return err
		}
	}
	_, exceptions, err := w.Dashboard.Grants.All(c.Context(), c.account.ID)
	if err != nil {
		return err
	}
	text := []string{"It applies to every field of the assistant, to credentials and to analytics, in every project that you " +
		"have, from the agent's next call. It becomes your default, so that new projects get it too."}
	if level == asDefault {
		text = []string{"Your default applies to every project from the agent's next call."}
	}
	if n := len(exceptions); n > 0 {
		text = append(text, "What you set for "+count(n, "project")+" is replaced. Activity keeps a record of it.")
	}
	return w.confirm(c, confirmation{
		Nav: "access", Title: "Set all projects to " + label + "?", Text: text, Hidden: map[string]string{"level": level},
		Action: "/account/mcp-access/all", Label: "Set all projects", Back: "/account/mcp-access", Instead: "Keep the access",
	})
}

func (w *Web) changeAccessForAll(c *call) error {
	level := c.PostFormValue("level")
	change := func(mayRaise bool) error {
		return w.Dashboard.Grants.Follow(c.Context(), c.account.ID, "", mayRaise, audit.Person())
	}
	if level != asDefault {
		g, _, err := accessForAll(level)
		if err != nil {
			return err
		}
		change = func(mayRaise bool) error {
			return w.Dashboard.Grants.SetDefault(c.Context(), c.account.ID, g, true, mayRaise, audit.Person())
		}
	}
	return w.saveAccess(c, "/account/mcp-access", "access-all", change)
}
