package web

import (
	"errors"

	"github.com/service-dev/service/backend/internal/assistant"
	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/grants"
	"github.com/service-dev/service/proto/backendapi"
)

// assistantPage is the data of the template "dashboard_assistant".
type assistantPage struct {
	formErrors
	Done     *notice
	Nav      projectNav
	Version  int64
	Was      map[string]string // values when the form was opened, by field; a field that differs was edited
	Sets     []radioSet
	Switches []choice
	Changed  []string // fields changed by others after the form was opened
	ChangedBy,
	CostNow, CostThen string // "" if unknown
	TextNow, TextThen   string // values for the text model; "" if there is none
	SoundNow, SoundThen string // estimates for the realtime model; "" if there are none
	Effect              string // which settings have an effect
	Priced              bool   // whether the operator has set prices
	Updated             shownTime
	UpdatedBy           string
	Memory              memoryForm
}

// settingNames are the labels of the assistant's fields.
var settingNames = map[string]string{
	grants.RealtimeModel: "Conversation model",
	grants.Voice:         "Voice",
	grants.MemoryModel:   "Memory between conversations",
	grants.TextModel:     "Text model",
	grants.SessionMemory: "Memory within a conversation",
	grants.Sounds:        "Sounds",
	grants.GatewayUsage:  "AI gateway usage",
}

// valuesOf returns the fields of a config as form values.
func valuesOf(c assistant.Config) map[string]string {
	return map[string]string{
		grants.RealtimeModel: c.RealtimeModel, grants.Voice: c.Voice, grants.MemoryModel: c.MemoryModel,
		grants.TextModel: c.TextModel, grants.SessionMemory: onOff(c.SessionMemory), grants.Sounds: onOff(c.Sounds),
	}
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// withValues returns the config with the values from a form.
func withValues(c assistant.Config, v map[string]string) assistant.Config {
	c.RealtimeModel, c.Voice, c.MemoryModel = v[grants.RealtimeModel], v[grants.Voice], v[grants.MemoryModel]
	c.TextModel = v[grants.TextModel]
	c.SessionMemory, c.Sounds = v[grants.SessionMemory] == "on", v[grants.Sounds] == "on"
	return c
}

// changeOf returns a change that contains only the fields that differ, so that it does not overwrite changes by
// others.
func changeOf(version int64, was, now map[string]string) assistant.Change {
	c := assistant.Change{Version: version}
	text := func(field string) *string {
		if v := now[field]; v != was[field] {
			return &v
		}
		return nil
	}
	flag := func(field string) *bool {
		if v := now[field] == "on"; now[field] != was[field] {
			return &v
		}
		return nil
	}
	c.RealtimeModel, c.Voice, c.MemoryModel = text(grants.RealtimeModel), text(grants.Voice), text(grants.MemoryModel)
	c.TextModel = text(grants.TextModel)
	c.SessionMemory, c.Sounds = flag(grants.SessionMemory), flag(grants.Sounds)
	return c
}

func (w *Web) assistant(c *call) error {
	config, err := w.Dashboard.Assistant.Get(c.Context(), c.account.ID, c.project.ID)
	if err != nil {
		return err
	}
	return w.showAssistant(c, config, valuesOf(config), assistantPage{})
}

// showAssistant renders the form with the values v. config is the stored config.
func (w *Web) showAssistant(c *call, config assistant.Config, v map[string]string, page assistantPage) error {
	all, err := w.Dashboard.Assistant.Choices(c.Context(), c.account.ID, c.project.ID)
	if err != nil {
		return err
	}
	page.ToTop = true
	page.Sets = radioSets(all, v)
	for i := range page.Sets {
		page.Sets[i].Error = page.Error(page.Sets[i].Name)
	}
	toggle := func(field, about string) choice {
		return choice{ID: field, Label: settingNames[field], About: about, On: v[field] == "on"}
	}
	page.Switches = []choice{
		toggle(grants.SessionMemory, "The assistant remembers what was said earlier in the same conversation. "+
			"Without it, each request stands alone."),
		toggle(grants.Sounds, "Short sounds tell the wearer when it listens, thinks and is done."),
	}
	page.Done, page.Nav, page.Version, page.Was = c.notice(), c.projectNav("assistant"), config.Version, valuesOf(config)
	page.Updated, page.UpdatedBy = showTime(config.UpdatedAt), config.UpdatedBy
	if cost := w.Dashboard.Assistant.Cost(config); cost != nil {
		page.CostNow, page.Priced = backendapi.Dollars(*cost), true
	}
	if entered := withValues(config, v); entered != config {
		if cost := w.Dashboard.Assistant.Cost(entered); cost != nil {
			page.CostThen, page.Priced = backendapi.Dollars(*cost), true
		}
		page.TextThen, page.SoundThen = tokenPriceText(all.TextPrice(entered)), soundText(all.Realtime(entered))
	}
	page.TextNow, page.SoundNow = tokenPriceText(all.TextPrice(config)), soundText(all.Realtime(config))
	page.Priced = page.Priced || page.TextNow+page.TextThen+page.SoundNow+page.SoundThen != ""
	page.Effect = effectText(all)
	if page.Memory, err = w.memoryForm(c, page.Memory.Days); err != nil {
		return err
	}
	return w.render(c, page.status(), "dashboard_assistant", page)
}

func (w *Web) changeAssistant(c *call) error {
	was, now := map[string]string{}, map[string]string{}
	for _, field := range grants.Settings() {
		was[field], now[field] = c.PostFormValue("was-"+field), c.PostFormValue(field)
	}
	for _, field := range []string{grants.SessionMemory, grants.Sounds} {
		now[field] = onOff(now[field] == "on")
	}
	config, err := w.Dashboard.Assistant.Get(c.Context(), c.account.ID, c.project.ID)
	if err != nil {
		return err
	}
	version := c.formVersion()
	change := changeOf(version, was, now)
	path := projectPath(c.project.ID) + "/assistant"
	var page assistantPage
	switch {
	case c.PostFormValue("act") == "cost":
		return w.showAssistant(c, config, merge(was, now, valuesOf(config)), page)
	case change == assistant.Change{Version: version}:
		return c.done(nil, path, "unchanged")
	}
	_, _, err = w.Dashboard.Assistant.Change(c.Context(), c.account.ID, c.project.ID, change, audit.Person())
	var invalid *assistant.InvalidError
	switch {
	case errors.As(err, &invalid):
		all, err := w.Dashboard.Assistant.Choices(c.Context(), c.account.ID, c.project.ID)
		if err != nil {
			return err
		}
		field, text := assistantProblem(all, now, invalid)
		page.add(field, text)
		return w.showAssistant(c, config, now, page)
	case errors.Is(err, assistant.ErrConflict):
		if config, err = w.Dashboard.Assistant.Get(c.Context(), c.account.ID, c.project.ID); err != nil {
			return err
		}
		page.Problem = "These settings have changed since you opened this page. " +
			"Your own choices are still below and not saved yet."
		page.Changed, page.ChangedBy = differences(was, valuesOf(config)), config.UpdatedBy
		return w.showAssistant(c, config, merge(was, now, valuesOf(config)), page)
	}
	return c.done(err, path, "saved")
}

// merge keeps the values edited in the form and uses the stored values for the other fields.
func merge(was, entered, stored map[string]string) map[string]string {
	v := map[string]string{}
	for _, field := range grants.Settings() {
		v[field] = stored[field]
		if entered[field] != was[field] {
			v[field] = entered[field]
		}
	}
	return v
}

// differences lists each field whose value changed.
func differences(was, now map[string]string) []string {
	var lines []string
	for _, field := range grants.Settings() {
		if was[field] != now[field] {
			lines = append(lines, settingNames[field]+": "+valueText(was[field])+" → "+valueText(now[field]))
		}
	}
	return lines
}

func valueText(v string) string {
	if v == "" {
		return "the default"
	}
	return printable(v)
}
