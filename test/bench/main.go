// Command bench measures speed and memory of the shipped programs against a baseline in the same run and prints one
// table: medians over interleaved runs, the ratio to the baseline, and the goal. It does not check the goals. It uses
// only the programs' external interfaces.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	bin := flag.String("bin", "bin", "where `make build` put the programs")
	only := flag.String("only", "", "run only the step with this name: "+stepNames())
	runs := flag.Int("runs", 40, "interleaved runs of each start-up figure, at least 20")
	accounts := flag.Int("accounts", 100_000, "most accounts of the step growth: 10, 1000, 100000 or 1000000")
	flag.Parse()
	if err := run(*bin, *only, max(*runs, 20), *accounts); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench is a machine with an idle daemon and its embedded backend.
type bench struct {
	bin  string // directory of the programs
	work string // directory for baseline programs and state
	env  []string
	runs int
	rows []row

	accounts int // maximum number of accounts in growth
}

// row is one line of the table. Ratio and Goal are empty if nothing is compared.
type row struct{ figure, ours, floor, ratio, goal string }

func run(bin, only string, runs, accounts int) error {
	if only != "" && !slices.ContainsFunc(new(bench).steps(), func(s step) bool { return s.name == only }) {
		return fmt.Errorf("unknown step %q; the steps are %s", only, stepNames())
	}
	bin, err := filepath.Abs(bin)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	b := &bench{bin: bin, work: work, runs: runs, accounts: accounts, env: []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + work, "SERVICE_CONFIG_DIR=" + filepath.Join(work, "state"),
		"SERVICE_NO_AUTO_OPEN=1",
	}}
	for _, name := range []string{"empty", "inprocess", "echo", "bareauth", "barerelay", "bareingest", "drawing",
		"bareprovider", "bareproxy", "barevoice", "bareglasses"} {
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(work, name),
			"./test/bench/testdata/"+name)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", name, err, out)
		}
	}
	if out, err := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(work, "minute"),
		"./test/e2e/testdata/apps/minute").CombinedOutput(); err != nil {
		return fmt.Errorf("build minute: %w\n%s", err, out)
	}
	defer func() { b.command("servicectl", "daemon", "stop").Run() }()
	if err := b.withAgent(b.warm)(); err != nil {
		return err
	}
	var failed error
	for _, step := range b.steps() {
		if only != "" && only != step.name {
			continue
		}
		fmt.Fprintf(os.Stderr, "measuring %s ...\n", step.name)
		if err := step.run(); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", step.name, err))
		}
	}
	b.print()
	return failed
}

type step struct {
	name string
	run  func() error
}

// steps returns the measurements, in the order of the table.
func (b *bench) steps() []step {
	return []step{
		{"starts", b.starts}, {"shim", b.withAgent(b.shim)}, {"whoami", b.whoami}, {"whoami64", b.busyWhoami},
		{"tool64", b.busyTool},
		{"cold20", b.cold},
		{"idle", b.idle}, {"polltoken", b.pollToken}, {"issue", b.issue}, {"telemetry", b.telemetry}, {"drawing", b.drawing},
		{"localsim", b.localSim}, {"realglasses", b.realGlasses},
		{"minute", b.withAgent(b.minute)}, {"relay", b.relay}, {"idlesessions", b.idleSessions},
		{"ingest", b.ingest}, {"page", b.page}, {"gateway", b.gateway}, {"holds", b.holds},
		{"voice", b.voice},
		{"growth", b.growth}, {"sizes", b.sizes},
	}
}

// stepNames lists the names of the steps for messages.
func stepNames() string {
	var names []string
	for _, s := range new(bench).steps() {
		names = append(names, s.name)
	}
	return strings.Join(names, ", ")
}

func (b *bench) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(b.bin, name), args...)
	cmd.Env, cmd.Dir = b.env, b.work
	return cmd
}

func (b *bench) print() {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "figure\tours\tfloor\tratio\tgoal")
	for _, r := range b.rows {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", r.figure, r.ours, r.floor, r.ratio, r.goal)
	}
	t.Flush()
	fmt.Printf("medians of %d interleaved runs\n", b.runs)
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1000) }

func mb(kb int64) string { return fmt.Sprintf("%.1f MB", float64(kb)/1024) }

// timesRow returns the row for two series of times, which show formats.
func timesRow(figure string, ours, floor []time.Duration, show func([]time.Duration) string, goal string) row {
	return row{figure, show(ours), show(floor), ratio(float64(median(ours)), float64(median(floor))), goal}
}

func medianMs(all []time.Duration) string { return ms(median(all)) }

// ratesRow returns the row for two rates per second.
func ratesRow(figure string, ours, floor float64, goal string) row {
	return row{figure, fmt.Sprintf("%.0f /s", ours), fmt.Sprintf("%.0f /s", floor), ratio(ours, floor), goal}
}

func ratio(a, b float64) string { return fmt.Sprintf("%.2f", a/b) }
