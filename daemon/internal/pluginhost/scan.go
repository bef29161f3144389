package pluginhost

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/service-dev/service/daemon/internal/backend"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// Limits of a scan. scanGrace is how much longer than requested a scan may take.
const (
	maxScan   = time.Minute
	maxFound  = 64
	scanGrace = 15 * time.Second
)

// Scan searches for real glasses for 1 s to 60 s and returns at most 64 pairs, in the order in which they were found.
// It returns a *problem.Error, or ctx's error.
func (h *Host) Scan(ctx context.Context, length time.Duration) ([]backend.FoundPair, error) {
	a, err := h.findTransport(RealDevice)
	if err != nil {
		return nil, err
	}
	inst, done, err := a.get(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	length = min(max(length, time.Second), maxScan)
	inner, cancel := context.WithTimeout(ctx, length+scanGrace)
	defer cancel()
	var found []backend.FoundPair
	stream, err := inst.transport.Scan(inner, &pluginv1.ScanRequest{Seconds: int32(length / time.Second)})
	if err == nil {
		found, err = receivePairs(stream)
	}
	switch {
	case err == nil:
		return found, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case inst.isAtFault(inner.Err() != nil):
		return nil, stuckProblem(a.name)
	case inner.Err() != nil:
		return nil, unavailable(a.name, "it did not end its search for glasses", 0)
	}
	return nil, problemOf(inner, a.name, err)
}

// receivePairs receives pairs until the adapter ends the scan. A later result for a pair replaces the earlier one.
func receivePairs(stream grpc.ServerStreamingClient[pluginv1.ScanResponse]) ([]backend.FoundPair, error) {
	var found []backend.FoundPair
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		p := backend.FoundPair{Name: m.GetName(), DeviceModel: m.GetDeviceModel()}
		for _, l := range m.GetLinks()[:min(len(m.GetLinks()), maxLinks)] {
			p.Parts = append(p.Parts, backend.FoundPart{Key: l.GetKey(), Found: l.GetFound(), RSSI: int(l.GetRssi())})
		}
		i := slices.IndexFunc(found, func(f backend.FoundPair) bool {
			return f.Name == p.Name && f.DeviceModel == p.DeviceModel
		})
		switch {
		case i >= 0:
			found[i] = p
		case len(found) < maxFound:
			found = append(found, p)
		}
	}
}
