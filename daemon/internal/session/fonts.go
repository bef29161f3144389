package session

import (
	"slices"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
)

// ModelOf returns the device model of a session's glasses. For a browser session, it draws without the fonts that the
// user added to this machine, because the session's page does not have them.
func ModelOf(sessionID, model string) (m glasses.DeviceModel, ok bool) {
	m, ok = glasses.Model(model)
	m.WithoutAddedFonts = !IsLocal(sessionID)
	return m, ok
}

// On returns copies of models that draw with the fonts of these glasses.
func (d Display) On(models []glasses.DeviceModel) []glasses.DeviceModel {
	models = slices.Clone(models)
	for i := range models {
		models[i].WithoutAddedFonts = d.Model.WithoutAddedFonts
	}
	return models
}

// IsMissingAddedFont reports whether characters are missing only because a browser page simulates the glasses. A local
// session draws these characters with a font that the user added.
func (d Display) IsMissingAddedFont() bool {
	missing := slices.ContainsFunc(d.Shown.Texts, func(t render.Text) bool { return t.Missing != "" })
	local := d.Model
	local.WithoutAddedFonts = false
	return missing && d.Model.WithoutAddedFonts && len(render.AddedFonts(local, d.View)) > 0
}
