package cli

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/glassesapp"
	"github.com/service-dev/service/ctl/internal/term"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/driver"
	"github.com/service-dev/service/glasses/driver/kinds"
	"github.com/service-dev/service/glasses/driver/panelcheck"
	"github.com/service-dev/service/internal/problem"
)

const (
	// pictureTime is the maximum time to show a picture before the check fails. Glasses answer within 10 s.
	pictureTime = 15 * time.Second
	clearTime   = 5 * time.Second
)

func (a *app) glassesForget() *cobra.Command {
	return &cobra.Command{
		Use: "forget NAME", Short: "Forget glasses that were connected to this computer", Args: cobra.ExactArgs(1),
		ValidArgsFunction: a.Complete(knownGlasses),
		Long: "Deletes their addresses and your answers about their panel. If they are connected later, they count as new.\n" +
			"Exit code: 0 forgotten, 2 no such glasses are remembered.",
		RunE: a.RunWithClient(func(ctx context.Context, c *client.Client, args []string) error {
			if err := c.ForgetGlasses(ctx, args[0]); err != nil {
				return err
			}
			return a.Print(map[string]string{"forgotten": args[0]}, func() { a.GlassesForgotten(args[0]) })
		}),
	}
}

func (a *app) glassesCheck() *cobra.Command {
	return &cobra.Command{
		Use: "check [NAME]", Short: "Check with a test picture how the glasses show pictures", Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: a.Complete(knownGlasses),
		Long: "Shows a test picture and asks two questions about it. Your answers tell the service whether this pair\n" +
			"swaps light and dark and how many rows it has. Then it shows the picture again and remembers the answers.\n" +
			"`glasses connect` asks the same for new glasses.\n" +
			"Exit code: 0 right, 1 not right, not connected or no terminal, 2 it could not be checked.",
		RunE: a.RunWithClient(func(ctx context.Context, c *client.Client, args []string) error {
			if a.PrintsJSON || !term.CanConfirm(a.In) {
				return &problem.Error{Code: problem.CodeNotConfirmed, Message: "the check asks questions, and there is no terminal",
					FixHint: "Run it on a terminal, without --json."}
			}
			answer, err := a.connectGlasses(ctx, c, map[string]string{"name": command.FirstArg(args)}, glassesWait)
			if err != nil {
				return err
			}
			known, err := panelOf(ctx, c, answer)
			if err != nil {
				return err
			}
			return a.checkPanel(ctx, c, answer, known)
		}),
	}
}

// checkNewPanel checks the panel of glasses that have not been checked before. The outcome does not affect the
// connection.
func (a *app) checkNewPanel(ctx context.Context, c *client.Client, at connectedGlasses) error {
	known, err := panelOf(ctx, c, at)
	if err != nil {
		return err
	}
	if kind, _ := kinds.Of(at.DeviceModel); known.IsChecked || kind.OtherRows == 0 {
		return nil
	}
	err = a.checkPanel(ctx, c, at, known)
	if errors.Is(err, command.ExitNo) {
		return nil
	}
	return err
}

// panelOf returns the stored facts about the panel of connected glasses.
func panelOf(ctx context.Context, c *client.Client, at connectedGlasses) (*client.Panel, error) {
	list, err := c.Glasses(ctx, 0)
	if err != nil {
		return nil, err
	}
	for _, g := range list {
		if strings.EqualFold(g.Name, at.Glasses.Name) && g.DeviceModel == at.DeviceModel {
			return &g.Panel, nil
		}
	}
	return &client.Panel{}, nil
}

// panelCheck is one check of a panel.
type panelCheck struct {
	*app
	client *client.Client
	glass  *glassesapp.App
	at     connectedGlasses
	kind   kinds.Kind
}

// checkPanel shows the test picture, asks whether it is right, and stores the settings that make it right. It returns
// command.ExitNo if no settings do.
func (a *app) checkPanel(ctx context.Context, c *client.Client, at connectedGlasses, old *client.Panel) error {
	glass, err := glassesapp.Attach(ctx, at.AppEndpoint, at.AppTokenFile, "servicectl glasses check")
	if err != nil {
		return err
	}
	defer glass.Close()
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearTime)
		defer cancel()
		_, _ = glass.Command(ctx, glasses.TypeDisplayClear, struct{}{})
	}()
	p := &panelCheck{app: a, client: c, glass: glass, at: at}
	p.kind, _ = kinds.Of(at.DeviceModel)
	err = p.run(ctx, old)
	if errors.Is(err, io.EOF) {
		a.PanelUnchecked()
		return command.ExitNo
	}
	return err
}

func (p *panelCheck) run(ctx context.Context, old *client.Panel) error {
	p.PanelPicture()
	isUpright, hasBorder, err := p.look(ctx, old)
	if err != nil {
		return err
	}
	panel := &client.Panel{Inverted: old.Inverted, Rows: old.Rows}
	if isUpright && hasBorder {
		return p.right(ctx, panel)
	}
	known := driver.Panel{Inverted: old.Inverted, Rows: old.Rows}
	other, ok := panelcheck.Other(p.kind, known, isUpright, hasBorder)
	if !ok {
		p.PanelWrong(p.at.Glasses.Name)
		return command.ExitNo
	}
	panel.Inverted, panel.Rows = other.Inverted, other.Rows
	p.PanelAgain()
	if err := p.client.SetPanel(ctx, p.at.SessionID, panel); err != nil {
		return err
	}
	isRight, err := p.lookAgain(ctx, panel)
	if err == nil && isRight {
		return p.right(ctx, panel)
	}
	restoring, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearTime)
	defer cancel()
	if undone := p.client.SetPanel(restoring, p.at.SessionID, old); err == nil {
		err = undone
	}
	if err == nil {
		p.PanelWrong(p.at.Glasses.Name)
		err = command.ExitNo
	}
	return err
}

func (p *panelCheck) right(ctx context.Context, panel *client.Panel) error {
	panel.IsChecked = true
	if err := p.client.SetPanel(ctx, p.at.SessionID, panel); err != nil {
		return err
	}
	p.PanelRight(p.at.Glasses.Name)
	return nil
}

// show shows the test picture. shown is false if the glasses refused it.
func (p *panelCheck) show(ctx context.Context, panel *client.Panel) (shown bool, err error) {
	img := panelcheck.Picture(p.glass.Welcome.DeviceModel, panel.Rows)
	picture, err := glassesapp.Picture(img, "test picture: an arrow up, a filled square at the left, a border")
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, pictureTime)
	defer cancel()
	_, err = p.glass.Command(ctx, glasses.TypeDisplayShow, picture)
	var refused *glasses.Error
	if errors.As(err, &refused) {
		p.PanelRefused(refused.Message)
		return false, nil
	}
	return err == nil, err
}

// look shows the test picture and asks the user about it. If the glasses refuse the picture, it may be too high for
// them.
func (p *panelCheck) look(ctx context.Context, panel *client.Panel) (isUpright, hasBorder bool, err error) {
	shown, err := p.show(ctx, panel)
	if err != nil || !shown {
		return true, false, err
	}
	if isUpright, err = p.Ask(ctx, p.In, term.PanelUprightQuestion); err == nil {
		hasBorder, err = p.Ask(ctx, p.In, term.PanelBorderQuestion)
	}
	return isUpright, hasBorder, err
}

func (p *panelCheck) lookAgain(ctx context.Context, panel *client.Panel) (isRight bool, err error) {
	shown, err := p.show(ctx, panel)
	if err != nil || !shown {
		return false, err
	}
	return p.Ask(ctx, p.In, term.PanelAgainQuestion)
}
