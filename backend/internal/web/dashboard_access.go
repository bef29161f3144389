package web

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/backend/internal/projects"
)

// accessShown are the projects whose forms fit on one page; the others are links.
const accessShown = 4

// accessPage is what the template "dashboard_access" shows.
type accessPage struct {
	formErrors
	Done     *notice
	Projects []projectAccess
	Others   []choice // to be shown instead
}

// projectAccess is the form of one project.
type projectAccess struct {
	projectRow
	Groups []accessGroup
}

type accessGroup struct {
	Title, About string
	Rows         []accessRow
}

// accessRow is one set of radio buttons; Name is that of the inputs, ID makes theirs unlike those of other projects.
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

var levelNames = []levelChoice{{Level: grants.Off, Label: "Off"}, {Level: grants.Read, Label: "Read"}, {Level: grants.ReadWrite, Label: "Read + Write"}}

const fieldPrefix = "assistant."

var fieldAbout = map[string]string{
	grants.RealtimeModel: "which model talks with your app's users", grants.Voice: "which voice they hear",
	grants.MemoryModel: "what is kept from one conversation to the next", grants.SessionMemory: "what is kept within a conversation",
	grants.Sounds: "the short sounds of listening and thinking",
}

// groupsOf are the radio buttons of one project; prefix makes their ids unlike those of others.
func groupsOf(prefix string, g grants.Grants) []accessGroup {
	standard := grants.Default()
	row := func(name, title, about string, is, usual grants.Level) accessRow {
		r := accessRow{Name: name, ID: prefix + ":" + name, Title: title, About: about}
		for _, c := range levelNames {
			c.On, c.Default = c.Level == is, c.Level == usual
			r.Choices = append(r.Choices, c)
		}
		return r
	}
	config := accessGroup{Title: "Assistant", About: "Read: an agent sees the setting and may see what it costs. Write: it may change it; you can undo that under Activity."}
	for _, f := range grants.Fields() {
		config.Rows = append(config.Rows, row(fieldPrefix+f, settingNames[f], fieldAbout[f], g.Assistant[f], standard.Assistant[f]))
	}
	return []accessGroup{
		config,
		{Title: "Data", About: "No level ever shows an agent the value of a credential.", Rows: []accessRow{
			row("credentials", "Credentials", "Read: whether a provider's key is set, and its masked end. Write: ask you for a key, by a link to a page where only you paste it.", g.Credentials, standard.Credentials),
			row("analytics", "Analytics", "Read: counts of your shipped app's sessions, events and errors. There is nothing to write yet.", g.Analytics, standard.Analytics),
		}},
	}
}

func (w *Web) access(rw http.ResponseWriter, r *http.Request, a Account) error {
	all, err := w.Dashboard.Projects.List(r.Context(), a.ID)
	if err != nil {
		return err
	}
	page := accessPage{Done: noticeOf(r)}
	shown, rest := w.accessOrder(r, a, all)
	for i, p := range shown {
		g, err := w.Dashboard.Grants.Of(r.Context(), a.ID, p.ID)
		if err != nil {
			return err
		}
		page.Projects = append(page.Projects, projectAccess{projectRows([]projects.Project{p})[0], groupsOf("p"+strconv.Itoa(i), g)})
	}
	for _, p := range rest {
		page.Others = append(page.Others, choice{ID: p.ID, Label: p.DisplayName})
	}
	return w.render(rw, r, http.StatusOK, "dashboard_access", page)
}

// accessOrder puts the project of ?project= first and splits off those that do not fit.
func (w *Web) accessOrder(r *http.Request, a Account, all []projects.Project) (shown, rest []projects.Project) {
	all = slices.Clone(all)
	if id := r.URL.Query().Get("project"); id != "" {
		if p, err := w.Dashboard.Projects.Get(r.Context(), a.ID, id); err == nil {
			id = p.ID
		}
		slices.SortStableFunc(all, func(x, y projects.Project) int {
			switch {
			case x.ID == id && y.ID != id:
				return -1
			case y.ID == id && x.ID != id:
				return 1
			}
			return 0
		})
	}
	n := min(len(all), accessShown)
	return all[:n], all[n:]
}

func (w *Web) changeAccess(rw http.ResponseWriter, r *http.Request, a Account) error {
	p, err := w.Dashboard.Projects.Get(r.Context(), a.ID, r.PostFormValue("project"))
	if err != nil {
		return err
	}
	g, err := w.Dashboard.Grants.Of(r.Context(), a.ID, p.ID)
	if err != nil {
		return err
	}
	before := groupsOf("", g)
	g = grantsFrom(r, g)
	if slices.EqualFunc(before, groupsOf("", g), sameLevels) {
		return done(rw, r, accessPath(p.ID), "unchanged")
	}
	var invalid *grants.InvalidError
	err = w.Dashboard.Grants.Set(r.Context(), a.ID, p.ID, g, audit.Person())
	if errors.As(err, &invalid) { // no form of ours posts another level
		return errForbidden
	}
	if err != nil {
		return err
	}
	return done(rw, r, accessPath(p.ID), "access")
}

func sameLevels(a, b accessGroup) bool {
	return slices.EqualFunc(a.Rows, b.Rows, func(x, y accessRow) bool { return slices.Equal(x.Choices, y.Choices) })
}

func accessPath(id string) string { return "/account/mcp-access?project=" + url.QueryEscape(id) }

// grantsFrom reads the posted levels; one that was not posted stays.
func grantsFrom(r *http.Request, g grants.Grants) grants.Grants {
	read := func(name string, level grants.Level) grants.Level {
		if posted := r.PostFormValue(name); posted != "" {
			return grants.Level(posted)
		}
		return level
	}
	config := map[string]grants.Level{}
	for _, f := range grants.Fields() {
		config[f] = read(fieldPrefix+f, g.Assistant[f])
	}
	return grants.Grants{Assistant: config, Credentials: read("credentials", g.Credentials), Analytics: read("analytics", g.Analytics)}
}
