package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/term"
	"github.com/service-dev/service/ctl/internal/upgrade"
	"github.com/service-dev/service/internal/buildinfo"
	"github.com/service-dev/service/internal/problem"
)

func (a *app) upgrade() *cobra.Command {
	var check bool
	cmd := command.New("upgrade", "Show how to upgrade, and check for a newer version",
		"Prints the upgrade command for the way in which this copy was installed. It changes nothing.\n"+
			"With --check it also looks for the newest release and verifies its signature; otherwise it uses no network.\n"+
			"Exit code with --check: 0 up to date, 1 there is a newer version, 2 it could not be determined.",
		func(ctx context.Context) error { return a.runUpgrade(ctx, check) })
	cmd.Flags().BoolVar(&check, "check", false, "look for the newest release")
	return cmd
}

func (a *app) runUpgrade(ctx context.Context, check bool) error {
	installed, err := upgrade.FindInstalled()
	if err != nil {
		return err
	}
	view := term.Upgrade{Version: buildinfo.Version, InstalledBy: installed.By, Dir: installed.Dir,
		ReleaseURL: buildinfo.ReleaseURL}
	if check {
		if err := a.checkUpgrade(ctx, &view); err != nil {
			return err
		}
	}
	view.Command, view.Download = installed.Command(view.Newest)
	if err := a.Print(view, func() { a.UpgradeReport(view) }); err != nil {
		return err
	}
	if view.Newer {
		return command.ExitNo
	}
	return nil
}

// checkUpgrade compares the newest release with this build.
func (a *app) checkUpgrade(ctx context.Context, view *term.Upgrade) error {
	source := upgrade.BuiltIn()
	newest, err := source.Newest(ctx, time.Now())
	switch {
	case ctx.Err() != nil:
		return context.Canceled
	case errors.Is(err, upgrade.ErrNotConfigured):
		return &problem.Error{Code: problem.CodeReleasesNotConfigured, Message: err.Error(),
			FixHint: "Check where you got it; `servicectl upgrade` shows how this copy was installed."}
	case errors.Is(err, upgrade.ErrUntrusted):
		return &problem.Error{Code: problem.CodeReleasesUntrusted, Message: fmt.Sprintf("%s: %v", source.URL, err),
			FixHint: "Install nothing from there, and tell the publisher."}
	case errors.Is(err, upgrade.ErrStale):
		return &problem.Error{Code: problem.CodeReleasesStale, Message: fmt.Sprintf("%s: %v", source.URL, err),
			FixHint: "Check this machine's date. If it is right, look for a newer release over another network, " +
				"or ask the publisher to sign the list again."}
	case err != nil:
		return &problem.Error{Code: problem.CodeReleasesUnreachable, Message: "look for the newest release: " + err.Error(),
			Retryable: true, FixHint: "Check the network, and HTTPS_PROXY and SSL_CERT_FILE of this shell; then try again."}
	}
	order, ok := buildinfo.Compare(newest, buildinfo.Version)
	if !ok {
		return &problem.Error{Code: problem.CodeVersionUnknown,
			Message: fmt.Sprintf("the newest release is %s; this program is the development build %q", newest, buildinfo.Version),
			FixHint: "Rebuild from newer source, or install the release."}
	}
	view.Newest, view.Newer, view.Checked = newest, order > 0, true
	return nil
}
