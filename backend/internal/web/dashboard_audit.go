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
	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/backend/internal/projects"
)

const activityEntries = 30

// activityPage is the data of the template "dashboard_audit".
type activityPage struct {
	Done     *notice
	Entries  []activityRow
	Filter   activityFilter
	Projects []choice // projects to filter by
	Hidden   int      // number of further projects
	Kinds    []choice
	Actors   []choice
	Older    string // URL of the entries before these; "" if there are none
	Newest   string // URL of the newest entries; "" if these are the newest
	All      string // URL without a filter; "" if there is none
}

// activityRow is one entry as shown on the page.
type activityRow struct {
	Who, What, Summary string
	Project            string // its name, or its id if it no longer exists
	ProjectID          string
	ProjectPath        string // "" if the project no longer exists
	When               shownTime
	Changes            []valueChange // the values before and after, if the entry has them; then there is no Summary
	Undo               string        // URL; "" if the entry cannot be undone
	Undone             bool
}

// actionTitles are the titles of actions that cannot be derived from the action's name.
var actionTitles = map[string]string{
	"project.merged": "Projects merged",
	"key.minted":     "Project key made", "key.rotated": "Project key rotated", "key.revoked": "Project key revoked",
	"grants.changed": "Agent access changed", "grants.default_changed": "Default of agent access changed",
	"assistant.undone": "Assistant change undone",
	"page.read":        "Connection page read", "page.changed": "Connection page changed",
	"page.undone": "Connection page change undone", "credit.caps_changed": "Spending caps changed",
	"credit.caps_undone": "Change of spending caps undone", "gateway.key_source_changed": "What pays for calls changed",
	"gateway.server_added": "Local server added", "gateway.server_removed": "Local server removed",
	"attestation.changed": "Attestation settings changed", "attestation.revoked": "Attested install revoked",
	"memory.erased": "Memory erased", "memory.days_changed": "Days of memory changed",
	"credential.link": "Link for pasting a credential created",
	"link.created":    "Agent linked", "link.revoked": "Agent's link revoked",
	"account.signed_in": "Signed in", "account.signed_out": "Signed out",
	"account.email_asked":   "Change of the e-mail address requested",
	"account.email_changed": "E-mail address changed", "account.email_verified": "E-mail address confirmed",
	"account.exported": "Data downloaded", "account.identity_linked": "Sign-in provider linked",
	"account.identity_unlinked": "Sign-in provider unlinked", "account.passkey_added": "Passkey added",
	"account.passkey_removed": "Passkey removed", "account.password_changed": "Password changed",
	"account.reset_link_made": "Link for resetting the password created", "account.sessions_ended": "Signed out elsewhere",
}

func actionTitle(action string) string {
	if title, ok := actionTitles[action]; ok {
		return title
	}
	return capital(strings.NewReplacer(".", " ", "_", " ").Replace(action))
}

// summaryOf returns the details of an entry, without its action and project.
func summaryOf(e audit.Entry) string {
	if e.Summary == e.Project || strings.HasSuffix(e.Action, ".read") {
		return ""
	}
	if strings.HasPrefix(e.Action, "grants.") {
		return grantLabels.Replace(e.Summary)
	}
	noun := "connection page: "
	text := strings.TrimPrefix(strings.Replace(e.Summary, "undone: "+noun, "", 1), noun)
	return strings.ReplaceAll(text, " -> ", " → ")
}

// grantLabels replaces the identifiers in the summary of a grant change with the labels from the page for grants.
var grantLabels = func() *strings.Replacer {
	pairs := []string{" -> ", " → ", string(grants.Credentials), "Credentials", string(grants.Analytics), "Analytics"}
	for _, f := range grants.Fields() {
		pairs = append(pairs, string(grants.Assistant)+"."+f, settingNames[f])
	}
	for _, l := range slices.Backward(levelNames) { // reversed because read_write starts with read
		pairs = append(pairs, string(l.Level), l.Label)
	}
	return strings.NewReplacer(pairs...)
}()

// actorOf names the actor. The name of an agent's computer is reported by its client.
func actorOf(e audit.Entry) string {
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
	return printable(e.ActorName)
}

func activityRows(entries []audit.Entry, list []projects.Project) []activityRow {
	names := map[string]string{}
	for _, p := range list {
		names[p.ID] = p.DisplayName
	}
	rows := make([]activityRow, len(entries))
	for i, e := range entries {
		row := activityRow{Who: actorOf(e), What: actionTitle(e.Action), Summary: summaryOf(e),
			Project: e.Project, ProjectID: e.Project, When: showTime(e.At), Undone: e.UndoneBy != ""}
		if row.Changes = changesOf(e); len(row.Changes) > 0 {
			row.Summary = ""
		}
		name, exists := names[e.Project]
		if exists {
			row.Project, row.ProjectPath = name, projectPath(e.Project)
		}
		if (exists || e.Project == "") && e.Undoable() && undoFeature(e) != "" {
			row.Undo = "/account/audit/" + url.PathEscape(e.ID) + "/undo"
		}
		rows[i] = row
	}
	return rows
}

// undoFeature returns the feature that can undo an entry, such as assistant for assistant.changed, or "".
func undoFeature(e audit.Entry) string {
	noun, _, _ := strings.Cut(e.Action, ".")
	if slices.Contains([]string{"assistant", "page", "credit"}, noun) {
		return noun
	}
	return ""
}

func (w *Web) activity(c *call) error {
	f, err := w.readFilter(c)
	if err != nil {
		return err
	}
	list, err := w.Dashboard.Projects.List(c.Context(), c.account.ID)
	if err != nil {
		return err
	}
	page := activityPage{Done: c.notice(), Filter: f, Kinds: f.kinds()}
	page.Projects, page.Hidden = projectOptions(list, f.Project)
	if page.Actors, err = w.activityActors(c, f); err != nil {
		return err
	}
	before := c.URL.Query().Get("before")
	wanted := f.entries()
	wanted.Before, wanted.Limit = before, activityEntries+1
	entries, err := w.Dashboard.Audit.List(c.Context(), c.account.ID, wanted)
	if err != nil {
		return err
	}
	if len(entries) > activityEntries {
		entries = entries[:activityEntries]
		page.Older = f.path(entries[activityEntries-1].ID)
	}
	if before != "" {
		page.Newest = f.path("")
	}
	if f.isSet() {
		page.All = activityPath
	}
	page.Entries = activityRows(entries, list)
	return w.render(c, http.StatusOK, "dashboard_audit", page)
}

// undo restores the values before a change.
func (w *Web) undo(c *call) error {
	e, err := w.Dashboard.Audit.Get(c.Context(), c.account.ID, c.PathValue("entry"))
	if err != nil {
		return err
	}
	switch undoFeature(e) {
	case "assistant":
		err = w.Dashboard.Assistant.Undo(c.Context(), c.account.ID, e, audit.Person())
	case "page":
		err = w.Dashboard.Pages.Undo(c.Context(), c.account.ID, e, audit.Person())
	case "credit":
		err = w.Dashboard.Credit.UndoCaps(c.Context(), c.account.ID, e, audit.Person())
	default:
		err = assistant.ErrNotUndoable
	}
	code := "undone"
	var invalid *assistant.InvalidError
	switch {
	case isAny(err, []error{assistant.ErrConflict, connpage.ErrConflict, credit.ErrConflict}):
		code, err = "undo-conflict", nil
	case isAny(err, []error{assistant.ErrNotUndoable, connpage.ErrNotUndoable, credit.ErrNotUndoable}),
		errors.As(err, &invalid):
		code, err = "undo-gone", nil
	}
	return c.done(err, activityPath, code)
}
