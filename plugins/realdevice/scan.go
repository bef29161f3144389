package realdevice

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/service-dev/service/glasses/driver"
	"github.com/service-dev/service/glasses/driver/kinds"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/plugins/internal/bluez"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// Times of a scan.
const (
	scanTime = 10 * time.Second
	// secondPair is how long the scan continues after one pair is complete, to find another pair, which may have the
	// same name.
	secondPair = 2 * time.Second
	maxScan    = 60 * time.Second
)

// maxPairs limits the pairs of a scan, so that hostile advertisements cannot exhaust the memory.
const maxPairs = 64

// foundPair is one pair of glasses in range.
type foundPair struct {
	name  string
	kind  kinds.Kind
	links map[string]bluez.Found // devices by link key
	// isDouble is set if two peripherals have the name of the same link, so another pair has the same name.
	isDouble bool
}

func (p *foundPair) isComplete() bool { return len(p.missing()) == 0 }

// missing returns the keys of the links that have not been found.
func (p *foundPair) missing() []string {
	var keys []string
	for _, spec := range p.kind.New(driver.Panel{}).Links() {
		if _, ok := p.links[spec.Key]; !ok {
			keys = append(keys, spec.Key)
		}
	}
	return keys
}

// pairs groups advertisements into pairs of glasses.
type pairs struct{ list []*foundPair }

// add returns the pair that an advertisement belongs to, or nil.
func (p *pairs) add(a bluez.Found) *foundPair {
	kind, name, link, ok := kinds.Identify(a.Name)
	if !ok {
		return nil
	}
	i := slices.IndexFunc(p.list, func(f *foundPair) bool { return f.name == name })
	if i < 0 {
		if len(p.list) == maxPairs {
			return nil
		}
		i = len(p.list)
		p.list = append(p.list, &foundPair{name: name, kind: kind, links: map[string]bluez.Found{}})
	}
	f := p.list[i]
	earlier, known := f.links[link]
	f.isDouble = f.isDouble || known && earlier.Address != a.Address
	f.links[link] = a
	return f
}

// Scan reports the glasses in range.
func (a *adapter) Scan(r *pluginv1.ScanRequest, stream grpc.ServerStreamingServer[pluginv1.ScanResponse]) error {
	radio, err := a.openRadio(stream.Context())
	if err != nil {
		return refuse(err)
	}
	length := a.scanTime
	if s := time.Duration(r.GetSeconds()) * time.Second; s > 0 {
		length = min(s, maxScan)
	}
	ctx, cancel := context.WithTimeout(stream.Context(), length)
	defer cancel()
	var all pairs
	err = radio.Scan(ctx, bluez.Filter{}, func(one bluez.Found) {
		if p := all.add(one); p != nil && stream.Send(scanResponse(p)) != nil {
			cancel()
		}
	})
	if err != nil && ctx.Err() == nil {
		a.dropRadio(radio, err)
		return refuse(err)
	}
	return nil
}

func scanResponse(p *foundPair) *pluginv1.ScanResponse {
	m := &pluginv1.ScanResponse{Name: p.name, DeviceModel: p.kind.DeviceModel}
	for _, spec := range p.kind.New(driver.Panel{}).Links() {
		one, found := p.links[spec.Key]
		m.Links = append(m.Links, &pluginv1.FoundLink{Key: spec.Key, Found: found, Rssi: int32(one.RSSI)})
	}
	return m
}

// find searches for a pair of a model until its time is up. It returns the pair with the name of wanted. If the name
// is empty, or if wanted is not in range and may be replaced, it returns the only pair in range.
func find(ctx context.Context, radio *bluez.Radio, model string, wanted *pluginv1.Pair,
	most time.Duration) (*foundPair, error) {
	limited, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	var all pairs
	var second *time.Timer
	name := wanted.GetName()
	err := radio.Scan(limited, bluez.Filter{}, func(one bluez.Found) {
		p := all.add(one)
		if p == nil || p.kind.DeviceModel != model || !p.isComplete() {
			return
		}
		if isWanted := name == "" || wanted.GetOrOther() || strings.EqualFold(p.name, name); isWanted && second == nil {
			second = time.AfterFunc(secondPair, cancel)
		}
	})
	if second != nil {
		second.Stop()
	}
	if err != nil && limited.Err() == nil {
		return nil, err
	}
	f, err := all.choose(model, name)
	if err != nil && wanted.GetOrOther() && problem.CodeOf(err) == problem.CodeNotInRange {
		if other, otherErr := all.choose(model, ""); otherErr == nil {
			return other, nil
		}
	}
	if p := (*problem.Error)(nil); errors.As(err, &p) && p.Code == problem.CodeNotInRange {
		p.Message += radio.Searched(ctx)
	}
	return f, err
}

func (p *pairs) choose(model, name string) (*foundPair, error) {
	var complete []*foundPair
	var partial *foundPair
	for _, f := range p.list {
		switch {
		case f.kind.DeviceModel != model || name != "" && !strings.EqualFold(f.name, name):
		case f.isComplete():
			complete = append(complete, f)
		default:
			partial = f
		}
	}
	switch {
	case len(complete) == 1 && complete[0].isDouble:
		return nil, problem.New(problem.CodeSeveralInRange, fmt.Sprintf("two pairs of glasses named %q are in range",
			complete[0].name), "Close one of them in its case until the other is connected: from then on the service "+
			"tells them apart by their addresses.")
	case len(complete) == 1:
		return complete[0], nil
	case len(complete) > 1:
		var names []string
		for _, f := range complete {
			names = append(names, fmt.Sprintf("%q", f.name))
		}
		return nil, problem.New(problem.CodeSeveralInRange, "several pairs of glasses are in range: "+strings.Join(names,
			", "),
			"Name one of them.")
	case partial != nil:
		return nil, problem.New(problem.CodeNotInRange, fmt.Sprintf("%q: the %s is not in range", partial.name,
			strings.Join(partial.missing(), " and the ")+" arm"), "Take both arms out of the case, or open its lid.")
	}
	if name != "" {
		return nil, problem.New(problem.CodeNotInRange, fmt.Sprintf("%q is not in range", name), notInRangeHint)
	}
	return nil, problem.New(problem.CodeNotInRange, "no such glasses are in range", notInRangeHint)
}

// notInRangeHint is the next step for glasses that do not advertise.
const notInRangeHint = "Put the glasses in the open case next to this computer, and disconnect the phone's app from " +
	"them (or switch the phone's Bluetooth off): while it is connected, nothing else finds them."
