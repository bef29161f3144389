package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/glasseshost"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/conformance"
)

// conformanceAddress is the default address where the glasses attach.
const conformanceAddress = "ws://127.0.0.1:0"

func (a *app) glassesConformance() *cobra.Command {
	var model string
	cmd := &cobra.Command{
		Use: "conformance [URL]", Short: "Check a program that acts as glasses against the protocol",
		Args: cobra.MaximumNArgs(1),
		Long: "Acts as a session and its app, and waits at URL until a client attaches as the glasses, such as your own\n" +
			"app on a phone. Then it checks results, streams, events, bounds and reconnects, rule by rule, and shows the\n" +
			"section of the protocol for each. URL is ws://HOST:PORT; without it, a free local port is used. It requires\n" +
			"no credential, so let others reach it only while you test.\n" +
			"Exit code: 0 every rule passed, 1 one failed, 2 not every rule could be checked.",
		RunE: func(cmd *cobra.Command, args []string) error {
			address := conformanceAddress
			if len(args) > 0 {
				address = args[0]
			}
			m, ok := glasses.Model(model)
			if !ok {
				return fmt.Errorf("unknown device model %q", model)
			}
			return a.conform(cmd.Context(), address, m)
		},
	}
	cmd.Flags().StringVar(&model, "model", "even_g1", "the device model that the client acts as")
	return cmd
}

func (a *app) conform(ctx context.Context, address string, m glasses.DeviceModel) error {
	ctx, cancel := context.WithCancel(ctx)
	h, err := glasseshost.Listen(ctx, address, m)
	if err != nil {
		cancel()
		return err
	}
	defer h.Close()
	defer cancel()
	a.ConformanceWaits(h.URL, m.Name)
	failed := 0
	lines, err := h.Run(ctx, conformance.Check, func(l conformance.Line) {
		if !l.Passed() {
			failed++
		}
		if !a.PrintsJSON {
			a.ConformanceLine(l)
		}
	})
	if err != nil {
		return fmt.Errorf("check the glasses: %w", err)
	}
	err = a.Print(map[string]any{"deviceModel": m.ID, "passed": failed == 0, "lines": lines}, func() {
		a.ConformanceEnd(len(lines), failed)
	})
	if err == nil && failed > 0 {
		err = command.ExitNo
	}
	return err
}
