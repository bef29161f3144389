package web

import "github.com/service-dev/service/backend/internal/grants"

// usualGrants returns the default of the signed-in account, which applies to new projects, or the built-in default.
func (w *Web) usualGrants(c *call) (grants.Grants, error) {
	if !c.isSignedIn() || w.Dashboard == nil {
		return grants.Default(), nil
	}
	usual, _, err := w.Dashboard.Grants.All(c.Context(), c.account.ID)
	return usual, err
}

// granted lists what an approved agent may do: the abilities of every link, and the access to project data in g.
func granted(g grants.Grants) []string {
	list := []string{
		"Open the browser simulator and run apps in it",
		"See your projects, and make keys for their apps",
	}
	for _, c := range []struct {
		capability   grants.Capability
		read, change string
	}{
		{grants.Assistant, "Read a project's assistant settings", "Read and change a project's assistant settings"},
		{grants.Credentials, "See whether a project's AI keys are set, never the keys themselves",
			"See whether a project's AI keys are set, never the keys themselves, and ask you to paste one"},
		{grants.Analytics, "Read a project's analytics", "Read a project's analytics"},
	} {
		switch g.Of(c.capability, "") {
		case grants.ReadWrite:
			list = append(list, c.change)
		case grants.Read:
			list = append(list, c.read)
		case grants.Off:
		}
	}
	if g.Of(grants.Assistant, grants.GatewayUsage).Allows(grants.Read) {
		list = append(list, "Read what a project's calls through the AI gateway cost, and your credit")
	}
	return append(list, "Read and change a project's connection page")
}
