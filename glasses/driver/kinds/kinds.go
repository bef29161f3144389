// Package kinds lists the real glasses for which this repository contains drivers. Carriers choose a driver here and
// contain no vendor-specific code.
package kinds

import (
	"slices"

	"github.com/service-dev/service/glasses/driver"
	"github.com/service-dev/service/glasses/driver/frame"
	"github.com/service-dev/service/glasses/driver/g1"
)

// Kind is one kind of glasses.
type Kind struct {
	DeviceModel string
	// Steps lists, in order, the user's steps that make the glasses discoverable.
	Steps []string
	// OtherRows is the panel height to try if the panel does not show the model's last row; 0 if a driver.Panel has no
	// effect.
	OtherRows int
	// Pair returns the pair and the key of the link to which an advertised name belongs.
	Pair func(advertised string) (pair, link string, ok bool)
	// New returns a driver for one pair.
	New func(driver.Panel) driver.Driver
}

// All returns all kinds, in display order.
func All() []Kind {
	return []Kind{{
		DeviceModel: "even_g1", OtherRows: 135, Pair: g1.Pair,
		Steps: []string{
			"Put the glasses in the open case, next to this computer.",
			"Disconnect the phone's app from them, or switch the phone's Bluetooth off: while the phone is connected, " +
				"nothing else finds them.",
		},
		New: func(p driver.Panel) driver.Driver { return g1.New(p) },
	}, {
		DeviceModel: "brilliant_frame", Pair: frame.PairFrame,
		New: func(driver.Panel) driver.Driver { return frame.NewFrame() },
		Steps: []string{
			"Switch the glasses on, next to this computer, and disconnect the phone's app from them.",
			"If the computer asks whether to pair with them, accept.",
		},
	}, {
		DeviceModel: "brilliant_halo", Pair: frame.PairHalo,
		New: func(driver.Panel) driver.Driver { return frame.NewHalo() },
		Steps: []string{
			"Disconnect the phone's app from the glasses.",
			"If this computer is not paired with them, hold their button for 5 seconds until they play a sound: for the " +
				"next 60 seconds they accept a new computer.",
		},
	}}
}

// Of returns the kind of glasses with this device model.
func Of(deviceModel string) (Kind, bool) {
	all := All()
	if i := slices.Index(DeviceModels(), deviceModel); i >= 0 {
		return all[i], true
	}
	return Kind{}, false
}

// Identify returns the kind, the pair and the key of the link to which an advertised name belongs.
func Identify(advertised string) (k Kind, pair, link string, ok bool) {
	for _, k := range All() {
		if pair, link, ok := k.Pair(advertised); ok {
			return k, pair, link, true
		}
	}
	return Kind{}, "", "", false
}

// DeviceModels returns the device model IDs of All.
func DeviceModels() []string {
	all := All()
	ids := make([]string, len(all))
	for i := range all {
		ids[i] = all[i].DeviceModel
	}
	return ids
}
