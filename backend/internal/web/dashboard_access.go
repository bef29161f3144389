package web

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/backend/internal/projects"
)

// listedExceptions limits the listed projects that have their own levels.
const listedExceptions = 50

// accessPage is the data of the template "dashboard_access".
type accessPage struct {
	Done       *notice
	Default    []accessGroup
	Bulk       []levelChoice  // levels that every project can be set to
	Project    *projectAccess // the selected project; nil if none is selected
	Exceptions []accessException
	More       int      // number of exceptions that are not listed
	Others     []choice // further projects to select
	Hidden     int      // number of further projects
}

// projectAccess is the form for one project.
type projectAccess struct {
	projectRow
	Groups []accessGroup
	HasOwn bool // the project has its own levels
}

// accessException is a project that has its own levels, which What lists.
type accessException struct {
	projectRow
	What, Show string
}

type accessGroup struct {
	Title, About string
	Rows         []accessRow
}

// accessRow is a group of radio buttons. Name is the name of the inputs. Their IDs start with ID, which is unique to
// the project.
type accessRow struct {
	Name, ID, Title, About string
	Choices                []levelChoice
}

type levelChoice struct {
	Level grants.Level
	Label string
	On    bool
	Mark  string // such as default; "" for other levels
}

var levelNames = []levelChoice{
	{Level: grants.Off, Label: "Off"},
	{Level: grants.Read, Label: "Read"},
	{Level: grants.ReadWrite, Label: "Read + Write"},
}

const fieldPrefix = "assistant."

// ofDefault is the prefix of the element IDs in the form for the account's default access levels.
const ofDefault = "default"

var fieldAbout = map[string]string{
	grants.RealtimeModel: "which model talks with your app's users",
	grants.Voice:         "which voice they hear",
	grants.MemoryModel:   "what is kept from one conversation to the next",
	grants.TextModel:     "which model your app gets when it asks the AI gateway for \"assistant\"",
	grants.SessionMemory: "what is kept within a conversation",
	grants.Sounds:        "the short sounds of listening and thinking",
	grants.GatewayUsage: "what the app's calls through the AI gateway cost, its caps and your credit; " +
		"Read + Write grants no more than Read today",
}

// accessGroups returns the radio buttons for a project, or for the account's default. Their IDs start with prefix. The
// levels of usual are marked as the default, or as built in for the account's default itself.
func accessGroups(prefix string, g, usual grants.Grants) []accessGroup {
	mark := "default"
	if prefix == ofDefault {
		mark = "built in"
	}
	row := func(name, title, about string, level, standard grants.Level) accessRow {
		r := accessRow{Name: name, ID: prefix + ":" + name, Title: title, About: about}
		for _, option := range levelNames {
			option.On = option.Level == level
			if option.Level == standard {
				option.Mark = mark
			}
			r.Choices = append(r.Choices, option)
		}
		return r
	}
	config := accessGroup{Title: "Assistant", About: "Memory within a conversation and sounds have no effect yet. The " +
		"conversation model and the voice have an effect only on servers with realtime models, and memory between " +
		"conversations only on servers that can encrypt it. " +
		"Read: an agent sees the setting and may see what it costs. " +
		"Write: it may change it; you can undo that under Activity."}
	for _, f := range grants.Fields() {
		config.Rows = append(config.Rows,
			row(fieldPrefix+f, settingNames[f], fieldAbout[f], g.Assistant[f], usual.Assistant[f]))
	}
	return []accessGroup{
		config,
		{Title: "Data", About: "No level ever shows an agent the value of a credential.", Rows: []accessRow{
			row("credentials", "Credentials", "Read: whether a provider's key is set, and its masked end. "+
				"Write: ask you for a key, by a link to a page where only you paste it.", g.Credentials, usual.Credentials),
			row("analytics", "Analytics", "Read: counts of your shipped app's sessions, events and errors. "+
				"Read + Write grants no more than Read today, because there is nothing to write yet.",
				g.Analytics, usual.Analytics),
		}},
	}
}

func (w *Web) access(c *call) error {
	all, err := w.Dashboard.Projects.List(c.Context(), c.account.ID)
	if err != nil {
		return err
	}
	usual, exceptions, err := w.Dashboard.Grants.All(c.Context(), c.account.ID)
	if err != nil {
		return err
	}
	page := accessPage{Done: c.notice(), Bulk: levelNames, Default: accessGroups(ofDefault, usual, grants.Default())}
	id := w.selectedProject(c)
	page.Others, page.Hidden = otherProjects(all, id)
	for _, p := range all {
		exception, hasOwn := exceptions[p.ID]
		if !hasOwn {
			exception.Grants = usual
		}
		row := projectRows([]projects.Project{p})[0]
		if p.ID == id {
			page.Project = &projectAccess{row, accessGroups("p0", exception.Grants, usual), hasOwn}
		}
		switch {
		case hasOwn && len(page.Exceptions) < listedExceptions:
			page.Exceptions = append(page.Exceptions,
				accessException{row, strings.Join(ownLevels(exception.Own, usual), ", "), accessPath(p.ID)})
		case hasOwn:
			page.More++
		}
	}
	return w.render(c, http.StatusOK, "dashboard_access", page)
}

// otherProjects is like projectOptions, but excludes the project that is already shown.
func otherProjects(all []projects.Project, shown string) (options []choice, hidden int) {
	return projectOptions(slices.DeleteFunc(slices.Clone(all), func(p projects.Project) bool { return p.ID == shown }), "")
}

// selectedProject returns the ID of the project in ?project=, or "".
func (w *Web) selectedProject(c *call) string {
	p, err := w.Dashboard.Projects.Get(c.Context(), c.account.ID, c.URL.Query().Get("project"))
	if err != nil {
		return ""
	}
	return p.ID
}

// ownLevels lists a project's own levels, such as "Voice: Off".
func ownLevels(own []grants.Row, usual grants.Grants) (all []string) {
	titles := map[grants.Capability]string{grants.Credentials: "Credentials", grants.Analytics: "Analytics"}
	for _, r := range own {
		text := cmp.Or(settingNames[r.Field], titles[r.Capability]) + ": " + levelName(r.Level)
		if usual.Of(r.Capability, r.Field) == r.Level {
			text += " (as your default now)"
		}
		all = append(all, text)
	}
	return all
}

func levelName(l grants.Level) string {
	for _, one := range levelNames {
		if one.Level == l {
			return one.Label
		}
	}
	return string(l)
}

// levelDifferences lists the levels of g that differ from usual, such as "Voice: Off".
func levelDifferences(g, usual grants.Grants) (all []string) {
	shown, standard := accessGroups("", g, usual), accessGroups("", usual, usual)
	for i, group := range shown {
		for j, row := range group.Rows {
			if level := row.level(); level.Level != standard[i].Rows[j].level().Level {
				all = append(all, row.Title+": "+level.Label)
			}
		}
	}
	return all
}

// level returns the selected choice.
func (r accessRow) level() levelChoice {
	for _, choice := range r.Choices {
		if choice.On {
			return choice
		}
	}
	return levelChoice{}
}

func (w *Web) changeAccess(c *call) error {
	p, err := w.Dashboard.Projects.Get(c.Context(), c.account.ID, c.PostFormValue("project"))
	if err != nil {
		return err
	}
	if c.PostFormValue("follow") != "" {
		return w.saveAccess(c, "/account/mcp-access", "access-back", func(mayRaise bool) error {
			return w.Dashboard.Grants.Follow(c.Context(), c.account.ID, p.ID, mayRaise, audit.Person())
		})
	}
	before, err := w.Dashboard.Grants.Of(c.Context(), c.account.ID, p.ID)
	if err != nil {
		return err
	}
	after := grantsFrom(c, before)
	if len(levelDifferences(after, before)) == 0 && isKnownAccess(after) {
		return c.done(nil, accessPath(p.ID), "unchanged")
	}
	return w.saveAccess(c, accessPath(p.ID), "access", func(mayRaise bool) error {
		return w.Dashboard.Grants.Set(c.Context(), c.account.ID, p.ID, after, mayRaise, audit.Person())
	})
}

// changeDefaultAccess changes the account's default. Projects keep their own levels.
func (w *Web) changeDefaultAccess(c *call) error {
	before, _, err := w.Dashboard.Grants.All(c.Context(), c.account.ID)
	if err != nil {
		return err
	}
	after := grantsFrom(c, before)
	if len(levelDifferences(after, before)) == 0 && isKnownAccess(after) {
		return c.done(nil, "/account/mcp-access", "unchanged")
	}
	return w.saveAccess(c, "/account/mcp-access", "access", func(mayRaise bool) error {
		return w.Dashboard.Grants.SetDefault(c.Context(), c.account.ID, after, false, mayRaise, audit.Person())
	})
}

// saveAccess calls change, which changes agents' access, and redirects to the path with the code. If the change raises
// a level, it asks for a proof first. Our forms post no level that the service would refuse.
func (w *Web) saveAccess(c *call, path, code string, change func(mayRaise bool) error) error {
	err := change(false)
	if errors.Is(err, grants.ErrRaises) {
		ok, notProven := w.isProven(c, "Give agents more access?",
			"Your linked coding agents may do more from their next call on.")
		if !ok {
			return notProven
		}
		err = change(true)
	}
	var invalid *grants.InvalidError
	if errors.As(err, &invalid) {
		return errForbidden
	}
	return c.done(err, path, code)
}

// isKnownAccess reports whether the page offers every level in g.
func isKnownAccess(g grants.Grants) bool {
	return !slices.ContainsFunc(accessGroups("", g, g), func(group accessGroup) bool {
		return slices.ContainsFunc(group.Rows, func(r accessRow) bool { return r.level().Label == "" })
	})
}

func accessPath(id string) string { return "/account/mcp-access?project=" + url.QueryEscape(id) }

// grantsFrom reads the posted levels, and keeps the current level of each setting that was not posted.
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
