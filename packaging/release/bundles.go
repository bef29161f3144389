package main

// bundles returns the artefacts that are made for other installers than those of operating systems.
func bundles(r *release) []artefact {
	return []artefact{
		{"install.sh", writeInstallScript},
		image(r),
	}
}
