package tools

import (
	"fmt"

	"github.com/service-dev/service/glasses/guide"
	"github.com/service-dev/service/proto/backendapi"
)

type pageAnswer struct {
	Status string `json:"status"`
	backendapi.ConnectionPage
	Summary string `json:"summary"`
}

var pageThemes = []string{"auto", "light", "dark"}

// pageSettings completes the schema of settings in answers. The backend validates the settings. For arguments the
// description is shorter.
var pageSettings = with(
	on("theme", oneOf(pageThemes...)),
	on("phrases", maxItems, mustHave("phrase"), says("A phrase that the user can say, and its effect.")),
	on("phrases.phrase", notEmpty, upTo(80)),
	on("phrases.does", upTo(120)),
	on("toggles", maxItems, mustHave("id", "label"), says("Switches that the user sees.")),
	on("toggles.id", matches(`^[a-z][a-z0-9_-]{0,31}$`)),
	on("toggles.label", notEmpty, upTo(80)),
	on("toggles.on", says("Its initial state.")),
	on("capabilities", oneOf(guide.CapabilityIDs()...), says("The app's uses of the glasses, as shown on the page.")),
)

// pageFields completes the schema of answers that contain a page.
var pageFields = with(
	pageSettings,
	on("version", notNegative, says("Counts changes. Pass it to setConnectionPageConfig.")),
	on("accent", says("A colour, #rrggbb.")),
	onEach(says("Empty: no link."), "supportUrl", "privacyUrl"),
	pageAddress,
	on("updatedAt", format("date-time")),
)

var pageAddress = on("pageUrl", format("uri"), says("The hosted page. Anybody may open it."))

func getConnectionPageConfig(r records) definition {
	return readRecord(r, "getConnectionPageConfig", "Read the connection page's settings",
		Records.ConnectionPage,
		func(page backendapi.ConnectionPage) pageAnswer {
			return pageAnswer{"ok", tidyPage(page), describePage(page)}
		}, pageFields)
}

func tidyPage(p backendapi.ConnectionPage) backendapi.ConnectionPage {
	p.Capabilities, p.Phrases, p.Toggles = orEmpty(p.Capabilities), orEmpty(p.Phrases), orEmpty(p.Toggles)
	return p
}

func describePage(p backendapi.ConnectionPage) string {
	return fmt.Sprintf("The connection page of %s at version %d is %q (%s, %s), capabilities: %d, phrases: %d, "+
		"switches: %d. The user can open it at %s.",
		p.Project, p.Version, p.Title, p.Theme, p.Accent, len(p.Capabilities), len(p.Phrases), len(p.Toggles), p.PageURL)
}
