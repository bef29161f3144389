package cli

import (
	"runtime"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/proto/buildinfo"
)

func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the build", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if a.json {
				return a.JSON(map[string]string{
					"version": buildinfo.Version, "commit": buildinfo.Commit, "builtAt": buildinfo.BuiltAt,
					"go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
				})
			}
			a.Say("%s %s (%s, built %s, %s %s/%s)", a.name, buildinfo.Version, buildinfo.Commit, buildinfo.BuiltAt, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
}
