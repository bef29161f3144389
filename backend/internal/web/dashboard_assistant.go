package web

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/service-dev/service/backend/internal/assistant"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/backend/internal/projects"
)

// assistantPage is what the template "dashboard_assistant" shows.
type assistantPage struct {
	formErrors
	Done     *notice
	Nav      projectNav
	Version  int64
	Was      map[string]string // what the page showed first, by field: a later answer tells from it what was changed
	Sets     []radioSet
	Switches []choice
	Changed  []string // what somebody else changed meanwhile
	ChangedBy,
	CostNow, CostThen string // empty: not known
	Priced    bool // whether the operator has set prices, so that costs can be compared
	Updated   stamp
	UpdatedBy string
}

// radioSet is what the template "radio-cards" shows.
type radioSet struct {
	Name, Legend, Error string
	Choices             []choice
}

// settingNames are the assistant's fields as people read them.
var settingNames = map[string]string{
	grants.RealtimeModel: "Conversation model", grants.Voice: "Voice", grants.MemoryModel: "Memory between conversations",
	grants.SessionMemory: "Memory within a conversation", grants.Sounds: "Sounds",
}

// valuesOf gives a config's fields as form values.
func valuesOf(c assistant.Config) map[string]string {
	return map[string]string{
		grants.RealtimeModel: c.RealtimeModel, grants.Voice: c.Voice, grants.MemoryModel: c.MemoryModel,
		grants.SessionMemory: onOff(c.SessionMemory), grants.Sounds: onOff(c.Sounds),
	}
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// withValues is the config that a form stands for.
func withValues(c assistant.Config, v map[string]string) assistant.Config {
	c.RealtimeModel, c.Voice, c.MemoryModel = v[grants.RealtimeModel], v[grants.Voice], v[grants.MemoryModel]
	c.SessionMemory, c.Sounds = v[grants.SessionMemory] == "on", v[grants.Sounds] == "on"
	return c
}

// changeOf names only the fields that differ, so that a change of one leaves the others to whoever changes those.
func changeOf(version int64, was, now map[string]string) assistant.Change {
	c := assistant.Change{Version: version}
	text := func(field string) *string {
		if v := now[field]; v != was[field] {
			return &v
		}
		return nil
	}
	yes := func(field string) *bool {
		if v := now[field] == "on"; now[field] != was[field] {
			return &v
		}
		return nil
	}
	c.RealtimeModel, c.Voice, c.MemoryModel = text(grants.RealtimeModel), text(grants.Voice), text(grants.MemoryModel)
	c.SessionMemory, c.Sounds = yes(grants.SessionMemory), yes(grants.Sounds)
	return c
}

func (w *Web) assistant(rw http.ResponseWriter, r *http.Request, a Account, p projects.Project) error {
	c, err := w.Dashboard.Assistant.Get(r.Context(), a.ID, p.ID)
	if err != nil {
		return err
	}
	return w.showAssistant(rw, r, p, c, valuesOf(c), assistantPage{})
}

// showAssistant renders the form with the values v over the config c that stands.
func (w *Web) showAssistant(rw http.ResponseWriter, r *http.Request, p projects.Project, c assistant.Config, v map[string]string, page assistantPage) error {
	page.Sets = radioSets(w.Dashboard.Assistant.Choices(), v)
	for i := range page.Sets {
		page.Sets[i].Error = page.Error(page.Sets[i].Name)
	}
	page.Switches = []choice{
		{grants.SessionMemory, settingNames[grants.SessionMemory], "The assistant remembers what was said earlier in the same conversation.", v[grants.SessionMemory] == "on"},
		{grants.Sounds, settingNames[grants.Sounds], "Short sounds tell when it listens, thinks and is done.", v[grants.Sounds] == "on"},
	}
	page.Done, page.Nav, page.Version, page.Was = noticeOf(r), navOf(p, "assistant"), c.Version, valuesOf(c)
	page.Updated, page.UpdatedBy = at(c.UpdatedAt), c.UpdatedBy
	if cost := w.Dashboard.Assistant.Cost(c); cost != nil {
		page.CostNow, page.Priced = dollars(*cost), true
	}
	if entered := withValues(c, v); entered != c {
		if cost := w.Dashboard.Assistant.Cost(entered); cost != nil {
			page.CostThen, page.Priced = dollars(*cost), true
		}
	}
	return w.render(rw, r, statusOf(page.formErrors), "dashboard_assistant", page)
}

// radioSets are the catalogue as choices, with those of the values v on.
func radioSets(all assistant.Catalogue, v map[string]string) []radioSet {
	names := map[string]string{}
	var realtime, memory, voices []choice
	for _, voice := range all.Voices {
		names[voice.ID] = voice.Name
		voices = append(voices, choice{ID: voice.ID, Label: voice.Name, About: voice.Description})
	}
	for _, m := range all.RealtimeModels {
		var speaks []string
		for _, id := range m.Voices {
			speaks = append(speaks, names[id])
		}
		about := m.Description + priced(m.Price)
		if len(speaks) > 0 {
			about += " Voices: " + strings.Join(speaks, ", ") + "."
		}
		realtime = append(realtime, choice{ID: m.ID, Label: m.Name, About: about})
	}
	for _, m := range all.MemoryModels {
		memory = append(memory, choice{ID: m.ID, Label: m.Name, About: m.Description + priced(m.Price)})
	}
	set := func(field string, choices []choice) radioSet {
		return radioSet{Name: field, Legend: settingNames[field], Choices: chosen(choices, v[field])}
	}
	return []radioSet{set(grants.RealtimeModel, realtime), set(grants.Voice, voices), set(grants.MemoryModel, memory)}
}

// chosen marks one; an id that the operator no longer offers is there as long as it is set.
func chosen(all []choice, id string) []choice {
	i := slices.IndexFunc(all, func(c choice) bool { return c.ID == id })
	if i < 0 {
		return append(all, choice{ID: id, Label: told(id), About: "No longer offered; choose another one.", On: true})
	}
	all[i].On = true
	return all
}

func priced(price *int64) string {
	if price == nil {
		return ""
	}
	return " " + dollars(*price) + " a minute."
}

// dollars shows micro-dollars without rounding anything away: $0.05, $0.0005, $1.20.
func dollars(micro int64) string {
	sign := ""
	if micro < 0 {
		sign, micro = "-", -micro
	}
	cents := strings.TrimRight(fmt.Sprintf("%06d", micro%1_000_000), "0")
	for len(cents) < 2 {
		cents += "0"
	}
	return fmt.Sprintf("%s$%d.%s", sign, micro/1_000_000, cents)
}

func (w *Web) changeAssistant(rw http.ResponseWriter, r *http.Request, a Account, p projects.Project) error {
	was, now := map[string]string{}, map[string]string{}
	for _, field := range grants.Fields() {
		was[field], now[field] = r.PostFormValue("was-"+field), r.PostFormValue(field)
	}
	for _, field := range []string{grants.SessionMemory, grants.Sounds} {
		now[field] = onOff(now[field] == "on")
	}
	c, err := w.Dashboard.Assistant.Get(r.Context(), a.ID, p.ID)
	if err != nil {
		return err
	}
	version, err := strconv.ParseInt(r.PostFormValue("version"), 10, 64)
	if err != nil {
		version = -1 // of no config: answered like one that was changed
	}
	change := changeOf(version, was, now)
	var page assistantPage
	switch {
	case r.PostFormValue("act") == "cost":
		return w.showAssistant(rw, r, p, c, merged(was, now, valuesOf(c)), page)
	case change == assistant.Change{Version: version}:
		return done(rw, r, projectPath(p.ID)+"/assistant", "unchanged")
	}
	_, _, err = w.Dashboard.Assistant.Change(r.Context(), a.ID, p.ID, change, audit.Person())
	var invalid *assistant.InvalidError
	switch {
	case err == nil:
		return done(rw, r, projectPath(p.ID)+"/assistant", "saved")
	case errors.As(err, &invalid):
		page.wrong(invalid.Field, sentence(invalid.Message))
		return w.showAssistant(rw, r, p, c, now, page)
	case errors.Is(err, assistant.ErrConflict):
		if c, err = w.Dashboard.Assistant.Get(r.Context(), a.ID, p.ID); err != nil {
			return err
		}
		page.Problem = "These settings were changed since you opened this page. Your own choices are still below and not saved yet."
		page.Changed, page.ChangedBy = meanwhile(was, valuesOf(c)), c.UpdatedBy
		return w.showAssistant(rw, r, p, c, merged(was, now, valuesOf(c)), page)
	}
	return err
}

// merged keeps what the person changed, and takes the rest from what stands now.
func merged(was, entered, standing map[string]string) map[string]string {
	v := map[string]string{}
	for _, field := range grants.Fields() {
		v[field] = standing[field]
		if entered[field] != was[field] {
			v[field] = entered[field]
		}
	}
	return v
}

// meanwhile tells each field that is no longer as the person saw it.
func meanwhile(was, now map[string]string) []string {
	var lines []string
	for _, field := range grants.Fields() {
		if was[field] != now[field] {
			lines = append(lines, settingNames[field]+": "+told(was[field])+" → "+told(now[field]))
		}
	}
	return lines
}
