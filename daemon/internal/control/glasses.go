package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/pairs"
	"github.com/service-dev/service/internal/problem"
	api "github.com/service-dev/service/proto/control"
)

// KnownPair is a remembered or connected pair. SessionID is the session to which it is connected, if any.
type KnownPair struct {
	pairs.Known
	SessionID string
}

// maxScan is the maximum time in seconds to look for glasses.
const maxScan = 60

// listGlasses lists the remembered glasses and the glasses in range. If the search fails, it still lists the remembered
// ones.
func (s *Server) listGlasses(ctx context.Context, r api.GlassesRequest) (api.GlassesAnswer, error) {
	if r.Seconds < 0 || r.Seconds > maxScan {
		return api.GlassesAnswer{}, problem.New(problem.CodeInvalidRequest,
			fmt.Sprintf("seconds is %d, not from 0 to %d", r.Seconds, maxScan), "Look for glasses for at most a minute.")
	}
	out := api.GlassesAnswer{Glasses: []api.KnownGlasses{}}
	known := s.o.Daemon.KnownPairs()
	for _, k := range known {
		g := api.KnownGlasses{
			Glasses: api.Glasses{Name: k.Name, DeviceModel: k.DeviceModel, SessionID: k.SessionID, Uncleared: k.Uncleared,
				PanelChecked: k.IsChecked, UsedMs: milliseconds(k.UsedAt), Parts: []api.GlassesPart{}},
			Panel: api.Panel{Inverted: k.Inverted, Rows: k.Rows, IsChecked: k.IsChecked},
		}
		out.Glasses = append(out.Glasses, g)
	}
	if r.Seconds == 0 {
		return out, nil
	}
	found, err := s.o.Daemon.ScanPairs(ctx, time.Duration(r.Seconds)*time.Second)
	if err != nil {
		out.Problem = errorOf(err)
		return out, nil
	}
	for _, f := range found {
		i := slices.IndexFunc(known, func(k KnownPair) bool { return k.Name == f.Name && k.DeviceModel == f.DeviceModel })
		if i < 0 {
			i = len(out.Glasses)
			g := api.Glasses{Name: f.Name, DeviceModel: f.DeviceModel, Parts: []api.GlassesPart{}}
			out.Glasses = append(out.Glasses, api.KnownGlasses{Glasses: g})
		}
		for _, p := range f.Parts {
			out.Glasses[i].Parts = append(out.Glasses[i].Parts, api.GlassesPart{Key: p.Key, Found: p.Found, RSSI: p.RSSI})
		}
	}
	return out, nil
}

// disconnectGlasses closes the sessions of the caller's directory that use real glasses.
func (s *Server) disconnectGlasses(ctx context.Context, _ api.None) (api.Disconnected, error) {
	ids, err := s.o.Daemon.CloseRealSessions(ctx)
	return api.Disconnected{SessionIDs: append([]string{}, ids...)}, err
}

func (s *Server) forgetGlasses(_ context.Context, r api.NameRequest) (api.None, error) {
	return api.None{}, s.o.Daemon.ForgetPair(r.Name)
}

// setPanel stores the user's description of the panel of a session's glasses.
func (s *Server) setPanel(_ context.Context, r api.PanelRequest) (api.None, error) {
	return api.None{}, s.o.Daemon.SetPanel(r.SessionID, backend.PairPanel(r.Panel))
}
