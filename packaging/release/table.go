package main

import "context"

// artefact is one file of the release.
type artefact struct {
	name string // of the file
	make func(ctx context.Context, r *release, file string) error
}

// table returns every artefact, in the order in which they are made.
func table(r *release) []artefact {
	var all []artefact
	for _, t := range r.chosen {
		all = append(all, archive(r, t))
	}
	all = append(all, packages(r, toolkit)...)
	all = append(all, packages(r, serverPackage)...)
	all = append(all, bundles(r)...)
	return append(all, artefact{"SHA256SUMS", writeChecksums})
}
