// Command release makes the artefacts of a release from the checked-out commit. Two runs for the same commit write
// the same bytes, regardless of user, machine and time, because all times are the commit's and this program writes
// all archives itself.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run() error {
	var o options
	for _, f := range []struct {
		to                 *string
		name, value, usage string
	}{
		{&o.root, "root", "../..", "the repository"},
		{&o.out, "out", "../../dist", "the directory to write; it must be empty or missing"},
		{&o.version, "version", "", "the version, such as 1.4.0"},
		{&o.releaseURL, "url", "", "RELEASE_URL: where the files will be downloaded from; empty if nowhere"},
		{&o.releaseKey, "public-key", "", "RELEASE_KEY: the minisign public key that upgrades check, a line of base64"},
		{&o.backendURL, "backend", "", "DEFAULT_BACKEND_URL: the backend of this distribution; empty is the embedded one"},
		{&o.secretKey, "key", "", "the file of the minisign secret key; empty leaves SHA256SUMS unsigned"},
		{&o.targets, "targets", "", "make only the artefacts for these, such as linux-amd64,linux-arm64"},
		{&o.only, "only", "", "make only the artefacts whose names match this glob, such as '*linux-amd64*'"},
	} {
		flag.StringVar(f.to, f.name, f.value, f.usage)
	}
	flag.BoolVar(&o.dirty, "dirty", false, "take files that are not committed too; for tests")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r, err := newRelease(ctx, o)
	if err != nil {
		return err
	}
	defer r.close()
	if err := r.makeAll(ctx); err != nil {
		return err
	}
	if o.secretKey == "" {
		fmt.Println("SHA256SUMS is not signed: pass a minisign secret key with -key (make: SIGNING_KEY)")
	}
	return nil
}
