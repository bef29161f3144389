package tools

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/render"
)

// guideFields returns the fields in all guides, by their owner's type and their name.
func guideFields() map[string]field {
	all := map[string]field{}
	add := func(of string, list []field) {
		for _, f := range list {
			all[of+"."+f.Name] = f
		}
	}
	for _, c := range commandGuides() {
		add(c.Type, c.Payload)
	}
	for _, e := range eventGuides() {
		add(e.Type, e.Payload)
	}
	for _, n := range nodeGuides() {
		add(n.Type, n.Fields)
	}
	return all
}

func TestGuides_ListTheProtocolsChoices(t *testing.T) {
	all := guideFields()
	for name, want := range map[string][]string{
		"sound.play.sound": glasses.Sounds(),
		"input.kind":       glasses.InputKinds(),
		"fault.code":       glasses.CommandCodes(),
		"permission.part":  partNames(),
		"permission.state": {glasses.PermissionGranted, glasses.PermissionDenied},
		"hinge.state":      {glasses.HingeOpen, glasses.HingeFolded},
		"thermal.state":    {glasses.ThermalNominal, glasses.ThermalWarm, glasses.ThermalCritical},
		"link.state":       {glasses.LinkConnected, glasses.LinkLossy, glasses.LinkLost, glasses.LinkDisconnected},
		"route.to":         {glasses.RouteGlasses, glasses.RoutePhone},
		"icon.icon":        render.Icons(),
		"text.style":       glasses.Styles(),
		"text.direction":   {glasses.DirectionAuto, glasses.DirectionLTR, glasses.DirectionRTL},
		"column.align":     {glasses.AlignStart, glasses.AlignCenter, glasses.AlignEnd},
		"list.overflow":    {glasses.OverflowClip, glasses.OverflowScroll, glasses.OverflowPaginate},
		"speech.state":     {"finished", "stopped"},
		"input.direction":  {"up", "down", "left", "right"},
	} {
		f, ok := all[name]
		if !ok || !slices.Equal(f.OneOf, want) {
			t.Errorf("%s (found: %v) accepts %v, want %v", name, ok, f.OneOf, want)
		}
	}
}

func TestGuides_NameTheProtocolsLimits(t *testing.T) {
	all := guideFields()
	for name, want := range map[string]int64{
		"column.gap": glasses.MaxLength, "image.height": glasses.MaxLength, "any.grow": glasses.MaxGrow,
		"transcript.text": glasses.MaxSay, "fault.latencyMs": 60_000, "fault.times": 1000,
	} {
		if f := all[name]; f.Max == nil || *f.Max != want {
			t.Errorf("the maximum of %s is %v, want %d", name, f.Max, want)
		}
	}
	for name, want := range map[string]string{
		"column.children": fmt.Sprintf("at most %d in a tree, %d deep", glasses.MaxNodes, glasses.MaxTreeDepth),
		"any.id":          fmt.Sprintf("1 to %d printable", glasses.MaxID),
	} {
		if !strings.Contains(all[name].About, want) {
			t.Errorf("the description of %s is %q, want %q in it", name, all[name].About, want)
		}
	}
}
