package web

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/backend/internal/projects"
)

// accessShown limits the projects whose forms one page shows. The others can be selected.
const accessShown = 4

// accessPage is the data of the template "dashboard_access".
type accessPage struct {
	Done     *notice
	Projects []projectAccess
	Others   []choice
}

// projectAccess is the form for one project.
type projectAccess struct {
	projectRow
	Groups []accessGroup
}

type accessGroup struct {
	Title, About string
	Rows         []accessRow
}

// accessRow is one group of radio buttons. Name is the name of the inputs. Their ids start with ID, which is unique to
// the project.
type accessRow struct {
	Name, ID, Title, About string
	Choices                []levelChoice
}

type levelChoice struct {
	Level   grants.Level
	Label   string
	On      bool
	Default bool
}

var levelNames = []levelChoice{
	{Level: grants.Off, Label: "Off"},
	{Level: grants.Read, Label: "Read"},
	{Level: grants.ReadWrite, Label: "Read + Write"},
}

const fieldPrefix = "assistant."

var fieldAbout = map[string]string{
	grants.RealtimeModel: "which model talks with your app's users",
	grants.Voice:         "which voice they hear",
	grants.MemoryModel:   "what is kept from one conversation to the next",
	grants.TextModel:     "which model your app gets when it asks the AI gateway for \"assistant\"",
	grants.SessionMemory: "what is kept within a conversation",
	grants.Sounds:        "the short sounds of listening and thinking",
	grants.GatewayUsage: "what the app's calls through the AI gateway cost, its caps and your credit; " +
		"there is nothing to write",
}

// accessGroups returns the radio buttons for one project. Their ids start with prefix.
func accessGroups(prefix string, g grants.Grants) []accessGroup {
	standard := grants.Default()
	row := func(name, title, about string, level, standard grants.Level) accessRow {
		r := accessRow{Name: name, ID: prefix + ":" + name, Title: title, About: about}
		levels := grants.Levels(strings.TrimPrefix(name, fieldPrefix))
		for _, option := range levelNames[:len(levels)] {
			option.On, option.Default = option.Level == level, option.Level == standard
			r.Choices = append(r.Choices, option)
		}
		return r
	}
	config := accessGroup{Title: "Assistant", About: "Read: an agent sees the setting and may see what it costs. " +
		"Write: it may change it; you can undo that under Activity."}
	for _, f := range grants.Fields() {
		config.Rows = append(config.Rows,
			row(fieldPrefix+f, settingNames[f], fieldAbout[f], g.Assistant[f], standard.Assistant[f]))
	}
	return []accessGroup{
		config,
		{Title: "Data", About: "No level ever shows an agent the value of a credential.", Rows: []accessRow{
			row("credentials", "Credentials", "Read: whether a provider's key is set, and its masked end. "+
				"Write: ask you for a key, by a link to a page where only you paste it.", g.Credentials, standard.Credentials),
			row("analytics", "Analytics", "Read: counts of your shipped app's sessions, events and errors. "+
				"There is nothing to write yet.", g.Analytics, standard.Analytics),
		}},
	}
}

func (w *Web) access(c *call) error {
	all, err := w.Dashboard.Projects.List(c.Context(), c.account.ID)
	if err != nil {
		return err
	}
	page := accessPage{Done: c.notice()}
	shown, rest := w.accessOrder(c, all)
	for i, p := range shown {
		g, err := w.Dashboard.Grants.Of(c.Context(), c.account.ID, p.ID)
		if err != nil {
			return err
		}
		row := projectRows([]projects.Project{p})[0]
		page.Projects = append(page.Projects, projectAccess{row, accessGroups("p"+strconv.Itoa(i), g)})
	}
	for _, p := range rest {
		page.Others = append(page.Others, choice{ID: p.ID, Label: p.DisplayName})
	}
	return w.render(c, http.StatusOK, "dashboard_access", page)
}

// accessOrder moves the project of ?project= to the front, and separately returns the projects that do not fit.
func (w *Web) accessOrder(c *call, all []projects.Project) (shown, rest []projects.Project) {
	if id := c.URL.Query().Get("project"); id != "" {
		if p, err := w.Dashboard.Projects.Get(c.Context(), c.account.ID, id); err == nil {
			id = p.ID
		}
		if i := slices.IndexFunc(all, func(p projects.Project) bool { return p.ID == id }); i > 0 {
			all = slices.Concat(all[i:i+1], all[:i], all[i+1:])
		}
	}
	n := min(len(all), accessShown)
	return all[:n], all[n:]
}

func (w *Web) changeAccess(c *call) error {
	p, err := w.Dashboard.Projects.Get(c.Context(), c.account.ID, c.PostFormValue("project"))
	if err != nil {
		return err
	}
	g, err := w.Dashboard.Grants.Of(c.Context(), c.account.ID, p.ID)
	if err != nil {
		return err
	}
	before := accessGroups("", g)
	g = grantsFrom(c, g)
	if slices.EqualFunc(before, accessGroups("", g), sameLevels) {
		return c.done(nil, accessPath(p.ID), "unchanged")
	}
	var invalid *grants.InvalidError
	err = w.Dashboard.Grants.Set(c.Context(), c.account.ID, p.ID, g, audit.Person())
	if errors.As(err, &invalid) { // our forms post no other levels
		return errForbidden
	}
	return c.done(err, accessPath(p.ID), "access")
}

func sameLevels(a, b accessGroup) bool {
	return slices.EqualFunc(a.Rows, b.Rows, func(x, y accessRow) bool { return slices.Equal(x.Choices, y.Choices) })
}

func accessPath(id string) string { return "/account/mcp-access?project=" + url.QueryEscape(id) }

// grantsFrom reads the posted levels, and keeps the current level where none was posted.
func grantsFrom(c *call, g grants.Grants) grants.Grants {
	read := func(name string, level grants.Level) grants.Level {
		if posted := c.PostFormValue(name); posted != "" {
			return grants.Level(posted)
		}
		return level
	}
	config := map[string]grants.Level{}
	for _, f := range grants.Fields() {
		config[f] = read(fieldPrefix+f, g.Assistant[f])
	}
	return grants.Grants{
		Assistant: config, Credentials: read("credentials", g.Credentials), Analytics: read("analytics", g.Analytics),
	}
}
