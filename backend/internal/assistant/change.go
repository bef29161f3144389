package assistant

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/service-dev/service/backend/internal/grants"
)

// fields holds some fields of a config, in the form stored in audit entries.
type fields struct {
	RealtimeModel *string `json:"realtimeModel,omitempty"`
	Voice         *string `json:"voice,omitempty"`
	MemoryModel   *string `json:"memoryModel,omitempty"`
	TextModel     *string `json:"textModel,omitempty"`
	SessionMemory *bool   `json:"sessionMemory,omitempty"`
	Sounds        *bool   `json:"sounds,omitempty"`
}

func (c Change) fields() fields {
	return fields{c.RealtimeModel, c.Voice, c.MemoryModel, c.TextModel, c.SessionMemory, c.Sounds}
}

func (c Change) empty() bool { return c.fields() == fields{} }

func (c Change) apply(to Config) (Config, []difference) { return c.fields().apply(to) }

// Names lists the names of the fields to change, in the order of grants.Settings.
func (c Change) Names() []string {
	var names []string
	for i, there := range []bool{c.RealtimeModel != nil, c.Voice != nil, c.MemoryModel != nil, c.TextModel != nil,
		c.SessionMemory != nil, c.Sounds != nil} {
		if there {
			names = append(names, grants.Settings()[i])
		}
	}
	return names
}

// difference is a field whose value was changed.
type difference struct {
	field         string
	before, after any
}

// apply sets the fields that are not nil and returns the ones whose value changed.
func (f fields) apply(c Config) (Config, []difference) {
	var diff []difference
	diff = set(diff, grants.RealtimeModel, &c.RealtimeModel, f.RealtimeModel)
	diff = set(diff, grants.Voice, &c.Voice, f.Voice)
	diff = set(diff, grants.MemoryModel, &c.MemoryModel, f.MemoryModel)
	diff = set(diff, grants.TextModel, &c.TextModel, f.TextModel)
	diff = set(diff, grants.SessionMemory, &c.SessionMemory, f.SessionMemory)
	diff = set(diff, grants.Sounds, &c.Sounds, f.Sounds)
	return c, diff
}

func set[T comparable](diff []difference, field string, at, to *T) []difference {
	if to == nil || *at == *to {
		return diff
	}
	diff = append(diff, difference{field, *at, *to})
	*at = *to
	return diff
}

// fieldsOf returns the values before and after the differences, as JSON.
func fieldsOf(diff []difference) (before, after json.RawMessage, err error) {
	was, became := map[string]any{}, map[string]any{}
	for _, d := range diff {
		was[d.field], became[d.field] = d.before, d.after
	}
	if before, err = json.Marshal(was); err != nil {
		return nil, nil, err
	}
	after, err = json.Marshal(became)
	return before, after, err
}

// summary describes the differences in one line.
func summary(diff []difference) string {
	parts := make([]string, 0, len(diff))
	for _, d := range diff {
		parts = append(parts, fmt.Sprintf("%s: %s -> %s", label(d.field), value(d.before), value(d.after)))
	}
	return strings.Join(parts, ", ")
}

// labels maps fields to the names shown to users, if these differ from the API's names.
var labels = map[string]string{
	grants.RealtimeModel: "realtime model", grants.MemoryModel: "memory model", grants.TextModel: "text model",
	grants.SessionMemory: "session memory",
}

func label(field string) string {
	return cmp.Or(labels[field], field)
}

func value(v any) string {
	switch v {
	case true:
		return "on"
	case false:
		return "off"
	case "":
		return "the default"
	}
	return fmt.Sprint(v)
}

// fits returns an *InvalidError unless every changed value is offered and the model can speak with the voice. It
// ignores unchanged values, because the caller may not be allowed to read them.
func (c Catalogue) fits(before, after Config) error {
	if after.MemoryModel != before.MemoryModel && c.memory(after.MemoryModel) == nil {
		return notOffered(grants.MemoryModel, after.MemoryModel, modelIDs(c.MemoryModels))
	}
	if after.TextModel != before.TextModel {
		if err := c.fitsText(after.TextModel); err != nil {
			return err
		}
	}
	newModel, newVoice := after.RealtimeModel != before.RealtimeModel, after.Voice != before.Voice
	if newVoice && c.voice(after.Voice) == nil {
		ids := make([]string, 0, len(c.Voices))
		for _, v := range c.Voices {
			ids = append(ids, v.ID)
		}
		return notOffered(grants.Voice, after.Voice, ids)
	}
	model := c.realtime(after.RealtimeModel)
	switch {
	case newModel && model == nil:
		return notOffered(grants.RealtimeModel, after.RealtimeModel, modelIDs(c.RealtimeModels))
	case newModel && model.Why != "":
		return &InvalidError{Field: grants.RealtimeModel,
			Message: "realtimeModel " + model.ID + " is currently not offered: " + model.Why}
	case newVoice && model == nil:
		return &InvalidError{Field: grants.Voice, Tells: grants.RealtimeModel,
			Message: "the current realtime model is no longer offered: in the same change, set realtimeModel to one of " +
				strings.Join(modelIDs(c.RealtimeModels), ", ")}
	case (newModel || newVoice) && !slices.Contains(model.Voices, after.Voice):
		return misfit(model, after.Voice, newModel, newVoice)
	}
	return nil
}

func misfit(model *Model, voice string, newModel, newVoice bool) error {
	fit := strings.Join(model.Voices, ", ")
	switch {
	case !newVoice:
		return &InvalidError{Field: grants.RealtimeModel,
			Message: "realtimeModel " + model.ID +
				" cannot speak with the current voice: in the same change, set voice to one of " + fit}
	case !newModel:
		return &InvalidError{Field: grants.Voice, Tells: grants.RealtimeModel,
			Message: "voice " + voice + " is not a voice of the current realtime model, which speaks with " + fit}
	}
	return &InvalidError{Field: grants.Voice, Message: "realtimeModel " + model.ID + " cannot speak with voice " + voice +
		", only with " + fit}
}

func notOffered(field, id string, offered []string) error {
	return &InvalidError{Field: field, Message: fmt.Sprintf("%s %q is not offered: choose one of %s", field, short(id),
		strings.Join(offered, ", "))}
}

func modelIDs(models []Model) []string {
	ids := make([]string, 0, len(models))
	for _, m := range models {
		ids = append(ids, m.ID)
	}
	return ids
}
