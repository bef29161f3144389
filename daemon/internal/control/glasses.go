package control

import (
	"context"
	"slices"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/pairs"
	controlv1 "github.com/service-dev/service/proto/control/v1"
)

// KnownPair is a pair that is remembered or connected. SessionID is the session to which it is connected, if any.
type KnownPair struct {
	pairs.Known
	SessionID string
}

// Glasses finds real glasses, closes their sessions, and stores and deletes the facts known about them.
type Glasses interface {
	// KnownPairs returns the remembered and the connected pairs, most recently used first.
	KnownPairs() []KnownPair
	// ScanPairs looks for pairs in range. It returns a *backend.Problem or ctx's error on failure.
	ScanPairs(ctx context.Context, length time.Duration) ([]backend.FoundPair, error)
	// CloseRealSessions closes the sessions with real glasses of the caller's directory and returns their ids.
	CloseRealSessions(ctx context.Context) ([]string, error)
	// ForgetPair forgets the pair with this name, ignoring case.
	ForgetPair(name string) error
	// SetPanel stores and applies the user's description of the panel of a session's glasses.
	SetPanel(sessionID string, panel backend.PairPanel) error
}

// ListGlasses lists the remembered glasses and the glasses in range. It lists the remembered ones even if the search
// fails.
func (s *Server) ListGlasses(ctx context.Context, r *controlv1.ListGlassesRequest) (*controlv1.ListGlassesResponse,
	error) {
	out := &controlv1.ListGlassesResponse{}
	known := s.o.Glasses.KnownPairs()
	for _, k := range known {
		g := &controlv1.Glasses{Name: k.Name, DeviceModel: k.DeviceModel, SessionId: k.SessionID, Uncleared: k.Uncleared,
			Panel: &controlv1.Panel{Inverted: k.Inverted, Rows: int32(k.Rows), Checked: k.IsChecked}}
		if !k.UsedAt.IsZero() {
			g.UsedMs = k.UsedAt.UnixMilli()
		}
		out.Glasses = append(out.Glasses, g)
	}
	if r.GetSeconds() == 0 {
		return out, nil
	}
	found, err := s.o.Glasses.ScanPairs(ctx, time.Duration(r.GetSeconds())*time.Second)
	if err != nil {
		out.Problem = errorOf(err)
		return out, nil
	}
	for _, f := range found {
		i := slices.IndexFunc(known, func(k KnownPair) bool { return k.Name == f.Name && k.DeviceModel == f.DeviceModel })
		if i < 0 {
			i = len(out.Glasses)
			out.Glasses = append(out.Glasses, &controlv1.Glasses{Name: f.Name, DeviceModel: f.DeviceModel})
		}
		for _, p := range f.Parts {
			out.Glasses[i].Parts = append(out.Glasses[i].Parts, &controlv1.GlassesPart{
				Key: p.Key, Found: p.Found, Rssi: int32(p.RSSI),
			})
		}
	}
	return out, nil
}

// DisconnectGlasses closes the sessions with real glasses of the caller's directory.
func (s *Server) DisconnectGlasses(ctx context.Context,
	r *controlv1.DisconnectGlassesRequest) (*controlv1.DisconnectGlassesResponse, error) {
	ids, err := s.o.Glasses.CloseRealSessions(withCaller(ctx, r.GetCaller()))
	if err != nil {
		return nil, statusError(err)
	}
	return &controlv1.DisconnectGlassesResponse{SessionIds: ids}, nil
}

// ForgetGlasses forgets a pair.
func (s *Server) ForgetGlasses(_ context.Context, r *controlv1.ForgetGlassesRequest) (*controlv1.ForgetGlassesResponse,
	error) {
	if err := s.o.Glasses.ForgetPair(r.GetName()); err != nil {
		return nil, statusError(err)
	}
	return &controlv1.ForgetGlassesResponse{}, nil
}

// SetPanel stores the user's description of the panel of a session's glasses.
func (s *Server) SetPanel(_ context.Context, r *controlv1.SetPanelRequest) (*controlv1.SetPanelResponse, error) {
	p := r.GetPanel()
	err := s.o.Glasses.SetPanel(r.GetSessionId(), backend.PairPanel{
		Inverted: p.GetInverted(), Rows: int(p.GetRows()), IsChecked: p.GetChecked(),
	})
	if err != nil {
		return nil, statusError(err)
	}
	return &controlv1.SetPanelResponse{}, nil
}
