package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/scenario"
	"github.com/service-dev/service/internal/problem"
)

// run is the state of one run.
type run struct {
	r      *Runner
	req    Request
	s      scenario.Scenario
	dir    string
	report Report

	virtual bool
	model   string // the session's device model when the run began
	rows    []glasses.Event
	next    int64 // cursor of the log
	base    int64 // time on the session's clock when the app attached
	now     int64
	since   int64          // expectations match only rows after this one
	used    map[int64]bool // rows that have met an expectation
	taken   glasses.Event  // the row that met the last expectation
	heard   []byte         // the file of the last step microphone
	marks   []int64        // the last row at the end of each step, for comparison with a recording

	groups    map[string]int // index in the report of equal differences, by their key
	artifacts map[int]int    // number of differences with pictures, by step
	merged    merger         // the recording with the accepted steps' differences

	first  []Finding // of the panel when the first step was judged
	before int64     // the last row before the first step

	stopAtFailure bool // skip the steps after the first failure
	keepPNG       bool // keep drawn pictures in the report
	gaps          bool // rows may have been deleted from the log before they were read

	drawing errgroup.Group // draws pictures
	drawn   sync.Mutex     // guards report.Pictures
}

// slice is how far virtual time advances, in ms, before a run checks its expectation again.
const slice = 100

func (x *run) do(ctx context.Context) error {
	if err := x.begin(ctx); err != nil {
		return err
	}
	if err := x.steps(ctx); err != nil {
		return err
	}
	return x.end(ctx)
}

// begin gives the session the scenario's assistant, waits for an app and sets the session to the scenario's device
// model.
func (x *run) begin(ctx context.Context) error {
	s, err := x.r.sessions.Get(ctx, x.req.Target, x.req.SessionID)
	if err != nil {
		return err
	}
	x.virtual = s.Clock == backend.ClockVirtual
	return x.withAssistant(ctx, &x.s.Memory, func() error { return x.join(ctx, s) })
}

// join waits for an app and sets the session s to the scenario's device model.
func (x *run) join(ctx context.Context, s backend.Session) error {
	if err := x.awaitGlasses(ctx); err != nil {
		return err
	}
	if x.s.DeviceModel != "" && x.s.DeviceModel != s.DeviceModel {
		res, err := x.control(ctx, glasses.SimDevice, glasses.DeviceChoice{DeviceModel: x.s.DeviceModel}, nil)
		if err != nil {
			return err
		}
		if res.Error != nil {
			return &problem.Error{Code: res.Error.Code, Message: "switch the device model: " + res.Error.Message}
		}
		s.DeviceModel = x.s.DeviceModel
	}
	x.model = s.DeviceModel
	x.now = s.NowMs
	return x.findApp(ctx, s.Apps > 0)
}

// withAssistant gives the session the scenario's script, if any, and profile, if it is not nil, and calls start. They
// must be set before an app receives the address of the assistant. If start fails, the session has its own again.
// Browser sessions have no profile of their own, so they cannot run scenarios that depend on it.
func (x *run) withAssistant(ctx context.Context, profile *string, start func() error) error {
	script, err := session.ScriptOf(ctx, x.req.Files, x.dir, x.s.Assistant)
	if err != nil {
		return err
	}
	needs := profile != nil && *profile != "" ||
		slices.ContainsFunc(x.s.Steps, func(s scenario.Step) bool { return s.ExpectMemory != nil })
	if !needs && !session.IsLocal(x.req.SessionID) {
		profile = nil
	}
	restore, err := x.r.sessions.UseScenario(ctx, x.req.Target, x.req.SessionID, script, profile)
	if err != nil {
		return err
	}
	if err = start(); err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wrapUp)
		defer cancel()
		_ = restore(ctx) // the first failure matters more
	}
	return err
}

// findApp waits for the row that records that the app attached. The run begins there.
func (x *run) findApp(ctx context.Context, attached bool) error {
	late := time.Now().Add(x.r.attachWait)
	for {
		if err := x.fetch(ctx, 0); err != nil {
			return err
		}
		at := lastAttached(x.rows)
		if at >= 0 && (attached || !left(x.rows[at:])) {
			x.rows = x.rows[at:]
			x.base, x.since = x.rows[0].At, x.rows[0].Seq
			return nil
		}
		wait := time.Until(late)
		if wait <= 0 {
			return &problem.Error{Code: problem.CodeNotConnected, Message: "no app attached to the session in time",
				FixHint: "Start the app with the session's endpoint and token file, then run the scenario again."}
		}
		if err := x.fetch(ctx, wait); err != nil {
			return err
		}
	}
}

func lastAttached(rows []glasses.Event) int {
	for i := len(rows) - 1; i >= 0; i-- {
		if rows[i].Type == glasses.RowAppAttached && rows[i].Sender == glasses.SenderService {
			return i
		}
	}
	return -1
}

func left(rows []glasses.Event) bool {
	for _, e := range rows {
		if e.Type == glasses.RowAppDetached {
			return true
		}
	}
	return false
}

// fetch reads new rows of the log. If there are none, it waits up to the duration wait for the first.
func (x *run) fetch(ctx context.Context, wait time.Duration) error {
	for {
		page, err := x.r.sessions.Wait(ctx, x.req.Target, x.req.SessionID, x.next, session.MaxLimit, wait)
		if err != nil {
			return err
		}
		if page.Truncated && !x.gaps {
			return &problem.Error{Code: problem.CodeUnsupported,
				Message: "rows of the event log were deleted before they were read: " +
					"the session wrote more rows than its log can hold",
				FixHint: "Reduce the app's output between two steps, or split the scenario."}
		}
		for _, raw := range page.Events {
			var e glasses.Event
			if err := json.Unmarshal(raw, &e); err != nil {
				return &problem.Error{Code: problem.CodeInvalidResponse, Message: "a row of the event log cannot be read"}
			}
			x.rows = append(x.rows, e)
			if !x.virtual {
				x.now = max(x.now, e.At)
			}
		}
		x.next = max(x.next, page.Next)
		if !page.More {
			return context.Cause(ctx)
		}
		wait = 0
	}
}

func (x *run) control(ctx context.Context, typ string, payload any, media []byte) (glasses.Result, error) {
	return x.r.sessions.Control(ctx, x.req.Target, x.req.SessionID, typ, payload, media)
}

// steps runs every step. If a step could not be run, it skips the remaining ones. After an unmet expectation it
// continues, unless the run stops at the first failure.
func (x *run) steps(ctx context.Context) error {
	broken := false
	for i := range x.s.Steps {
		step, began := &x.s.Steps[i], x.now
		rep := StepReport{Number: i + 1, Step: stepName(step), Verdict: Pass}
		if broken {
			rep.Verdict = Skipped
		} else if err := x.step(ctx, i, step); err != nil {
			var unmetExpectation *unmetExpectation
			var refused *problem.Error
			switch {
			case errors.As(err, &unmetExpectation):
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case errors.As(err, &refused) && refused.Code == problem.CodeNotFound:
				return err
			default:
				broken = true
			}
			rep.Verdict, rep.Message = Fail, err.Error()
			x.report.Verdict = Fail
			broken = broken || x.stopAtFailure
		} else {
			x.claim(ctx, step, began)
		}
		rep.AtMs = x.now - x.base
		x.report.Steps = append(x.report.Steps, rep)
		if i == 0 && x.stopAtFailure {
			if err := x.judgeFirst(ctx); err != nil {
				return err
			}
		}
		if err := x.mark(ctx); err != nil {
			return err
		}
	}
	return nil
}

// unmetExpectation is the error for an expectation that was not met.
type unmetExpectation struct{ message string }

// Error returns the message.
func (m *unmetExpectation) Error() string { return m.message }

func unmet(format string, args ...any) error { return &unmetExpectation{fmt.Sprintf(format, args...)} }

func (x *run) step(ctx context.Context, i int, s *scenario.Step) error {
	if typ, payload, file, ok := s.Control(); ok {
		return x.stimulate(ctx, typ, payload, file)
	}
	switch s.Act() {
	case "advance":
		return x.pass(ctx, *s.Advance)
	case "expect":
		return x.expect(ctx, s.Expect)
	case "expectDisplay":
		return x.expectDisplay(ctx, i, s.ExpectDisplay)
	case "expectNothingClipped":
		return x.expectNothingClipped(ctx, i, s.ExpectNothingClipped)
	case "expectMemory":
		return x.expectMemory(ctx, s.ExpectMemory)
	default:
		d, err := x.display(ctx)
		if err != nil {
			return err
		}
		if d.Model.Panel == nil {
			return unmet("cannot take a picture: %s has no panel", d.Model.ID)
		}
		x.picture(ctx, x.ownName(pictureName(*s.Picture)), d)
		return nil
	}
}

// stimulate sends a control request to the glasses.
func (x *run) stimulate(ctx context.Context, typ string, payload any, file string) error {
	var media []byte
	x.heard = nil
	if file != "" {
		if !filepath.IsAbs(file) {
			file = filepath.Join(x.dir, file)
		}
		var err error
		if media, err = x.req.Files.Read(ctx, file, session.MaxUpload); err != nil {
			return fmt.Errorf("read the step's file: %w", err)
		}
		if !isMedia(typ, media) {
			return fmt.Errorf("read the step's file: %s must be a PNG or JPEG picture, or a WAV or WebVTT file, as the step "+
				"requires", filepath.Base(file))
		}
		if typ == glasses.SimMicrophone {
			x.heard = media
			if media, payload, err = session.Microphone(ctx, x.req.Files, file, media); err != nil {
				return fmt.Errorf("read what is said in the step's sound: %w", err)
			}
		}
	}
	if err := x.fetch(ctx, 0); err != nil {
		return err
	}
	x.since = x.next
	res, err := x.control(ctx, typ, payload, media)
	if err != nil {
		return err
	}
	if res.Error != nil {
		return unmet("the glasses refused the request: %s: %s", res.Error.Code, res.Error.Message)
	}
	return nil
}

// isMedia reports whether data has a type that the glasses accept. The check protects private files: a scenario is part
// of a project and may refer to any file that the user can read, and in a browser session the content leaves the
// machine.
func isMedia(typ string, data []byte) bool {
	if typ == glasses.SimMicrophone {
		return session.IsWAV(data) || session.IsWebVTT(data)
	}
	return bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")) || bytes.HasPrefix(data, []byte("\xff\xd8\xff"))
}

// pass waits for ms milliseconds of virtual or real time.
func (x *run) pass(ctx context.Context, ms int64) error {
	if x.virtual {
		now, _, err := x.r.sessions.Advance(ctx, x.req.SessionID, ms)
		x.now = max(x.now, now)
		return err
	}
	timer := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		x.now += ms
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (x *run) display(ctx context.Context) (session.Display, error) {
	return x.r.sessions.Look(ctx, x.req.Target, x.req.SessionID)
}

// artifactName matches the picture names that the run itself uses. It ignores case, because some file systems do.
var artifactName = regexp.MustCompile(`(?i)^(step-\d+-.*|frame-\d+)$`)

// pictureName returns the file name of a step's picture. The name never equals one that the run itself uses.
func pictureName(named string) string {
	if artifactName.MatchString(named) {
		return "picture-" + named
	}
	return named
}

// ownName returns a name that no earlier picture of the run has.
func (x *run) ownName(name string) string {
	x.drawn.Lock()
	defer x.drawn.Unlock()
	isTaken := func(name string) bool {
		return slices.ContainsFunc(x.report.Pictures, func(p Picture) bool { return strings.EqualFold(p.Name, name) })
	}
	own := name
	for n := 2; isTaken(own); n++ {
		own = fmt.Sprintf("%s-%d", name, n)
	}
	return own
}

// maxDrawing is the maximum number of pictures drawn concurrently with the run.
const maxDrawing = 2

// KeptPNGs is the maximum number of pictures that the report of RunSteps contains as PNG. The last ones are kept.
const KeptPNGs = 4

// picture draws and stores a panel without interrupting the run.
func (x *run) picture(ctx context.Context, name string, d session.Display) {
	x.drawn.Lock()
	i := len(x.report.Pictures)
	x.report.Pictures = append(x.report.Pictures, Picture{Name: name, AtMs: x.now - x.base})
	if i >= KeptPNGs {
		x.report.Pictures[i-KeptPNGs].PNG = nil
	}
	x.drawn.Unlock()
	x.drawing.Go(func() error {
		png := d.Picture()
		// The steps may have ended, or reached their limit, while the picture was drawn.
		ctx, done := context.WithTimeout(context.WithoutCancel(ctx), wrapUp)
		defer done()
		file, err := x.req.keep(ctx, name+".png", png)
		x.drawn.Lock()
		defer x.drawn.Unlock()
		x.report.Pictures[i].SHA256, x.report.Pictures[i].File = sum(png), file
		x.report.Pictures[i].notStored(err)
		if x.keepPNG && i+KeptPNGs >= len(x.report.Pictures) {
			x.report.Pictures[i].PNG = png
		}
		return nil
	})
}

// end reads the rest of the log and compares the run with the recording.
func (x *run) end(ctx context.Context) error {
	if x.s.Recorded != nil && x.virtual && x.now-x.base < x.s.Recorded.DurationMs {
		if err := x.pass(ctx, x.s.Recorded.DurationMs-(x.now-x.base)); err != nil {
			return err
		}
	}
	if err := x.fetch(ctx, 0); err != nil {
		return err
	}
	x.report.Rows, x.report.MissingFonts = len(x.rows), missingFonts(x.s, x.req.SessionID)
	found := Findings(x.rows, x.model)
	x.report.Findings = found[:min(len(found), maxFindings)]
	x.report.MoreFindings = len(found) - len(x.report.Findings)
	x.report.DurationMs = x.now - x.base
	x.film(ctx)
	if err := x.checkApp(ctx); err != nil {
		return err
	}
	if x.s.Recorded == nil {
		return nil
	}
	x.compare(ctx)
	switch {
	case x.req.Accept:
		return x.accept(ctx)
	case len(x.req.AcceptSteps) > 0:
		return x.acceptSteps(ctx)
	}
	return nil
}
