package main

import (
	"context"
	"slices"
)

// artefact is one file of the release.
type artefact struct {
	name string // name of the file
	make func(ctx context.Context, r *release, file string) error
}

// table returns all artefacts in the order in which they are made.
func table(r *release) []artefact {
	var archives, contents []artefact
	for _, t := range r.chosen {
		archives = append(archives, archive(r, toolkit, t), archive(r, serverPackage, t))
		contents = append(contents, sboms(r, t)...)
	}
	return slices.Concat(
		archives,
		packages(r, toolkit),
		packages(r, serverPackage),
		bundles(r),
		contents,
		[]artefact{{sums, writeChecksums}},
		signatures(r),
	)
}
