package main

import (
	"cmp"
	"compress/gzip"
	"context"
	"io"
)

// sourceName returns the name of the source archive. It must not look like the name of a program archive, because
// programs derive the latest version from those names.
func sourceName(r *release) string { return "service-source-" + r.version + ".tar.gz" }

// writeSource packs the files of the commit, for package managers that build from source.
func writeSource(ctx context.Context, r *release, file string) error {
	return create(file, func(out io.Writer) error {
		packed := gzip.NewWriter(out)
		// The git settings of this machine must not change the archive.
		cmd := command(ctx, r.root, "git", "-c", "tar.umask=0022", "-c", "core.attributesFile=/dev/null", "archive",
			"--format=tar", "--prefix=service-"+r.version+"/", r.commit)
		cmd.Stdout = packed
		return cmp.Or(cmd.Run(), packed.Close())
	})
}
