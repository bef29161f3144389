package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/proto/glasses/scenario"
)

// words names a step for people.
func words(s *scenario.Step) string {
	act := s.Act()
	switch act {
	case "input":
		act += " " + s.Input.Kind
	case "transcript":
		act += " " + quoted(s.Transcript.Text)
	case "device":
		act += " " + *s.Device
	case "camera":
		act += " " + *s.Camera
	case "microphone":
		act += " " + *s.Microphone
	case "advance":
		act += fmt.Sprintf(" %d ms", *s.Advance)
	case "expect":
		if s.Expect.Absent {
			act += " no"
		}
		act += " " + s.Expect.Type
	case "expectDisplay":
		if len(s.ExpectDisplay.Text) > 0 {
			act += " " + quoted(strings.Join(s.ExpectDisplay.Text, " / "))
		}
	case "picture":
		act += " " + *s.Picture
	}
	if s.Note != "" {
		act += " (" + s.Note + ")"
	}
	return act
}

func quoted(s string) string {
	if r := []rune(s); len(r) > 60 {
		s = string(r[:59]) + "…"
	}
	return fmt.Sprintf("%q", s)
}

// expect waits for a row, or that none comes.
func (x *run) expect(ctx context.Context, e *scenario.Expect) error {
	within := scenario.Within(e.WithinMs)
	found, err := x.until(ctx, within, func() (bool, error) { return x.take(e), nil })
	switch {
	case err != nil:
		return err
	case found && e.Absent:
		return missing("%s came, though it should not", e.Type)
	case !found && !e.Absent:
		return missing("no %s came within %d ms; %s", described(e), within, x.cameInstead(e))
	}
	return nil
}

// take finds a row that the expectation means and that no other has taken.
func (x *run) take(e *scenario.Expect) bool {
	for _, row := range x.rows {
		if row.Seq <= x.since || x.used[row.Seq] || row.Type != e.Type || e.Kind != "" && row.Kind != e.Kind {
			continue
		}
		if len(e.Payload) > 0 && subset("payload", e.Payload, row.Payload) != "" {
			continue
		}
		x.used[row.Seq] = true
		return true
	}
	return false
}

func described(e *scenario.Expect) string {
	if len(e.Payload) == 0 {
		return e.Type
	}
	return e.Type + " with " + short(e.Payload)
}

// cameInstead helps to see why: rows of the type that do not fit, else what came at all.
func (x *run) cameInstead(e *scenario.Expect) string {
	var all []string
	for _, row := range x.rows {
		if row.Seq <= x.since {
			continue
		}
		if row.Type == e.Type && len(e.Payload) > 0 && !x.used[row.Seq] {
			return "one came whose " + subset("payload", e.Payload, row.Payload)
		}
		if !slices.Contains(all, row.Type) {
			all = append(all, row.Type)
		}
	}
	if len(all) == 0 {
		return "nothing came"
	}
	return "what came: " + strings.Join(all, ", ")
}

// until asks again and again whether something is so, as long as within ms of the session's clock have not passed.
func (x *run) until(ctx context.Context, within int64, so func() (bool, error)) (bool, error) {
	deadline := x.now + within
	late := time.Now().Add(time.Duration(within) * time.Millisecond)
	for {
		if err := x.fetch(ctx, 0); err != nil {
			return false, err
		}
		if yes, err := so(); yes || err != nil {
			return yes, err
		}
		if x.virtual {
			if x.now >= deadline {
				return false, nil
			}
			if err := x.pass(ctx, min(slice, deadline-x.now)); err != nil {
				return false, err
			}
			continue
		}
		wait := time.Until(late)
		if wait <= 0 {
			return false, nil
		}
		if err := x.fetch(ctx, wait); err != nil {
			return false, err
		}
	}
}

// expectDisplay waits until the panel shows what it should.
func (x *run) expectDisplay(ctx context.Context, i int, e *scenario.ExpectDisplay) error {
	within := scenario.Within(e.WithinMs)
	why := ""
	var last session.Display
	found, err := x.until(ctx, within, func() (bool, error) {
		d, err := x.display(ctx)
		if err != nil {
			return false, err
		}
		last, why = d, wrongDisplay(e, d)
		return why == "", nil
	})
	if err != nil || found {
		return err
	}
	if last.Model.Panel != nil {
		x.picture(ctx, fmt.Sprintf("step-%d-failed", i), last)
	}
	return missing("%s", why)
}

// wrongDisplay tells what is not as expected; empty when all is.
func wrongDisplay(e *scenario.ExpectDisplay, d session.Display) string {
	for _, want := range e.Text {
		if !slices.ContainsFunc(d.Text, func(got string) bool { return strings.Contains(got, want) }) {
			if len(d.Text) == 0 {
				return fmt.Sprintf("%s is not on the panel, which shows no text", quoted(want))
			}
			return fmt.Sprintf("%s is not on the panel, which shows %s", quoted(want), quoted(strings.Join(d.Text, " / ")))
		}
	}
	if e.Focus != nil && focused(d) != *e.Focus {
		return fmt.Sprintf("the focus is on %q, not on %q", focused(d), *e.Focus)
	}
	if e.Picture == "" {
		return ""
	}
	if got := sum(d.Picture()); got != e.Picture {
		return fmt.Sprintf("the picture is %s, not %s", got, e.Picture)
	}
	return ""
}

// subset tells where got does not hold all that want does; empty when it does. Objects may have more fields, everything
// else must be equal; numbers are compared as written.
func subset(path string, want, got json.RawMessage) string {
	w, okW := decoded(want)
	g, okG := decoded(got)
	if !okW || !okG {
		return path + " is not JSON"
	}
	return subsetOf(path, w, g)
}

func decoded(raw json.RawMessage) (v any, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	err := dec.Decode(&v)
	return v, err == nil
}

func subsetOf(path string, want, got any) string {
	w, isObject := want.(map[string]any)
	if !isObject {
		return differs(path, want, got)
	}
	g, ok := got.(map[string]any)
	if !ok {
		return fmt.Sprintf("%s is %s, not an object", path, shown(got))
	}
	for _, name := range sortedKeys(w) {
		inner := path + "." + name
		value, there := g[name]
		if !there {
			return inner + " is missing"
		}
		if why := subsetOf(inner, w[name], value); why != "" {
			return why
		}
	}
	return ""
}
