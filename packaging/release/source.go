package main

import (
	"compress/gzip"
	"context"
	"os"
)

func sourceName(r *release) string { return "service-" + r.version + "-source.tar.gz" }

// writeSource packs the files of the commit, from which package managers build.
func writeSource(ctx context.Context, r *release, file string) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := out.Close(); err == nil {
			err = cerr
		}
	}()
	packed, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	// Settings of this machine must not change the archive.
	cmd := command(ctx, r.root, "git", "-c", "tar.umask=0022", "-c", "core.attributesFile=/dev/null", "archive", "--format=tar",
		"--prefix=service-"+r.version+"/", r.commit)
	cmd.Stdout = packed
	if err := cmd.Run(); err != nil {
		return err
	}
	return packed.Close()
}
