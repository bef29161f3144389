package scenario

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/service-dev/service/daemon/internal/session"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/scenario"
)

// stepName describes a step in a few words.
func stepName(s *scenario.Step) string {
	act := s.Act()
	switch act {
	case "input":
		act += " " + cmp.Or(s.Input.Kind, s.Input.Target)
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
		act += " " + rowWords(s.Expect)
	case "expectDisplay":
		if len(s.ExpectDisplay.Text) > 0 {
			if s.ExpectDisplay.Contains {
				act += " containing"
			}
			act += " " + quoted(strings.Join(s.ExpectDisplay.Text, " / "))
		}
	case "expectNothingClipped":
		if len(s.ExpectNothingClipped.Models) > 0 {
			act += " on " + strings.Join(s.ExpectNothingClipped.Models, ", ")
		}
	case "expectMemory":
		act += " " + quoted(strings.Join(s.ExpectMemory.Text, " / "))
		if s.ExpectMemory.Empty {
			act = "expectMemory empty"
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

// expect waits for a row, or checks that no row is written.
func (x *run) expect(ctx context.Context, e *scenario.Expect) error {
	within := scenario.Within(e.WithinMs)
	x.taken = glasses.Event{}
	found, err := x.until(ctx, within, func() (bool, time.Duration, error) { return x.take(e), time.Hour, nil })
	switch {
	case err != nil:
		return err
	case found && e.Absent:
		return unmet("%s arrived, but must not", rowWords(e))
	case !found && !e.Absent:
		return unmet("no %s arrived within %d ms; %s", described(e), within, x.cameInstead(e))
	}
	return nil
}

// take finds a row that matches the expectation and has not met an earlier one.
func (x *run) take(e *scenario.Expect) bool {
	for _, row := range x.rows {
		if row.Seq <= x.since || x.used[row.Seq] || !fits(row, e) {
			continue
		}
		if mismatch(e, row) != "" {
			continue
		}
		x.used[row.Seq], x.taken = true, row
		return true
	}
	return false
}

// mismatch describes the first difference between a row's payload and the expectation, or returns "".
func mismatch(e *scenario.Expect, row glasses.Event) string {
	if len(e.Payload) > 0 {
		if why := subset("payload", e.Payload, row.Payload); why != "" {
			return why
		}
	}
	if len(e.AtMost) == 0 {
		return ""
	}
	payload := map[string]json.RawMessage{}
	_ = json.Unmarshal(row.Payload, &payload) // a payload that is not an object has no fields
	for _, name := range slices.Sorted(maps.Keys(e.AtMost)) {
		var got *float64
		switch err := json.Unmarshal(payload[name], &got); {
		case payload[name] == nil:
			return fmt.Sprintf("payload.%s is missing", name)
		case err != nil || got == nil:
			return fmt.Sprintf("payload.%s must be a number, not %s", name, short(payload[name]))
		case *got > float64(e.AtMost[name]):
			return fmt.Sprintf("payload.%s must be at most %d, not %s", name, e.AtMost[name], short(payload[name]))
		}
	}
	return ""
}

// fits reports whether a row matches the expectation, ignoring its payload.
func fits(row glasses.Event, e *scenario.Expect) bool {
	for _, f := range [][2]string{{e.Type, row.Type}, {e.Kind, row.Kind}, {e.Chip, row.Chip}, {e.Sender, row.Sender}} {
		if f[0] != "" && f[0] != f[1] {
			return false
		}
	}
	return true
}

// fits reports whether a row matches the expectation, except for its payload.
func rowWords(e *scenario.Expect) string {
	var list []string
	if e.Type != "" {
		list = append(list, e.Type)
	}
	for _, f := range [][2]string{{"kind", e.Kind}, {"chip", e.Chip}, {"sender", e.Sender}} {
		if f[1] != "" && (f[0] != "kind" || e.Type == "") {
			list = append(list, f[0]+" "+f[1])
		}
	}
	if len(list) == 0 {
		return "row"
	}
	return strings.Join(list, " ")
}

func described(e *scenario.Expect) string {
	words := rowWords(e)
	if len(e.Payload) > 0 {
		words += " with " + short(e.Payload)
	}
	for _, name := range slices.Sorted(maps.Keys(e.AtMost)) {
		words += fmt.Sprintf(" with %s of at most %d", name, e.AtMost[name])
	}
	return words
}

// cameInstead describes the rows that were written instead. These are rows of the expected type that do not match or,
// if there are none, the types of all rows.
func (x *run) cameInstead(e *scenario.Expect) string {
	var all []string
	for _, row := range x.rows {
		if row.Seq <= x.since {
			continue
		}
		if why := mismatch(e, row); why != "" && fits(row, e) && !x.used[row.Seq] {
			return "one came, but its " + why
		}
		if !slices.Contains(all, row.Type) {
			all = append(all, row.Type)
		}
	}
	if len(all) == 0 {
		return "nothing came"
	}
	return "these came: " + strings.Join(all, ", ")
}

// until polls a condition for at most within ms on the session's clock. In real time it polls again when a row is
// written, or after the duration that the condition returns.
func (x *run) until(ctx context.Context, within int64, so func() (bool, time.Duration, error)) (bool, error) {
	deadline := x.now + within
	late := time.Now().Add(time.Duration(within) * time.Millisecond)
	for {
		if err := x.fetch(ctx, 0); err != nil {
			return false, err
		}
		yes, again, err := so()
		if yes || err != nil {
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
		if err := x.fetch(ctx, min(wait, again)); err != nil {
			return false, err
		}
	}
}

// expectDisplay waits until the wearer sees the expected content.
func (x *run) expectDisplay(ctx context.Context, i int, e *scenario.ExpectDisplay) error {
	return x.untilDisplay(ctx, i, e.WithinMs, func(d session.Display) []string { return d.Unmet(*e) })
}

// expectNothingClipped waits until the tree on the panel fits all models.
func (x *run) expectNothingClipped(ctx context.Context, i int, e *scenario.ExpectNothingClipped) error {
	return x.untilDisplay(ctx, i, e.WithinMs, func(d session.Display) []string {
		return session.Misfits(d.View.Tree, d.On(e.DeviceModels()), e.Loose)
	})
}

// memoryPoll is how often, in real time, the profile is read.
const memoryPoll = 50 * time.Millisecond

// expectMemory waits until the assistant remembers the expected content.
func (x *run) expectMemory(ctx context.Context, e *scenario.ExpectMemory) error {
	profile := ""
	isMet := func() (bool, time.Duration, error) {
		var err error
		profile, err = x.r.sessions.WearerMemory(x.req.SessionID)
		isMissing := func(text string) bool { return !strings.Contains(profile, text) }
		return !slices.ContainsFunc(e.Text, isMissing) && (!e.Empty || profile == ""), memoryPoll, err
	}
	found, err := x.until(ctx, scenario.Within(e.WithinMs), isMet)
	switch {
	case err != nil || found:
		return err
	case profile == "":
		return unmet("nothing is remembered")
	}
	return unmet("the profile is %s", quoted(profile))
}

// untilDisplay waits until the display meets every expectation. On failure it stores a picture.
func (x *run) untilDisplay(
	ctx context.Context, i int, withinMs *int64, unmetOf func(session.Display) []string,
) error {
	var why []string
	var last session.Display
	look := func() (bool, time.Duration, error) {
		d, err := x.display(ctx)
		if err != nil {
			return false, 0, err
		}
		last, why = d, unmetOf(d)
		return len(why) == 0, d.LookAgain(), nil
	}
	within := scenario.Within(withinMs)
	found, err := x.until(ctx, within, look)
	if longer := last.DefaultWithin(within); err == nil && !found && withinMs == nil && longer > within {
		found, err = x.until(ctx, longer-within, look)
	}
	if err != nil || found {
		return err
	}
	if last.Model.Panel != nil {
		x.picture(ctx, fmt.Sprintf("step-%d-failed", i+1), last)
	}
	return unmet("%s", strings.Join(why, "; "))
}

// subset returns the first path at which got does not contain want, or "" if got contains all of want. Objects may have
// additional fields; other values must be equal. Numbers are compared as text.
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
		return fmt.Sprintf("%s must be an object, not %s", path, shown(got))
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
