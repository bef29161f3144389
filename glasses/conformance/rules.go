package conformance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/media"
)

// Sections of PROTOCOL.md.
const (
	envelopeSection = "The envelope"
	commandSection  = "Commands: app to glasses"
	errorSection    = "Errors"
	eventSection    = "Events: glasses to app"
	binarySection   = "Binary frames"
	timeSection     = "Time"
	actingSection   = "Acting as the glasses"
)

const (
	napTime = 100 * time.Millisecond
)

// rules returns the rules that apply to a model.
func rules(m glasses.DeviceModel) []rule {
	all := []rule{{"the state can be read", actingSection, stateIsRead}}
	if m.Panel != nil {
		all = append(all, rule{"display.show is answered, and the view has its tree", commandSection, showIsAnswered},
			rule{"two pictures at once are both answered", commandSection, twoPictures},
			rule{"display.clear is answered, and the view has no tree", commandSection, clearIsAnswered})
	}
	all = append(all, rule{"phrases.announce is answered", commandSection, announceIsAnswered},
		rule{"clock.sleep lasts, and clock.cancel ends it", timeSection, sleepLasts},
		rule{"an invalid payload is bad_payload", errorSection, invalidPayloads},
		rule{"bounds are kept", commandSection, boundsAreKept},
		rule{"a type that is not known disturbs nothing", envelopeSection, unknownType},
		rule{"what the model does not have is unsupported", errorSection, missingParts})
	all = append(all, streamRules(m)...)
	if m.Camera != nil {
		all = append(all, rule{"camera.photo sends the picture and then its result", binarySection, photoIsSent})
	}
	if len(m.Inputs) > 0 {
		all = append(all, rule{"sim.input becomes an input event, or is unsupported", eventSection, inputIsPassed})
	}
	all = append(all, rule{"sim.fault fails the next command, or is unsupported", actingSection, faultIsObeyed})
	return append(all, rule{"sim.state changes the state with an event, or is unsupported", actingSection, stateIsChanged},
		rule{"every frame has one result", commandSection, oneResult},
		rule{"every frame has a valid envelope and an id of its own", envelopeSection, envelope})
}

// readState requests the state and the view.
func (c *checker) readState(ctx context.Context) (glasses.Result, error) {
	r, _, err := c.ask(ctx, glasses.SimState, struct{}{})
	switch {
	case err != nil:
	case r.Error != nil:
		err = fmt.Errorf("sim.state {} returned %s, want ok", outcome(r))
	case r.State == nil || r.View == nil:
		err = errors.New("the result of sim.state {} has no state or no view")
	}
	return r, err
}

func stateIsRead(ctx context.Context, c *checker) error {
	r, err := c.readState(ctx)
	if err == nil && r.State.Link != glasses.LinkConnected {
		err = fmt.Errorf("state.link is %q; let the glasses be connected before the check", r.State.Link)
	}
	return err
}

func text(s string) glasses.Show {
	return glasses.Show{Tree: glasses.Node{Type: glasses.NodeText, Text: s}}
}

func showIsAnswered(ctx context.Context, c *checker) error {
	show := text("conformance")
	if _, _, err := c.wantOK(ctx, glasses.TypeDisplayShow, show); err != nil {
		return err
	}
	r, err := c.readState(ctx)
	if err != nil {
		return err
	}
	if tree := r.View.Tree; tree == nil || tree.Type != show.Tree.Type || tree.Text != show.Tree.Text {
		return errors.New("after display.show, view.tree is not the tree that was shown")
	}
	return nil
}

func twoPictures(ctx context.Context, c *checker) error {
	var ids []string
	for _, s := range []string{"one", "two"} {
		id, err := c.send(ctx, glasses.TypeDisplayShow, text(s))
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	r, between, err := c.await(ctx, ids[0])
	if err != nil {
		return err
	}
	if r.Error != nil {
		return fmt.Errorf("the first of two pictures returned %s, want ok", outcome(r))
	}
	for _, early := range between {
		if early.Type == glasses.TypeResult && early.ID == ids[1] {
			return errors.New("the second of two pictures was answered before the first")
		}
	}
	r, _, err = c.await(ctx, ids[1])
	if err == nil && (r.Error != nil || r.Superseded) {
		err = fmt.Errorf("the last picture returned %s (superseded: %v), want ok", outcome(r), r.Superseded)
	}
	return err
}

func clearIsAnswered(ctx context.Context, c *checker) error {
	if _, _, err := c.wantOK(ctx, glasses.TypeDisplayClear, struct{}{}); err != nil {
		return err
	}
	r, err := c.readState(ctx)
	if err == nil && r.View.Tree != nil {
		err = errors.New("after display.clear, view.tree is not null")
	}
	return err
}

func announceIsAnswered(ctx context.Context, c *checker) error {
	_, _, err := c.wantOK(ctx, glasses.TypePhrasesAnnounce, glasses.Announce{Phrases: []string{"next page"}})
	return err
}

func sleepLasts(ctx context.Context, c *checker) error {
	begin := time.Now()
	if _, _, err := c.wantOK(ctx, glasses.TypeClockSleep, glasses.Sleep{Ms: napTime.Milliseconds()}); err != nil {
		return err
	}
	if took := time.Since(begin); took < napTime-10*time.Millisecond {
		return fmt.Errorf("clock.sleep of %v was answered after %v", napTime, took.Round(time.Millisecond))
	}
	id, err := c.send(ctx, glasses.TypeClockSleep, glasses.Sleep{Ms: glasses.MaxSleep})
	if err != nil {
		return err
	}
	cancelled, err := c.askFor(ctx, glasses.TypeClockCancel, glasses.Cancel{ID: id}, id)
	if err == nil && !cancelled.OK {
		err = fmt.Errorf("a cancelled clock.sleep returned %s, want ok", outcome(cancelled))
	}
	return err
}

// askFor sends a frame, waits for the results of that frame and of the frame with the ID other, and returns the latter.
func (c *checker) askFor(ctx context.Context, typ string, payload any, other string) (glasses.Result, error) {
	_, before, err := c.wantOK(ctx, typ, payload)
	if err != nil {
		return glasses.Result{}, err
	}
	for _, r := range before {
		if r.Type == glasses.TypeResult && r.ID == other {
			return r.result, nil
		}
	}
	r, _, err := c.await(ctx, other)
	return r, err
}

// refusals checks that every frame is refused with code.
func (c *checker) refusals(ctx context.Context, code string, frames [][2]any) error {
	for _, f := range frames {
		typ, _ := f[0].(string)
		if err := c.wantRefusal(ctx, typ, f[1], code); err != nil {
			return err
		}
	}
	return nil
}

func invalidPayloads(ctx context.Context, c *checker) error {
	return c.refusals(ctx, glasses.CodeBadPayload, [][2]any{
		{glasses.TypeDisplayShow, map[string]any{}},
		{glasses.TypeDisplayShow, map[string]any{"tree": map[string]any{"text": "a node without a type"}}},
		{glasses.TypeSpeechSay, map[string]any{"text": 7}},
		{glasses.TypeCameraPhoto, map[string]any{"width": 1}}, // before unsupported, also without a camera
		{glasses.TypeClockCancel, map[string]any{}},
	})
}

func boundsAreKept(ctx context.Context, c *checker) error {
	phrases := make([]string, glasses.MaxPhrases+1)
	nodes := make([]glasses.Node, glasses.MaxNodes)
	for i := range phrases {
		phrases[i] = fmt.Sprint("phrase ", i)
	}
	for i := range nodes {
		nodes[i].Type = glasses.NodeText
	}
	return c.refusals(ctx, glasses.CodeBadPayload, [][2]any{
		{glasses.TypeSpeechSay, glasses.Say{Text: strings.Repeat("a", glasses.MaxSay+1)}},
		{glasses.TypePhrasesAnnounce, glasses.Announce{Phrases: phrases}},
		{glasses.TypeClockSleep, glasses.Sleep{Ms: glasses.MaxSleep + 1}},
		{glasses.TypeMotionStart, glasses.MotionStart{Hz: 101}},
		{glasses.TypeAudioStart, glasses.AudioStart{SampleRate: 44100}},
		{glasses.TypeDisplayShow, glasses.Show{Tree: glasses.Node{Type: glasses.NodeColumn, Children: nodes}}},
	})
}

// strange is a type that no protocol version defines. Glasses ignore or refuse it.
const strange = "display.flip"

func unknownType(ctx context.Context, c *checker) error {
	if _, err := c.send(ctx, strange, struct{}{}); err != nil {
		return err
	}
	return announceIsAnswered(ctx, c)
}

func missingParts(ctx context.Context, c *checker) error {
	var frames [][2]any
	if c.model.Camera == nil {
		frames = append(frames, [2]any{glasses.TypeCameraPhoto, struct{}{}}, [2]any{glasses.TypeVideoStart, struct{}{}})
	}
	if !c.model.Motion {
		frames = append(frames, [2]any{glasses.TypeMotionStart, struct{}{}})
	}
	if !c.model.Microphone {
		frames = append(frames, [2]any{glasses.TypeAudioStart, struct{}{}})
	}
	if c.model.Panel == nil {
		frames = append(frames, [2]any{glasses.TypeDisplayShow, text("no panel")})
	}
	return c.refusals(ctx, glasses.CodeUnsupported, frames)
}

func photoIsSent(ctx context.Context, c *checker) error {
	r, before, err := c.wantOK(ctx, glasses.TypeCameraPhoto, glasses.Photo{Width: 320})
	if err != nil {
		return err
	}
	if r.Media == nil {
		return errors.New("the result of camera.photo has no media")
	}
	for _, b := range before {
		if b.Type != glasses.TypeMedia {
			continue
		}
		if err := checkPicture(b.body); err != nil {
			return fmt.Errorf("the picture of camera.photo %w", err)
		}
		sum := sha256.Sum256(b.body)
		if hex.EncodeToString(sum[:]) != r.Media.SHA256 {
			return errors.New("media.sha256 does not match the bytes of the media frame")
		}
		return nil
	}
	return errors.New("no media frame arrived before the result of camera.photo")
}

// checkPicture returns an error if the picture is not a JPEG without metadata.
func checkPicture(body []byte) error {
	const widest = 1<<16 - 1 // maximum width of a JPEG
	picture, err := media.JPEG(body, widest)
	switch {
	case err != nil:
		return fmt.Errorf("cannot be read: %w", err)
	case !bytes.Equal(picture.Bytes, body):
		return errors.New("has metadata, or bytes after its end; send it upright and without them")
	}
	return nil
}

// wantEvent checks that a control frame causes an event before or after its result. The glasses may also refuse the
// frame as unsupported.
func (c *checker) wantEvent(ctx context.Context, control string, payload any, event string) error {
	r, before, err := c.ask(ctx, control, payload)
	switch {
	case err != nil || r.Error != nil && r.Error.Code == glasses.CodeUnsupported:
		return err
	case r.Error != nil:
		return fmt.Errorf("%s returned %s, want ok or unsupported", control, outcome(r))
	}
	limit := time.After(streamTime)
	for {
		for _, b := range before {
			if b.Type == event {
				return nil
			}
		}
		next, ok, err := c.receive(ctx, limit)
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("%s returned ok, but no %s event arrived within %v", control, event, streamTime)
		}
		before = []received{next}
	}
}

func inputIsPassed(ctx context.Context, c *checker) error {
	return c.wantEvent(ctx, glasses.SimInput, glasses.Input{Kind: c.model.Inputs[0]}, glasses.TypeInput)
}

func stateIsChanged(ctx context.Context, c *checker) error {
	battery := glasses.Battery{Level: 9, Charging: true}
	return c.wantEvent(ctx, glasses.SimState, glasses.StatePatch{Battery: &battery}, glasses.TypeBattery)
}

// faultIsObeyed injects a fault into the next phrases.announce. Real glasses do not support faults.
func faultIsObeyed(ctx context.Context, c *checker) error {
	fault := glasses.Fault{Command: glasses.TypePhrasesAnnounce, Code: glasses.CodePlatform, Times: 1}
	r, _, err := c.ask(ctx, glasses.SimFault, fault)
	switch {
	case err != nil || r.Error != nil && r.Error.Code == glasses.CodeUnsupported:
		return err
	case r.Error != nil:
		return fmt.Errorf("sim.fault returned %s, want ok or unsupported", outcome(r))
	}
	phrases := glasses.Announce{Phrases: []string{"next page"}}
	if err := c.wantRefusal(ctx, glasses.TypePhrasesAnnounce, phrases, glasses.CodePlatform); err != nil {
		return err
	}
	return announceIsAnswered(ctx, c)
}
