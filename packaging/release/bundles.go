package main

// bundles returns the artefacts that are made for other installers than those of operating systems.
func bundles(*release) []artefact {
	return []artefact{
		{"install.sh", writeInstallScript},
	}
}
