package web

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/service-dev/service/backend/internal/projects"
)

// listedProjects limits the projects listed on one page; an account may have projects.MaxProjects.
const listedProjects = 100

// projectRow is a project in a list.
type projectRow struct {
	projects.Project
	Path   string
	Active shownTime
}

func projectRows(list []projects.Project) []projectRow {
	rows := make([]projectRow, len(list))
	for i, p := range list {
		rows[i] = projectRow{p, projectPath(p.ID), showTime(p.LastActiveAt)}
	}
	return rows
}

// projectsPage is the data of the template "dashboard_projects".
type projectsPage struct {
	Done     *notice
	Projects []projectRow
	Steps    firstSteps // shown if the account has no project
	None     bool       // whether the account has no project at all
	Query    string
	Sorts    []choice
	Searched bool
	pager
}

func (w *Web) listProjects(c *call) error {
	list, err := w.Dashboard.Projects.List(c.Context(), c.account.ID)
	if err != nil {
		return err
	}
	query := c.URL.Query()
	page := projectsPage{Done: c.notice(), None: len(list) == 0, Query: oneLine(query.Get("q"))}
	if page.None {
		links, err := w.liveLinks(c)
		if err != nil {
			return err
		}
		if page.Steps, err = w.firstSteps(c, len(links) > 0, false); err != nil {
			return err
		}
	}
	byName := query.Get("sort") == "name"
	page.Searched = page.Query != ""
	page.Sorts = []choice{{ID: "activity", Label: "Last active", On: !byName}, {ID: "name", Label: "Name", On: byName}}
	list = sortProjects(findProjects(list, page.Query), byName)
	kept := url.Values{}
	if page.Searched {
		kept.Set("q", page.Query)
	}
	if byName {
		kept.Set("sort", "name")
	}
	page.pager = newPager("/account/projects", kept, query.Get("page"), len(list), listedProjects)
	page.Projects = projectRows(list[page.from:page.to])
	return w.render(c, http.StatusOK, "dashboard_projects", page)
}

// findProjects returns the projects whose name or ID contains every word of a query.
func findProjects(list []projects.Project, query string) (found []projects.Project) {
	words := strings.Fields(strings.ToLower(query))
	for _, p := range list {
		text := strings.ToLower(p.DisplayName + " " + p.ID)
		if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) }) {
			found = append(found, p)
		}
	}
	return found
}

// sortProjects sorts by name, or by last activity, latest first. Projects without any activity come last.
func sortProjects(list []projects.Project, byName bool) []projects.Project {
	slices.SortStableFunc(list, func(a, b projects.Project) int {
		if byName {
			return cmp.Compare(strings.ToLower(a.DisplayName), strings.ToLower(b.DisplayName))
		}
		return b.LastActiveAt.Compare(a.LastActiveAt)
	})
	return list
}

// maxOptions limits the projects in a list to choose from, which keeps pages small.
const maxOptions = 100

// projectOptions returns the most recently active projects, and always the selected one, sorted by name. hidden is
// the number of the other projects.
func projectOptions(list []projects.Project, selected string) (options []choice, hidden int) {
	list = sortProjects(slices.Clone(list), false)
	if i := slices.IndexFunc(list, func(p projects.Project) bool { return p.ID == selected }); i >= maxOptions {
		list[maxOptions-1], list[i] = list[i], list[maxOptions-1]
	}
	n := min(len(list), maxOptions)
	for _, p := range sortProjects(list[:n], true) {
		options = append(options, choice{ID: p.ID, Label: p.DisplayName, On: p.ID == selected})
	}
	return options, len(list) - n
}

// pager describes one page of a list whose length is known, with the URLs of the neighbouring pages.
type pager struct {
	from, to           int
	Text               string // such as 1–100 of 301; "" if everything fits
	Previous, NextPage string // URLs; "" if there is none
}

// newPager returns the page with the number in text, or the nearest existing page.
func newPager(path string, kept url.Values, text string, total, size int) pager {
	last := max(1, (total+size-1)/size)
	n, err := strconv.Atoi(text)
	if err != nil {
		n = 1
	}
	n = min(max(n, 1), last)
	p := pager{from: (n - 1) * size, to: min(n*size, total)}
	if last == 1 {
		return p
	}
	p.Text = fmt.Sprintf("%s–%s of %s", grouped(int64(p.from+1)), grouped(int64(p.to)), grouped(int64(total)))
	at := func(n int) string {
		q := url.Values{"page": {strconv.Itoa(n)}}
		maps.Copy(q, kept)
		return path + "?" + q.Encode()
	}
	if n > 1 {
		p.Previous = at(n - 1)
	}
	if n < last {
		p.NextPage = at(n + 1)
	}
	return p
}
