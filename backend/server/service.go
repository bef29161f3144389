package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/service-dev/service/backend/internal/config"
	"github.com/service-dev/service/backend/internal/osservice"
	"github.com/service-dev/service/internal/problem"
)

// exitCode is the error of a command that has already printed its result.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// Exit codes of the commands of `service`, as documented.
const (
	exitNo      exitCode = 1
	exitUnknown exitCode = 2
)

func serviceCommand() *cobra.Command {
	parent := &cobra.Command{
		Use: "service", Short: "Keep this server running with the system's service manager", Args: cobra.NoArgs,
		Long: "Registers the server with systemd, OpenRC, SysV init, launchd or Windows, with its own user.\n" +
			"Exit code: 0 yes or done, 1 no (not installed, not running), 2 cannot tell or failed.",
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for action, short := range map[string]string{
		"install":   "Create user, settings and keys where they are missing, register the server and start it",
		"uninstall": "Stop the server and remove it from the service manager; data, settings and keys stay",
		"start":     "Start the registered server",
		"stop":      "Stop the registered server until the next start or boot",
		"restart":   "Stop and start the registered server, for instance after a change of its settings",
		"status":    "Show what the service manager knows",
	} {
		var o osservice.Options
		sub := withJSON(&cobra.Command{
			Use: action, Short: short, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return control(cmd, action, o) },
		})
		if action == "install" {
			settings, _, name := osservice.Defaults()
			sub.Flags().StringVar(&o.User, "user", "", "user that the server runs as (default "+name+", which is created)")
			sub.Long = short + ".\n\nThe settings file is " + settings + " unless --config names another."
		}
		parent.AddCommand(sub)
	}
	parent.AddCommand(&cobra.Command{
		Use: "check", Short: "Check the settings as install does", Hidden: true, Args: cobra.NoArgs, RunE: checkSettings,
	})
	return parent
}

// control runs one action and prints the outcome.
func control(cmd *cobra.Command, action string, o osservice.Options) error {
	asJSON, err := cmd.Flags().GetBool("json")
	if err != nil {
		return err
	}
	var r osservice.Report
	if err = onlyOwnFlags(cmd, action); err == nil {
		o.Settings, _ = cmd.Flags().GetString("config")
		r, err = osservice.Control(cmd.Context(), action, o)
	}
	if err != nil {
		return refuse(cmd, err, asJSON)
	}
	if asJSON {
		err = printJSON(cmd.OutOrStdout(), r)
	} else {
		err = printReport(cmd, action, r)
	}
	if err == nil && action == "status" {
		err = statusCode(r.State)
	}
	return err
}

// onlyOwnFlags rejects settings as flags, because the service would not receive them.
func onlyOwnFlags(cmd *cobra.Command, action string) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Name == "json" || action == "install" && (f.Name == "config" || f.Name == "user") {
			return
		}
		err = &problem.Error{Code: "bad_flag", Message: "service " + action + " takes no --" + f.Name,
			FixHint: "Write the setting to the settings file."}
		if f.Name == "config" {
			err = &problem.Error{Code: "bad_flag", Message: "service " + action + " takes no --config",
				FixHint: "Omit it: the installed service has its own settings file."}
		}
	})
	return err
}

// refuse prints an error with its fix hint.
func refuse(cmd *cobra.Command, err error, asJSON bool) error {
	code, refused := exitUnknown, &problem.Error{Code: "service_failed", Message: err.Error()}
	errors.As(err, &refused)
	if problem.Of(refused.Code).Negative {
		code = exitNo
	}
	if asJSON {
		if err := printJSON(cmd.OutOrStdout(), map[string]any{"error": map[string]string{
			"code": refused.Code, "message": refused.Message, "fixHint": refused.FixHint}}); err != nil {
			return err
		}
		return code
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "service-backend:", refused.Message)
	if hint := refused.FixHint; hint != "" {
		fmt.Fprintln(cmd.ErrOrStderr(), "  next:", strings.ToLower(hint[:1])+strings.TrimSuffix(hint[1:], "."))
	}
	return code
}

func statusCode(state string) error {
	switch state {
	case osservice.StateRunning:
		return nil
	case osservice.StateAbsent, osservice.StateStopped, osservice.StateFailed:
		return exitNo
	}
	return exitUnknown
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// printReport prints the result in aligned columns, and the next step to standard error.
func printReport(cmd *cobra.Command, action string, r osservice.Report) error {
	out := cmd.OutOrStdout()
	if change := map[string]string{
		osservice.Created:   "The service is installed.",
		osservice.Updated:   "The service was installed differently; it is updated.",
		osservice.Unchanged: "The service was installed already.",
		osservice.Removed:   "The service is no longer installed.",
	}[r.Change]; change != "" {
		fmt.Fprintln(out, change)
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range reportRows(r) {
		if row[1] != "" {
			fmt.Fprintf(t, "%s\t%s\n", row[0], row[1])
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if next := nextStep(action, r); next != "" {
		fmt.Fprintln(cmd.ErrOrStderr(), "  next:", next)
	}
	return nil
}

func reportRows(r osservice.Report) [][2]string {
	if r.Change == osservice.Removed {
		return [][2]string{{"kept", strings.Join(r.Kept, ", ")}, {"user", r.User}}
	}
	state := strings.ReplaceAll(r.State, "_", " ")
	if r.PID > 0 {
		state += fmt.Sprintf(", pid %d", r.PID)
	}
	if r.Detail != "" {
		state += ": " + r.Detail
	}
	rows := [][2]string{{"service", state}, {"managed by", r.System + ", as " + r.Name}}
	if r.State == osservice.StateAbsent {
		return rows
	}
	return append(rows, [][2]string{
		{"at boot", map[bool]string{true: "yes", false: "no"}[r.AtBoot]}, {"program", r.Program}, {"settings", r.Settings},
		{"data", r.Data}, {"user", r.User}, {"file", r.File}, {"created", strings.Join(r.Created, ", ")},
	}...)
}

// nextStep returns the user's next step, or "" if there is none.
func nextStep(action string, r osservice.Report) string {
	switch {
	case r.Change == osservice.Removed:
		return "nothing; data, settings, keys and user stay until you remove them"
	case r.State == osservice.StateAbsent:
		return "run `service-backend service install`"
	case r.State == osservice.StateFailed, r.State == osservice.StateUnknown, r.State == osservice.StateStarting:
		return "read the log: " + r.Logs
	case r.Outdated, !r.AtBoot:
		return "this version would install it differently: run `service-backend service install`"
	case r.State == osservice.StateStopped:
		return "run `service-backend service start`"
	case action == "install" && r.Change == osservice.Created:
		return "copy the key files to a safe place; after a change of the settings run `service-backend service restart`"
	}
	return ""
}

// checkSettings prints the settings that the service manager needs, if this process can serve with them.
func checkSettings(cmd *cobra.Command, _ []string) error {
	c, err := config.Load(cmd.Flags())
	if err != nil {
		return err
	}
	if len(c.HMACKey) == 0 {
		return errors.New("no key for stored hashes: name its file in hmac_key_file (make one with: openssl rand -hex 32)")
	}
	checked := osservice.Checked{DrainSeconds: int(c.DrainTimeout.Seconds())}
	if !strings.Contains(c.Database, "://") {
		checked.Data = filepath.Dir(c.Database)
		if !filepath.IsAbs(c.Database) {
			return errors.New("a service has no working directory: data_dir or database must be an absolute path")
		}
		probe, err := os.CreateTemp(checked.Data, ".check-*")
		if err != nil {
			return fmt.Errorf("write to the directory of the database: %w", err)
		}
		if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
			return err
		}
	}
	return printJSON(cmd.OutOrStdout(), checked)
}
