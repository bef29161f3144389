package main

// bundles returns the artefacts for other installers than those of operating systems.
func bundles(r *release) []artefact {
	all := []artefact{
		{"install.sh", writeInstallScript},
		{sourceName(r), writeSource},
		{"agent-plugin.zip", writePlugin},
		image(r),
	}
	all = append(all, mcpbs(r)...)
	return append(all, manifests(r)...)
}
