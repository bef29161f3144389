package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/problem"
)

// maxParallel is the maximum number of concurrent runs: each has its own app and session.
const maxParallel = 8

// runOptions are the flags of session run.
type runOptions struct {
	reportOptions
	html, project, clock, transport string
	models                          []string
	failFast, quiet, watch          bool
	parallel                        int
}

func (p *program) run() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use: "run [FILE|FOLDER...] [-- COMMAND...]", Short: "Run scenarios headless: session, app, steps, report",
		Long: "Runs scenarios, recordings and every scenario below folders, one after the other. Each run opens a local\n" +
			"session (in virtual time unless the scenario says real), starts the app, runs the steps, ends the app and\n" +
			"closes the session. The app is COMMAND, else app.command of the scenario; it gets SERVICE_GLASSES_URL,\n" +
			"SERVICE_GLASSES_SECRET_FILE and SERVICE_GLASSES_TRANSPORT. An app that fails before the end fails the run.\n" +
			"Needs no account, network or window. Without a FILE, COMMAND runs on a new session until it ends.\n" +
			"Exit code: 0 passed, 1 failed, 2 could not be run.",
		RunE: func(cmd *cobra.Command, args []string) error {
			var appCommand []string
			if at := cmd.ArgsLenAtDash(); at >= 0 {
				args, appCommand = args[:at], args[at:]
			}
			if err := o.check(args, appCommand); err != nil {
				return err
			}
			if len(args) == 0 {
				return p.runApp(cmd.Context(), o, appCommand)
			}
			if o.watch {
				return p.watchRuns(cmd.Context(), o, args, appCommand)
			}
			return p.runBatch(cmd.Context(), o, args, appCommand)
		},
	}
	o.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.html, "html", "", "also write an HTML report with pictures to this file")
	f.StringVar(&o.project, "project", "", "app id of the session (default: that of the directory)")
	f.StringVar(&o.transport, "transport", "", "transport of the session: localsim, or one that was added")
	f.StringSliceVar(&o.models, "models", nil, "run on each of these device models, or on all with a display: all")
	f.BoolVar(&o.failFast, "fail-fast", false, "start no further runs after the first failure")
	f.BoolVar(&o.quiet, "quiet", false, "print only failures and the verdict")
	f.BoolVar(&o.watch, "watch", false, "run again when files change, until Ctrl-C")
	f.IntVar(&o.parallel, "parallel", 1, fmt.Sprintf("number of concurrent runs, 1 to %d", maxParallel))
	f.StringVar(&o.clock, "clock", "", "virtual or real, for COMMAND without a FILE (default real)")
	return cmd
}

// check rejects flags that exclude each other before anything starts, and resolves the models.
func (o *runOptions) check(files, appCommand []string) error {
	switch {
	case len(files) == 0 && len(appCommand) == 0:
		return errors.New("pass a scenario or a folder of scenarios, or put the app's command after --")
	case len(files) == 0 && (o.junit != "" || o.html != "" || o.pictures != "" || o.watch || len(o.models) > 1):
		return errors.New("there is no report without a scenario: pass a scenario or a folder before --")
	case len(files) > 0 && o.clock != "":
		return errors.New("the scenario sets the clock; use --clock only without a scenario")
	case o.parallel < 1 || o.parallel > maxParallel:
		return fmt.Errorf("--parallel must be 1 to %[2]d, not %[1]d", o.parallel, maxParallel)
	case o.watch && o.pictures != "":
		return errors.New("--pictures needs an empty folder for each run; use --html with --watch")
	}
	if err := o.expandModels(); err != nil {
		return err
	}
	for _, file := range []string{o.junit, o.html} {
		if file == "" {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("cannot write %s: create its folder: %w", file, err)
		}
	}
	return nil
}

// expandModels replaces "all" by every model with a display and refuses unknown ones.
func (o *runOptions) expandModels() error {
	var list []string
	seen := map[string]bool{}
	add := func(id string) {
		if !seen[id] {
			seen[id] = true
			list = append(list, id)
		}
	}
	for _, id := range o.models {
		if id == "all" {
			for _, m := range glasses.Models() {
				if m.Panel != nil {
					add(m.ID)
				}
			}
			continue
		}
		if _, ok := glasses.Model(id); !ok {
			var known []string
			for _, m := range glasses.Models() {
				known = append(known, m.ID)
			}
			return fmt.Errorf("unknown device model %q; use one of %s, or all", id, strings.Join(known, ", "))
		}
		add(id)
	}
	o.models = list
	return nil
}

// batch is all runs of one command.
type batch struct {
	program *program
	options runOptions
	args    []string // arguments as typed, for reports
	command []string // the app's command line
	jobs    []job
	// single is set for one scenario on one model. Then every step is printed, and the report is the tool's own.
	single bool

	client  *client.Client
	temp    string // directory for pictures that only the HTML report needs; empty if there is none
	started time.Time
	took    time.Duration
	written []string // paths of the written reports

	mu      sync.Mutex // guards the fields below
	results []result
	stopped bool // set after a failure if failFast is set
}

// result is the outcome of a job.
type result struct {
	state  runState
	report *report // set if the run passed or failed
	err    error   // why the run could not be completed
	output string  // output of the app
	left   string  // how the app exited, if it exited before the run ended
	took   time.Duration
}

type runState int

const (
	notRun runState = iota
	passed
	failed
	broken      // the run could not be completed
	interrupted // ended by Ctrl-C; must be the last constant
)

// runBatch executes all runs once, prints the results and writes the reports.
func (p *program) runBatch(ctx context.Context, o runOptions, args, appCommand []string) error {
	jobs, single, err := findJobs(args, o.models)
	if err != nil {
		return err
	}
	b := &batch{program: p, options: o, args: args, command: appCommand, jobs: jobs, single: single,
		results: make([]result, len(jobs)), started: time.Now()}
	if o.html != "" && o.pictures == "" {
		if b.temp, err = os.MkdirTemp("", "service-run-"); err != nil {
			return fmt.Errorf("create a directory for the pictures: %w", err)
		}
		defer os.RemoveAll(b.temp)
	}
	return b.run(ctx)
}

func (b *batch) run(ctx context.Context) error {
	c, err := b.program.OpenClient(ctx)
	if err == nil {
		b.client = c
		defer b.program.CloseClient(c)
		err = b.prepare()
	}
	if err != nil {
		b.results[0] = result{state: broken, err: err}
	} else {
		b.runJobs(ctx)
	}
	b.took = time.Since(b.started)
	writeErr := b.writeReports(ctx.Err() != nil)
	verdict := b.print(ctx)
	if writeErr != nil {
		if verdict == nil {
			return writeErr
		}
		b.program.Remark("%v", writeErr)
	}
	return verdict
}

// prepare creates the directory for pictures, which must be new or empty.
func (b *batch) prepare() error {
	if b.single || b.options.pictures == "" {
		return nil // the tool creates the directory
	}
	dir, err := absolute(b.options.pictures)
	if err != nil {
		return err
	}
	b.options.pictures = dir
	entries, err := os.ReadDir(dir)
	if len(entries) > 0 {
		return &problem.Error{Code: "file_exists", Message: dir + " is not empty",
			FixHint: "Name a new folder; nothing is overwritten."}
	}
	if err != nil {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return fmt.Errorf("create the directory for pictures: %w", err)
		}
	}
	return nil
}

// runJobs runs the jobs in order, --parallel of them at a time. The default is one, because two apps may use the same
// port or file.
func (b *batch) runJobs(ctx context.Context) {
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(b.options.parallel, len(b.jobs)) {
		workers.Go(func() {
			for i := range next {
				b.finish(i, b.runJob(ctx, i))
			}
		})
	}
	for i := range b.jobs {
		if ctx.Err() != nil || b.isStopped() {
			break
		}
		b.progress(i)
		next <- i
	}
	close(next)
	workers.Wait()
}

func (b *batch) isStopped() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stopped
}

func (b *batch) runJob(ctx context.Context, i int) result {
	j := b.jobs[i]
	if b.isStopped() || ctx.Err() != nil {
		return result{}
	}
	start := time.Now()
	run := scenarioRun{program: b.program, client: b.client, options: b.options.reportOptions, project: b.options.project,
		transport: b.options.transport, command: b.command, file: j.file, scenario: j.scenario}
	run.options.model, run.options.film = j.model, b.options.html != ""
	run.options.pictures = b.picturesOf(i)
	var res result
	if res.err = j.invalid; res.err == nil {
		res.report, res.err = run.do(ctx)
	}
	if run.output != nil {
		res.output = run.output.String()
	}
	res.left, res.took = run.left, time.Since(start)
	switch {
	case res.err != nil && ctx.Err() != nil:
		res.state = interrupted
	case res.err != nil:
		res.state = broken
	case res.report.Verdict != "pass":
		res.state = failed
	default:
		res.state = passed
	}
	return res
}

// picturesOf returns the directory for a job's pictures, or "" if pictures are not kept.
func (b *batch) picturesOf(i int) string {
	dir := cmp.Or(b.options.pictures, b.temp)
	if dir == "" || b.single && b.temp == "" {
		return dir
	}
	return filepath.Join(dir, fmt.Sprintf("%03d-%s", i+1, b.jobs[i].slug()))
}
