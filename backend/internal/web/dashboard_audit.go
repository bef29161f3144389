package web

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/service-dev/service/backend/internal/assistant"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/connpage"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/backend/internal/projects"
)

const activityEntries = 30

// activityPage is what the template "dashboard_audit" shows.
type activityPage struct {
	Done     *notice
	Entries  []activityRow
	Projects []choice // to filter by
	Project  string
	Older    string // address of the entries before these; empty: there are none
	Newest   string // address of the newest; empty: these are
}

// activityRow is one entry in words.
type activityRow struct {
	Who, What, Summary string
	Agent              bool
	Project            string
	ProjectPath        string // empty: the project is gone
	When               stamp
	Undo               string // address; empty: it cannot be undone
	Undone             bool
}

// actionWords are the actions as people read them; others are shown as they are.
var actionWords = map[string]string{
	"project.created": "Project created", "project.changed": "Project changed", "project.merged": "Projects merged", "project.deleted": "Project deleted",
	"key.minted": "Project key made", "key.rotated": "Project key rotated", "key.revoked": "Project key revoked",
	"grants.changed": "Agent access changed", "assistant.read": "Assistant read", "assistant.changed": "Assistant changed", "assistant.undone": "Assistant change undone",
	"page.read": "Connection page read", "page.changed": "Connection page changed", "page.undone": "Connection page change undone",
	"credentials.read": "Credentials looked up", "credential.link": "Link to paste a credential made", "credential.set": "Credential set",
	"credential.removed": "Credential removed", "credential.tested": "Credential tested", "analytics.read": "Analytics read",
	"link.revoked": "Agent's link revoked", "account.email_asked": "Change of the e-mail address asked for", "account.email_changed": "E-mail address changed",
	"account.email_verified": "E-mail address confirmed", "account.exported": "Data downloaded", "account.identity_linked": "Sign-in provider linked",
	"account.identity_unlinked": "Sign-in provider unlinked", "account.passkey_added": "Passkey added", "account.passkey_removed": "Passkey removed",
	"account.password_changed": "Password changed", "account.reset_link_made": "Link to reset the password made", "account.sessions_ended": "Signed out elsewhere",
}

func whatOf(action string) string {
	if words, ok := actionWords[action]; ok {
		return words
	}
	return capital(strings.NewReplacer(".", " ", "_", " ").Replace(action))
}

// summaryOf is what the entry says beyond its action and project.
func summaryOf(e audit.Entry) string {
	if e.Summary == e.Project || strings.HasSuffix(e.Action, ".read") {
		return ""
	}
	if e.Action == "grants.changed" {
		return grantWords.Replace(e.Summary)
	}
	noun := "connection page: "
	said := strings.TrimPrefix(strings.Replace(e.Summary, "undone: "+noun, "", 1), noun)
	return strings.ReplaceAll(said, " -> ", " → ")
}

// grantWords turns the wire's words of a changed grant into those of the page where it is set.
var grantWords = func() *strings.Replacer {
	pairs := []string{" -> ", " → ", string(grants.Credentials), "Credentials", string(grants.Analytics), "Analytics"}
	for _, f := range grants.Fields() {
		pairs = append(pairs, string(grants.Assistant)+"."+f, settingNames[f])
	}
	for _, l := range slices.Backward(levelNames) { // read_write begins with read
		pairs = append(pairs, string(l.Level), l.Label)
	}
	return strings.NewReplacer(pairs...)
}()

// whoOf names the actor. The name of an agent's computer comes from outside.
func whoOf(e audit.Entry) string {
	switch e.Actor.Kind {
	case audit.KindPerson:
		return "You"
	case audit.KindOperator:
		return "The operator"
	case audit.KindBackend:
		return "The backend"
	}
	if e.ActorName == "" {
		return "An agent"
	}
	return told(e.ActorName)
}

func activityRows(entries []audit.Entry, list []projects.Project) []activityRow {
	known := map[string]bool{}
	for _, p := range list {
		known[p.ID] = true
	}
	rows := make([]activityRow, len(entries))
	for i, e := range entries {
		row := activityRow{Who: whoOf(e), What: whatOf(e.Action), Summary: summaryOf(e), Agent: e.Actor.Kind == audit.KindAgent,
			Project: e.Project, When: at(e.At), Undone: e.UndoneBy != ""}
		if known[e.Project] {
			row.ProjectPath = projectPath(e.Project)
		}
		if e.Undoable() && undoes(e) != "" && known[e.Project] {
			row.Undo = "/account/audit/" + url.PathEscape(e.ID) + "/undo"
		}
		rows[i] = row
	}
	return rows
}

// undoes is the feature that takes an entry back, by the noun of its action; empty: none does.
func undoes(e audit.Entry) string {
	noun, _, _ := strings.Cut(e.Action, ".")
	if noun == "assistant" || noun == "page" {
		return noun
	}
	return ""
}

func (w *Web) activity(rw http.ResponseWriter, r *http.Request, a Account) error {
	list, err := w.Dashboard.Projects.List(r.Context(), a.ID)
	if err != nil {
		return err
	}
	query := r.URL.Query()
	page := activityPage{Done: noticeOf(r), Project: query.Get("project")}
	if page.Project != "" {
		p, err := w.Dashboard.Projects.Get(r.Context(), a.ID, page.Project)
		if err != nil {
			return err
		}
		page.Project = p.ID
	}
	for _, p := range list {
		page.Projects = append(page.Projects, choice{ID: p.ID, Label: p.DisplayName, On: p.ID == page.Project})
	}
	before := query.Get("before")
	entries, err := w.Dashboard.Audit.List(r.Context(), a.ID, audit.Filter{Project: page.Project, Before: before, Limit: activityEntries + 1})
	if err != nil {
		return err
	}
	if len(entries) > activityEntries {
		entries = entries[:activityEntries]
		page.Older = activityPath(page.Project, entries[activityEntries-1].ID)
	}
	if before != "" {
		page.Newest = activityPath(page.Project, "")
	}
	page.Entries = activityRows(entries, list)
	return w.render(rw, r, http.StatusOK, "dashboard_audit", page)
}

func activityPath(project, before string) string {
	q := url.Values{}
	if project != "" {
		q.Set("project", project)
	}
	if before != "" {
		q.Set("before", before)
	}
	if len(q) == 0 {
		return "/account/audit"
	}
	return "/account/audit?" + q.Encode()
}

// undo puts back what one change of a config changed.
func (w *Web) undo(rw http.ResponseWriter, r *http.Request, a Account) error {
	e, err := w.Dashboard.Audit.Get(r.Context(), a.ID, r.PathValue("entry"))
	if err != nil {
		return err
	}
	switch undoes(e) {
	case "assistant":
		err = w.Dashboard.Assistant.Undo(r.Context(), a.ID, e, audit.Person())
	case "page":
		err = w.Dashboard.Pages.Undo(r.Context(), a.ID, e, audit.Person())
	default:
		err = assistant.ErrNotUndoable
	}
	code := "undone"
	var invalid *assistant.InvalidError
	switch {
	case errors.Is(err, assistant.ErrConflict), errors.Is(err, connpage.ErrConflict):
		code = "undo-conflict"
	case errors.Is(err, assistant.ErrNotUndoable), errors.Is(err, connpage.ErrNotUndoable), errors.As(err, &invalid):
		code = "undo-gone"
	case err != nil:
		return err
	}
	return done(rw, r, activityPath("", ""), code)
}
