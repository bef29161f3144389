package realdevice

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/service-dev/service/glasses/driver"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/plugins/internal/attach"
	"github.com/service-dev/service/plugins/internal/glassespage"
	"github.com/service-dev/service/plugins/internal/serve"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// These are the carriers. viaAuto selects BlueZ if it has a Bluetooth adapter, and the browser otherwise.
const (
	viaAuto    = "auto"
	viaBlueZ   = "bluez"
	viaBrowser = "browser"
)

// chooseCarrier chooses the carrier for the whole session. It serves the page if the carrier is the browser.
func (s *session) chooseCarrier(ctx context.Context, via string) error {
	switch via {
	case viaBlueZ:
		return nil
	case viaBrowser:
	case viaAuto, "":
		if _, err := s.adapter.openRadio(ctx); problem.CodeOf(err) != problem.CodeNoBluetooth {
			return nil // use BlueZ even if the radio is off: the session reports this, and connects once it is on
		}
	default:
		return attach.Invalid("unknown carrier of the glasses")
	}
	model := s.glasses.Model()
	page, err := glassespage.Serve(ctx, glassespage.Options{
		Log: s.log, Title: model.Name, Steps: s.kind.Steps, Links: s.kind.New(driver.Panel{}).Links(), Accept: s.accept,
		Left: func() { s.adapter.unclaim(s, "") },
		Answered: func(a glassespage.PanelAnswer) {
			select {
			case s.events <- event{panel: &a}:
			case <-s.life.Done():
			}
		},
		Changed: func() {
			select {
			case s.changed <- struct{}{}:
			default: // a change is already pending
			}
		},
	})
	if err != nil {
		return serve.Refuse(codes.Unavailable, &pluginv1.Problem{Code: "unavailable", Message: err.Error(), Retryable: true})
	}
	s.page = page
	return nil
}

// accept checks the peripheral that the user chose for a link, and reserves it. The page disconnects a refused
// peripheral, and the previously chosen one.
func (s *session) accept(key, name string, others map[string]string) *problem.Error {
	p := s.judge(key, name, others)
	if p != nil {
		s.adapter.unclaim(s, key)
	}
	return p
}

// judge returns the reason why a peripheral is not accepted, or nil once it is reserved. Its name must match this
// link of the pair.
func (s *session) judge(key, name string, others map[string]string) *problem.Error {
	refuse := func(message, fixHint string) *problem.Error {
		return &problem.Error{Code: problem.CodeRefused, Message: message, FixHint: fixHint}
	}
	model := s.glasses.Model().Name
	pair, link, ok := s.kind.Pair(name)
	switch {
	case !ok:
		return refuse(fmt.Sprintf("%q are no %s", name, model), "Choose another device of the list.")
	case link != key:
		return refuse(fmt.Sprintf("%q is the %s arm", name, link),
			fmt.Sprintf("Choose the %s arm of the same pair here.", key))
	case s.wanted != "" && !strings.EqualFold(pair, s.wanted):
		return refuse(fmt.Sprintf("%q belongs to %q, but the session is for %q", name, pair, s.wanted),
			fmt.Sprintf("Choose %q, or connect the glasses without a name.", s.wanted))
	}
	for _, other := range others {
		if is, _, _ := s.kind.Pair(other); is != pair {
			return refuse(fmt.Sprintf("%q and %q belong to different pairs", name, other),
				"Choose both arms of one pair: they have the same number.")
		}
	}
	if holder := s.adapter.claim(s.life, claim{session: s, pair: pair, link: key}); holder != "" {
		return &problem.Error{Code: problem.CodeBusyElsewhere, Message: heldBy(holder).Message,
			FixHint: heldBy(holder).FixHint}
	}
	return nil
}

// openOnPage opens a link through the page.
func (s *session) openOnPage(spec driver.LinkSpec, pair *pluginv1.Pair, e *event) (conn, error) {
	c, err := s.page.Open(s.life, spec.Key)
	if err != nil {
		return nil, err
	}
	if name, _, ok := s.kind.Pair(c.Name()); ok && name != pair.GetName() {
		e.found = &pluginv1.Pair{Name: name}
	}
	return c, nil
}

// showPage shows the state of the hardware on the page, and adds the page's state to it.
func (s *session) showPage(h *pluginv1.Hardware) {
	h.Carrier = viaBrowser
	if p := s.page.Waits(); p != nil {
		h.Problem = problemOf(p)
		h.ConnectUrl = s.page.URL()
	}
	shown := glassespage.Shown{Pair: s.pair.GetName()}
	problems := map[string]string{}
	for _, l := range s.glasses.Links() {
		problems[l.Key] = l.Problem
	}
	for _, l := range h.GetLinks() {
		shown.Links = append(shown.Links, glassespage.ShownLink{
			Key: l.GetKey(), State: l.GetState(), Battery: int(l.GetBatteryPercent()), Problem: problems[l.GetKey()],
		})
	}
	s.showCheck(&shown)
	s.page.Show(shown)
}
