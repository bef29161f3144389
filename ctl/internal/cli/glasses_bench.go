package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/glassesapp"
	"github.com/service-dev/service/ctl/internal/term"
	"github.com/service-dev/service/internal/buildinfo"
	"github.com/service-dev/service/internal/problem"
)

// Time limits of a bench's steps.
const (
	benchPictures   = 20
	benchInputs     = 3
	benchInputTime  = time.Minute
	benchListenTime = 3 * time.Second
	benchBreakTime  = 2 * time.Minute
	benchSteps      = 4
)

// Reasons why a step of a bench was skipped.
const (
	skippedByPerson   = "skipped by the user"
	skippedNoTerminal = "skipped: no terminal"
	skippedUnbroken   = "skipped: no connection broke"
	skippedMissing    = "skipped: the model has none"
	skippedConnected  = "skipped: the glasses were connected before"
)

func (a *app) glassesBench() *cobra.Command {
	var out string
	var anonymous bool
	cmd := &cobra.Command{
		Use: "bench [NAME]", Short: "Measure real glasses and write a record", Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: a.Complete(knownGlasses),
		Long: "Takes at most ten minutes. Connects the glasses, times 20 full pictures, and asks you to tap, to speak and\n" +
			"to interrupt the connection for a moment; without a terminal it skips these steps. The record is a JSON file\n" +
			"with the measurements, the model and firmware of the glasses, and the versions of the service and the system.\n" +
			"It never contains addresses or serial numbers.\n" +
			"Exit code: 0 measured, 1 the glasses are not connected, 2 it could not be measured.",
		RunE: a.RunWithClient(func(ctx context.Context, c *client.Client, args []string) error {
			return a.bench(ctx, c, command.FirstArg(args), out, anonymous)
		}),
	}
	cmd.Flags().StringVar(&out, "out", "", "file for the record; must be new (default: a name with model and time)")
	cmd.Flags().BoolVar(&anonymous, "anonymous", true, "omit the name of the pair from the record")
	return cmd
}

// benchRun is one run of the bench command.
type benchRun struct {
	*app
	glass  *glassesapp.App
	lines  <-chan struct{} // one element per line that the user types; nil without a terminal
	record glassesapp.Record
	step   int
}

func (a *app) bench(ctx context.Context, c *client.Client, name, out string, anonymous bool) error {
	b := &benchRun{app: a, record: glassesapp.Record{
		Record: glassesapp.RecordVersion, At: time.Now().UTC().Truncate(time.Second), Against: glassesapp.AgainstUnknown,
		Service: buildinfo.Version, System: runtime.GOOS + "/" + runtime.GOARCH, Firmware: map[string]string{},
		Battery: map[string]int{},
	}}
	if err := checkOut(out); err != nil { // check this before the bench, which takes minutes
		return err
	}
	hasPerson := !a.PrintsJSON && a.TTY && term.CanConfirm(a.In)
	if hasPerson {
		b.record.Against = glassesapp.AgainstEmulated
		isReal, err := a.Ask(ctx, a.In, term.BenchRealQuestion)
		if err != nil {
			return err
		}
		if isReal {
			b.record.Against = glassesapp.AgainstReal
		}
		b.lines = term.Lines(a.In)
	}
	at, wasConnected, err := b.connect(ctx, c, name)
	if err != nil {
		return err
	}
	if !wasConnected {
		defer func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearTime)
			defer cancel()
			_, _ = c.DisconnectGlasses(ctx)
		}()
	}
	if err := b.measure(ctx, at); err != nil {
		return err
	}
	if err := b.describe(ctx, c, at, anonymous); err != nil {
		return err
	}
	if out == "" && !a.PrintsJSON {
		out = fmt.Sprintf("glasses-bench-%s-%s.json", b.record.DeviceModel, b.record.At.Format("20060102T150405Z"))
	}
	if err := writeRecord(out, b.record); err != nil {
		return err
	}
	return a.Print(b.record, func() { a.BenchRecord(b.record, out) })
}

// connect connects the glasses and measures the time, unless they were already connected.
func (b *benchRun) connect(ctx context.Context, c *client.Client, name string) (at connectedGlasses,
	wasConnected bool, err error) {
	before, err := c.Glasses(ctx, 0)
	if err != nil {
		return at, false, err
	}
	begin := time.Now()
	at, raw, err := b.awaitGlasses(ctx, c, map[string]string{"name": name}, maxGlassesTime)
	took := time.Since(begin).Milliseconds()
	switch {
	case err != nil:
		return at, false, err
	case at.Status != "connected":
		return at, false, b.reportConnection(at, raw)
	}
	for _, g := range before {
		wasConnected = wasConnected || g.SessionID == at.SessionID
	}
	b.record.Connect.Ms = took
	if wasConnected {
		b.record.Connect = glassesapp.RecordConnect{Skipped: skippedConnected}
	}
	return at, wasConnected, nil
}

// measure runs the steps that use the glasses the way an app does.
func (b *benchRun) measure(ctx context.Context, at connectedGlasses) error {
	glass, err := glassesapp.Attach(ctx, at.AppEndpoint, at.AppTokenFile, "servicectl glasses bench")
	if err != nil {
		return err
	}
	defer glass.Close()
	b.glass = glass
	if !b.PrintsJSON {
		b.BenchBegin(at.Glasses.Name)
	}
	b.announce("pictures", "")
	b.record.Pictures, err = glass.Pictures(ctx, benchPictures, func(shown int) {
		b.RunProgress(fmt.Sprintf("picture %d of %d", shown+1, benchPictures))
	})
	b.RunProgress("")
	if err == nil {
		b.inputs(ctx)
		err = b.microphone(ctx)
	}
	if err == nil {
		b.reconnect(ctx)
	}
	return errors.Join(err, ctx.Err())
}

// announce prints the next step.
func (b *benchRun) announce(what, todo string) {
	if b.step++; b.PrintsJSON {
		return
	}
	if b.lines == nil {
		todo = ""
	}
	b.BenchStep(b.step, benchSteps, what, todo)
}

// withPerson runs a step that needs the user until the step ends, its time is up or the user skips it. It returns
// the reason why the step was skipped, or "".
func (b *benchRun) withPerson(ctx context.Context, limit time.Duration, step func(ctx context.Context)) string {
	if b.lines == nil {
		return skippedNoTerminal
	}
	select {
	case <-b.lines: // discard a line typed earlier
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		step(ctx)
	}()
	select {
	case <-b.lines:
		cancel()
		<-done
		return skippedByPerson
	case <-done:
		return ""
	}
}

func (b *benchRun) inputs(ctx context.Context) {
	i := &b.record.Inputs
	i.Seen = []string{}
	b.announce("inputs", fmt.Sprintf("Tap the glasses %d times.", benchInputs))
	if len(b.glass.Welcome.DeviceModel.Inputs) == 0 {
		i.Skipped = skippedMissing
		return
	}
	i.Skipped = b.withPerson(ctx, benchInputTime, func(ctx context.Context) { i.Seen = b.glass.Inputs(ctx, benchInputs) })
}

func (b *benchRun) microphone(ctx context.Context) (err error) {
	m := &b.record.Microphone
	b.announce("microphone", "")
	if !b.glass.Welcome.DeviceModel.Microphone {
		m.Skipped = skippedMissing
		return nil
	}
	if b.lines != nil {
		b.BenchSpeak()
	}
	*m, err = b.glass.Microphone(ctx, benchListenTime)
	return err
}

func (b *benchRun) reconnect(ctx context.Context) {
	var r glassesapp.RecordReconnect
	b.announce("a broken connection", "Put one arm, or the glasses, into the closed case, and take them out again.")
	skipped := b.withPerson(ctx, benchBreakTime, func(ctx context.Context) { r = b.glass.Break(ctx, b.BenchBroken) })
	r.Skipped = skipped
	if r.State == "" && r.Skipped == "" {
		r.Skipped = skippedUnbroken
	}
	b.record.Reconnect = r
}

// describe completes the record with what the glasses have reported about themselves in the meantime.
func (b *benchRun) describe(ctx context.Context, c *client.Client, at connectedGlasses, anonymous bool) error {
	var now connectedGlasses
	request := map[string]any{"timeoutSeconds": 1, "name": at.Glasses.Name, "deviceModel": at.DeviceModel}
	if _, err := command.CallTool(ctx, c, "connectRealDevice", request, &now); err != nil {
		return err
	}
	panel, err := panelOf(ctx, c, at)
	if err != nil {
		return err
	}
	r := &b.record
	r.DeviceModel, r.Carrier = at.DeviceModel, cmp.Or(now.Glasses.Carrier, at.Glasses.Carrier)
	r.Panel = glassesapp.RecordPanel{Inverted: panel.Inverted, Rows: panel.Rows, Checked: panel.IsChecked}
	for _, l := range now.Glasses.Links {
		if l.Firmware != "" {
			r.Firmware[l.Key] = l.Firmware
		}
		if l.BatteryPercent > 0 {
			r.Battery[l.Key] = l.BatteryPercent
		}
	}
	if !anonymous {
		r.Name = at.Glasses.Name
	}
	return nil
}

// checkOut returns an error if it is already clear that a record cannot be written to the file.
func checkOut(name string) error {
	if name == "" {
		return nil
	}
	if _, err := os.Lstat(name); err == nil {
		return recordExists(name)
	}
	if _, err := os.Stat(filepath.Dir(name)); err != nil {
		return &problem.Error{Code: "no_folder", Message: fmt.Sprintf("the folder of %s cannot be used: %v", name, err),
			FixHint: "Name a file in a folder that exists."}
	}
	return nil
}

func recordExists(name string) error {
	return &problem.Error{Code: "file_exists", Message: name + " exists",
		FixHint: "Name a new file; nothing is overwritten."}
}

// writeRecord writes a record to a new file. It does nothing if name is empty.
func writeRecord(name string, r glassesapp.Record) error {
	if name == "" {
		return nil
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the record: %w", err)
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return recordExists(name)
	}
	if err != nil {
		return fmt.Errorf("write the record: %w", err)
	}
	_, err = f.Write(append(data, '\n'))
	return errors.Join(err, f.Close())
}
