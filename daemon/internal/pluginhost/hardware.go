package pluginhost

import (
	"net/url"
	"strings"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/internal/problem"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// maxLinks is the maximum number of links of one pair of glasses.
const maxLinks = 8

// maxSteps is the maximum number of steps for the user.
const maxSteps = 8

// maxHardwareText is the maximum length of a text about glasses, in bytes. A text that is longer or has several lines
// counts as empty.
const maxHardwareText = 400

func pairRequest(o backend.TransportOpen) *pluginv1.Pair {
	p := o.Pair
	m := &pluginv1.Pair{Name: p.Name, Inverted: p.Inverted, Rows: int32(p.Rows), Checked: p.IsChecked, OrOther: o.AnyPair}
	for key, address := range p.Addresses {
		m.Links = append(m.Links, &pluginv1.PairLink{Key: key, Address: address})
	}
	return m
}

// pageURL returns address if it is a page on this computer, and "" otherwise, because the page is opened in the user's
// browser.
func pageURL(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || u.Hostname() != "127.0.0.1" || u.User != nil || len(address) > maxHardwareText {
		return ""
	}
	return u.String()
}

func hardwareOf(h *pluginv1.Hardware) backend.Hardware {
	pair := h.GetPair()
	text := func(s string) string {
		if len(s) > maxHardwareText || !isLine(s) {
			return ""
		}
		return s
	}
	known := backend.Hardware{
		Pair: backend.Pair{
			Name: text(pair.GetName()), Addresses: map[string]string{}, PairPanel: panelOf(pair),
		},
		Carrier: text(h.GetCarrier()), ConnectURL: pageURL(h.GetConnectUrl()), Uncleared: h.GetUncleared(),
	}
	for _, step := range h.GetSteps()[:min(len(h.GetSteps()), maxSteps)] {
		known.Steps = append(known.Steps, text(step))
	}
	for _, l := range pair.GetLinks()[:min(len(pair.GetLinks()), maxLinks)] {
		known.Pair.Addresses[text(l.GetKey())] = text(l.GetAddress())
	}
	for _, l := range h.GetLinks()[:min(len(h.GetLinks()), maxLinks)] {
		known.Links = append(known.Links, backend.HardwareLink{
			Key: text(l.GetKey()), State: text(l.GetState()), MTU: int(l.GetMtu()), RSSI: int(l.GetRssi()),
			BatteryPercent: int(l.GetBatteryPercent()), Firmware: text(l.GetFirmware()),
		})
	}
	if p := h.GetProblem(); p != nil {
		known.Problem = &problem.Error{
			Code: text(p.GetCode()), Message: text(p.GetMessage()), FixHint: sentence(text(p.GetFixHint())),
			Retryable: p.GetRetryable(),
		}
	}
	if p := h.GetPanel(); p != nil {
		answered := panelOf(p)
		known.Answered = &answered
	}
	return known
}

// sentence ends an adapter's text with a full stop, because other text follows it.
func sentence(s string) string {
	if s == "" || strings.HasSuffix(s, ".") {
		return s
	}
	return s + "."
}

func panelOf(p interface {
	GetInverted() bool
	GetRows() int32
	GetChecked() bool
}) backend.PairPanel {
	return backend.PairPanel{Inverted: p.GetInverted(), Rows: int(p.GetRows()), IsChecked: p.GetChecked()}
}
