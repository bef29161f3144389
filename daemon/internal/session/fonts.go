package session

import (
	"slices"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
)

// ModelOf returns the device model of a session's glasses. The page of a browser session lacks the fonts that the
// user added to this machine, so its display is drawn without them here as well.
func ModelOf(sessionID, model string) (m glasses.DeviceModel, ok bool) {
	m, ok = glasses.Model(model)
	m.WithoutAddedFonts = !IsLocal(sessionID)
	return m, ok
}

// On returns models, changed to draw with the fonts that these glasses have.
func (d Display) On(models []glasses.DeviceModel) []glasses.DeviceModel {
	models = slices.Clone(models)
	for i := range models {
		models[i].WithoutAddedFonts = d.Model.WithoutAddedFonts
	}
	return models
}

// IsMissingAddedFont reports whether characters are missing only because the glasses are simulated by a browser page: a
// local session draws them with a font that the user added.
func (d Display) IsMissingAddedFont() bool {
	missing := slices.ContainsFunc(d.Shown.Texts, func(t render.Text) bool { return t.Missing != "" })
	local := d.Model
	local.WithoutAddedFonts = false
	return missing && d.Model.WithoutAddedFonts && len(render.AddedFonts(local, d.View)) > 0
}
