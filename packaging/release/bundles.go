package main

import "slices"

// bundles returns the artefacts for installers that are not part of an operating system, as far as the chosen targets
// allow.
func bundles(r *release) []artefact {
	all := []artefact{
		{"install.sh", writeInstallScript},
		{sourceName(r), writeSource},
		{"agent-plugin.zip", writePlugin},
	}
	if slices.ContainsFunc(r.chosen, func(t target) bool { return t.os == "linux" }) {
		all = append(all, image(r))
	}
	if len(r.chosen) == len(targets) {
		all = append(all, mcpbs(r)...)
		all = append(all, manifests(r)...)
	}
	return all
}
