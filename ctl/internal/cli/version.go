package cli

import (
	"context"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/internal/buildinfo"
)

func (a *app) version() *cobra.Command {
	return command.New("version", "Show the build", "", func(context.Context) error {
		platform := runtime.GOOS + "/" + runtime.GOARCH
		return a.Print(map[string]string{
			"version": buildinfo.Version, "commit": buildinfo.Commit, "builtAt": buildinfo.BuiltAt,
			"go": runtime.Version(), "platform": platform,
		}, func() {
			a.Say("%s %s (%s, built %s, %s %s)",
				a.Name, buildinfo.Version, buildinfo.Commit, buildinfo.BuiltAt, runtime.Version(), platform)
		})
	})
}
