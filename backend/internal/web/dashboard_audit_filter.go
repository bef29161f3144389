package web

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
)

const (
	activityPath = "/account/audit"
	// agentPrefix precedes a link's ID in the values of the filter by actor.
	agentPrefix = "link:"
	// listedAgents limits the agents to filter by.
	listedAgents = 50
)

// activityFilter selects entries of the activity. Its fields are the values of the form.
type activityFilter struct {
	Project, Kind, Who, From, To string
}

// activityKinds are the kinds of changes to filter by, with the nouns of their actions.
var activityKinds = []struct {
	id, label string
	nouns     []string
}{
	{"assistant", "Assistant", []string{"assistant"}},
	{"page", "Connection page", []string{"page"}},
	{"credentials", "Credentials", []string{"credential", "credentials"}},
	{"keys", "Project keys", []string{"key"}},
	{"access", "Agent access and links", []string{"grants", "link"}},
	{"projects", "Projects", []string{"project"}},
	{"spending", "Credit and AI gateway", []string{"credit", "gateway", "gateway_usage"}},
	{"analytics", "Analytics", []string{"analytics"}},
	{"account", "Account and sign-in", []string{"account"}},
}

// onlyChanges is the kind that excludes reads.
const onlyChanges = "changes"

// readFilter reads the form. It ignores values that the form does not offer, except a project, which must exist.
func (w *Web) readFilter(c *call) (activityFilter, error) {
	q := c.URL.Query()
	f := activityFilter{Project: q.Get("project"), Kind: q.Get("kind"), Who: q.Get("who")}
	if f.Project != "" {
		p, err := w.Dashboard.Projects.Get(c.Context(), c.account.ID, f.Project)
		if err != nil {
			return f, err
		}
		f.Project = p.ID
	}
	if !slices.ContainsFunc(f.kinds(), func(k choice) bool { return k.On }) {
		f.Kind = ""
	}
	kinds := []string{audit.KindPerson, audit.KindAgent, audit.KindOperator, audit.KindBackend}
	if !slices.Contains(kinds, f.Who) && !strings.HasPrefix(f.Who, agentPrefix) {
		f.Who = ""
	}
	f.From, f.To = validDay(q.Get("from")), validDay(q.Get("to"))
	return f, nil
}

func parseDay(text string) (time.Time, bool) {
	day, err := time.Parse(time.DateOnly, text)
	return day, err == nil
}

func validDay(text string) string {
	if _, ok := parseDay(text); !ok {
		return ""
	}
	return text
}

func (f activityFilter) kinds() []choice {
	all := []choice{{ID: "", Label: "Everything", On: f.Kind == ""},
		{ID: onlyChanges, Label: "Changes only", On: f.Kind == onlyChanges}}
	for _, k := range activityKinds {
		all = append(all, choice{ID: k.id, Label: k.label, On: k.id == f.Kind})
	}
	return all
}

// activityActors lists the possible actors.
func (w *Web) activityActors(c *call, f activityFilter) ([]choice, error) {
	links, err := w.Links.Links(c.Context(), c.account.ID)
	if err != nil {
		return nil, err
	}
	all := []choice{{ID: "", Label: "Anybody"}, {ID: audit.KindPerson, Label: "You"},
		{ID: audit.KindAgent, Label: "Any agent"}}
	for _, l := range links[:min(len(links), listedAgents)] {
		all = append(all, choice{ID: agentPrefix + l.ID,
			Label: printable(audit.Name(audit.KindAgent, l.Requester.Host, l.Requester.Client))})
	}
	all = append(all, choice{ID: audit.KindOperator, Label: "The operator"},
		choice{ID: audit.KindBackend, Label: "The backend"})
	for i := range all {
		all[i].On = all[i].ID == f.Who
	}
	return all, nil
}

// entries returns the filter for the log. Days are in UTC, and To is inclusive.
func (f activityFilter) entries() audit.Filter {
	filter := audit.Filter{Project: f.Project, Actor: f.Who, ChangesOnly: f.Kind == onlyChanges}
	if link, ok := strings.CutPrefix(f.Who, agentPrefix); ok {
		filter.Actor, filter.LinkID = audit.KindAgent, link
	}
	for _, k := range activityKinds {
		if k.id == f.Kind {
			filter.Nouns = k.nouns
		}
	}
	filter.From, _ = parseDay(f.From)
	if to, ok := parseDay(f.To); ok {
		filter.To = to.AddDate(0, 0, 1)
	}
	return filter
}

// Backwards reports whether the first day is after the last, so that no entry can match.
func (f activityFilter) Backwards() bool { return f.From != "" && f.To != "" && f.From > f.To }

func (f activityFilter) isSet() bool { return f != activityFilter{} }

// path returns the URL of the entries before the one with an ID, or of the newest entries.
func (f activityFilter) path(before string) string {
	q := url.Values{}
	for name, value := range map[string]string{"project": f.Project, "kind": f.Kind, "who": f.Who, "from": f.From,
		"to": f.To, "before": before} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if len(q) == 0 {
		return activityPath
	}
	return activityPath + "?" + q.Encode()
}
